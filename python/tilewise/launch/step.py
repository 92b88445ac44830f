"""Ends the Slurm step that we are a task of, where ranks are left that nothing else reaches."""

from __future__ import annotations

import os
import subprocess

from tilewise.launch.join import in_step


def cancel(gently: bool = False) -> None:
    """Asks Slurm to end the step, and does not wait for that: it ends us as well. `gently`: all may clear up.

    Without it, srun waits for a node that does not answer, or for a daemon of its own that was killed, until
    Slurm itself gives them up. Outside of a step nothing is done: a batch script is not ours to end.
    """
    job = os.environ.get("SLURM_JOB_ID", "")
    if not (job.isdigit() and in_step(os.environ)):
        return
    import shutil

    if (scancel := shutil.which("scancel")) is not None:
        subprocess.Popen(
            [scancel, *(["--signal=TERM"] if gently else []), f"{job}.{os.environ['SLURM_STEP_ID']}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
