"""Ranks at work: a job that takes long, its processes by name, and what MPI keeps in shared memory."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from conftest import Tilewise, wait_for
from oracle import processes_in
from stopwatch import within

RANDOM = "random:9000x9000"
LONG = ("multiply", RANDOM, RANDOM, "-o", "C.npy", "--force", "--kernel", "plain", "-t", 1)


def named(run: Tilewise, name: str) -> list[int]:
    """Pids of the processes of that name that live in the folder of `run`, in the order of their starts."""
    found = []
    for pid in sorted(processes_in(run.folder)):
        try:
            found += [pid] if Path(f"/proc/{pid}/comm").read_text().startswith(name[:15]) else []
        except OSError:
            continue
    return found


def workers(run: Tilewise) -> list[int]:
    """Pids of the ranks that live in the folder of `run`."""
    return named(run, "tilewise-worker")


def at_work(run: Tilewise, ranks: int, *words: object, **more: Any) -> subprocess.Popen[str]:
    """A long job whose ranks are all there."""
    child = run.start(*LONG, "-n", ranks, *words, **more)
    wait_for(lambda: len(workers(run)) == ranks)
    return child


def interrupt(run: Tilewise, child: subprocess.Popen[str], number: int = signal.SIGINT) -> None:
    """Interrupts a command, which says so in one line; within two seconds all of it has gone."""
    with within(2):
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
        wait_for(lambda: not processes_in(run.folder))
    assert (child.returncode, out) == (130, "")
    assert len(err.splitlines()) == 1 and "interrupted" in err


def segments() -> set[str]:
    """Names of MPI's segments in shared memory."""
    return {name for name in os.listdir("/dev/shm") if name.startswith(("mpich_sh", "ucx_shm", "sm_segment"))}
