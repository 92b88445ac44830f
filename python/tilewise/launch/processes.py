"""Starts a child that dies with us, and ends it with everything below it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tilewise.errors import UsageError
from tilewise.launch.launcher import Start

if TYPE_CHECKING:
    import psutil

_PR_SET_PDEATHSIG = 1
GRACE = 0.5  # seconds between asking and killing
LEAVING = 3.0  # seconds in which ranks may end after the first has


def spawn(start: Start) -> subprocess.Popen[bytes]:
    """Starts the command in its own process group, with pipes for its three streams.

    Raises UsageError when the program cannot be started.
    """
    try:
        return subprocess.Popen(
            start.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=start.environment,
            # A rank of somebody else's job talks to its launcher over an inherited descriptor.
            close_fds=not start.joined,
            preexec_fn=_dies_with(os.getpid()),  # noqa: PLW1509 - no threads are running yet
        )
    except OSError as error:
        raise UsageError(
            f"{start.command[0]} cannot be started: {error.strerror or error}", "tilewise doctor"
        ) from None


def descendants(pid: int) -> list[int]:
    """Pids of `pid` and of all below it that live now."""
    return [process.pid for process in _tree(pid)]


def end_tree(child: subprocess.Popen[bytes], others: Iterable[int], program: str) -> None:
    """Ends `child`, all its descendants, and those of `others` that are `program`, within about a second.

    Asked first, killed after half a second: a launcher that is asked can still end ranks on other hosts.
    """
    victims = _tree(child.pid) + [rank for pid in others if (rank := living(pid, program)) is not None]
    for victim in victims:
        _quietly(victim.terminate)
    child_gone = _wait(victims, GRACE)
    if not child_gone:
        victims += _tree(child.pid)
        for victim in victims:
            _quietly(victim.kill)
        _wait(victims, GRACE)
    try:
        child.wait(timeout=GRACE)
    except subprocess.TimeoutExpired:
        _quietly(child.kill)


def end_leftovers(pids: Iterable[int], program: str) -> int:
    """Kills those of `pids` that still live after a moment and are really `program`; returns how many.

    The moment is for ranks that leave MPI later than the one we waited for: killing them would fail the job.
    """
    left = [rank for pid in pids if (rank := living(pid, program)) is not None]
    if not left or _wait(left, LEAVING):
        return 0
    left = [rank for rank in left if _runs(rank)]
    for rank in left:
        _quietly(rank.kill)
    _wait(left, GRACE)
    return len(left)


def living(pid: int, program: str) -> psutil.Process | None:
    """The process `pid` when it lives and runs `program`: a pid alone may by now be somebody else's."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None  # as nearly always at the end of a job, when importing psutil would be felt
    except OSError:
        pass  # it is somebody else's; what it runs tells
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        words = [process.name(), *process.cmdline()[:3]]
    except (psutil.Error, OSError):
        return None
    base = os.path.basename(program)
    return process if any(os.path.basename(word) in (base, base[:15]) for word in words) else None


def _tree(pid: int) -> list[psutil.Process]:
    import psutil

    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.Error:
        return []


def _wait(victims: list[psutil.Process], seconds: float) -> bool:
    """Whether all are gone within `seconds`; a zombie counts as gone."""
    deadline = time.monotonic() + seconds
    while True:
        victims = [victim for victim in victims if _runs(victim)]
        if not victims:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)


def _runs(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:  # it went between the two questions
        return False


def _quietly(action: Callable[[], object]) -> None:
    import psutil

    with contextlib.suppress(psutil.Error, OSError):  # it has gone by itself
        action()


def _dies_with(parent: int) -> Callable[[], None]:
    """What a new child does first: own process group, no blocked signals, and a signal when we die."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def first() -> None:
        os.setpgid(0, 0)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if os.getppid() != parent:  # we died before the kernel was told
                os._exit(1)

    return first
