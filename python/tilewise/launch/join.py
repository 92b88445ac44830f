"""Joins ranks that somebody else's mpiexec or srun started: who we are among them, and what the others do.

Imports nothing but what Python has loaded anyway: on thousands of ranks this is all that runs before the
worker takes over.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

_LAST_WORDS = 2.0  # seconds in which rank 0 may say what is wrong, before our end makes the launcher kill it
_OWN_STEPS = 4294967280  # from here on step numbers mean batch script, interactive shell and the like


class Join(NamedTuple):
    """Our place in a job that exists.

    `kind` is whose variables told (`pmi`, `openmpi`, `pmix`, `slurm`), `local` counts the ranks on our node
    (0: not told).
    """

    rank: int
    size: int
    kind: str
    local: int = 0

    @property
    def nodes(self) -> int:
        """Return how many nodes the ranks are on, as far as the launcher tells; else 1."""
        return -(-self.size // self.local) if self.local > 0 else 1

    @property
    def remote(self) -> bool:
        """Return whether ranks are on other nodes, or may be."""
        return self.local != self.size


def in_step(environment: Mapping[str, str]) -> bool:
    """Return whether we are in a step that `srun` started: no batch script, no shell of `salloc`."""
    step = environment.get("SLURM_STEP_ID", "")
    return step.isdigit() and int(step) < _OWN_STEPS


def detect(environment: Mapping[str, str]) -> Join | None:
    """Our place among 2 or more ranks that exist, or None when we were started alone."""
    slurm_size = environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS")
    by_srun = in_step(environment)
    if by_srun and _in_shell(environment):
        return None
    for kind, rank, size in (
        ("pmi", environment.get("PMI_RANK"), environment.get("PMI_SIZE")),
        ("openmpi", environment.get("OMPI_COMM_WORLD_RANK"), environment.get("OMPI_COMM_WORLD_SIZE")),
        ("pmix", environment.get("PMIX_RANK"), slurm_size if by_srun else None),
        ("slurm", environment.get("SLURM_PROCID") if by_srun else None, slurm_size),
    ):
        if rank and size and rank.isdigit() and size.isdigit():
            return Join(int(rank), int(size), kind, _local(environment, int(size))) if int(size) > 1 else None
    return None


def _in_shell(environment: Mapping[str, str]) -> bool:
    """Return whether somebody typed us into `srun --pty bash`: a step's first task, and no rank of a job.

    A shell that heeds a terminal gives each command a process group of its own; a script, or a step within,
    which has inherited the variable, does not.
    """
    task = environment.get("SLURM_TASK_PID", "")
    if "SLURM_PTY_PORT" not in environment or not task.isdigit():
        return False
    try:
        return os.getpgid(int(task)) != os.getpgrp()
    except OSError:  # it is not on this host: we have left the step
        return True


def _local(environment: Mapping[str, str], size: int) -> int:
    """Ranks on our node, from whoever tells."""
    for key in ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"):
        if environment.get(key, "").isdigit():
            return int(environment[key])
    nodes = environment.get("SLURM_STEP_NUM_NODES", "")
    return -(-size // int(nodes)) if nodes.isdigit() and int(nodes) > 0 else 0


def foreign(join: Join, mpi: str) -> bool:
    """Return whether the ranks were started by a launcher that the worker's MPI library cannot understand.

    The wheel knows PMI, which hydra and `srun --mpi=pmi2` speak; a site's MPI may know whatever its site has.
    """
    return mpi == "wheel" and join.kind in ("openmpi", "pmix", "slurm")


def follow(join: Join, is_job: bool) -> int:
    """Do the part of every rank but the first: become the worker of a job, else leave. Returns an exit code.

    Says nothing, as rank 0 does the talking; only what keeps the worker from starting on this node among
    others does nobody else know.
    """
    if not is_job:
        return 0
    from tilewise.launch import worker

    path = worker.find()
    if join.nodes > 1 and (trouble := worker.trouble(path)):
        return _leave(trouble)
    if path is None or foreign(join, worker.build_facts(path).get("mpi", "wheel")):
        return 0  # rank 0 sees it too; an exit code of ours might make the launcher kill it before it says so
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as rank 0's worker has it
    if join.local > (os.cpu_count() or 1):
        for name, value in worker.YIELDING.items():
            os.environ.setdefault(name, value)
    os.environ[worker.PHASE] = worker.NO_PHASE
    sys.stdout.flush()
    try:
        os.execv(path, [path, "--expect", str(join.size), "--joined"])
    except OSError:
        return 2


def _leave(trouble: str) -> int:
    """Say, once a node, why its ranks cannot start, and end all others, which would wait for them."""
    local = ("SLURM_LOCALID", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK")
    if all(os.environ.get(key, "0") == "0" for key in local):
        print(f"tilewise: {trouble}\n  try: the same tilewise on every host", file=sys.stderr, flush=True)
    time.sleep(_LAST_WORDS)
    end_all()
    return 2


def end_all() -> None:
    """End all ranks of the job, which would wait for us.

    srun without -K ends nothing by itself, nor does hydra for a rank on another host that never started MPI:
    so we say what MPI_Abort says to it.
    """
    if in_step(os.environ):
        cancel_step(gently=True)
    elif (descriptor := os.environ.get("PMI_FD", "")).isdigit():
        with contextlib.suppress(OSError):
            os.write(int(descriptor), b"cmd=init pmi_version=1 pmi_subversion=1\n")
            os.read(int(descriptor), 4096)
            os.write(int(descriptor), b"cmd=abort exitcode=2\n")


def cancel_step(gently: bool = False) -> None:
    """Ask Slurm to end the step that we are in, without waiting, as that ends us; `gently`: all may clear up.

    Without it, srun waits for a node that does not answer, or for a daemon of its own that was killed, until
    Slurm itself gives them up. Outside of a step nothing is done: a batch script is not ours to end.
    """
    job = os.environ.get("SLURM_JOB_ID", "")
    if not (job.isdigit() and in_step(os.environ)):
        return
    import shutil
    import subprocess

    if (scancel := shutil.which("scancel")) is not None:
        subprocess.Popen(
            [scancel, *(["--signal=TERM"] if gently else []), f"{job}.{os.environ['SLURM_STEP_ID']}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
