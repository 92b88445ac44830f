"""Ranks that are stopped before they can say anything are found by what the kernel knows of them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from conftest import wait_for
from tilewise.base import processes
from tilewise.launch.events import Beat
from tilewise.launch.liveness import stopped_ranks

MARK = f"TILEWISE_RUN=test-{os.getpid()}"


@contextmanager
def asleep(*variables: str, stop: bool = True) -> Iterator[int]:
    """The pid of a process with these variables, which a signal has stopped."""
    with subprocess.Popen(["env", "-i", *variables, "sleep", "60"]) as child:
        try:
            names = {variable.partition("=")[0] for variable in variables}
            wait_for(lambda: processes.environment(child.pid).keys() == names)
            if stop:
                os.kill(child.pid, signal.SIGSTOP)
                wait_for(lambda: processes.state(child.pid) == "T")
            yield child.pid
        finally:
            child.kill()


def test_one_that_is_stopped_is_named_by_its_launchers_number() -> None:
    for name in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"):
        with asleep(MARK, f"{name}=3") as pid:
            assert stopped_ranks(MARK, 0, set()) == [Beat(rank=3, host=os.uname().nodename, pid=pid)]
            assert stopped_ranks(MARK, 0, {pid}) == [], "it has beaten"


def test_the_only_rank_has_no_number() -> None:
    with asleep(MARK) as pid:
        assert stopped_ranks(MARK, 0, set()) == [], "it is the launcher"
        assert [beat.rank for beat in stopped_ranks(MARK, pid, set())] == [0]


def test_nobody_else_is_taken_for_a_rank() -> None:
    with asleep("TILEWISE_RUN=other", "PMI_RANK=3"), asleep(MARK, "PMI_RANK=3", stop=False):
        assert stopped_ranks(MARK, 0, set()) == []
