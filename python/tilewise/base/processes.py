"""Processes: what they do, when they end, how they end together, and what the kernel sends on a death."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
GRACE = 0.5  # seconds between asking and killing
GONE = 60.0  # seconds that the kernel may take to free what a killed process held: terabytes, on a busy node


def children(pid: int) -> dict[int, bool]:
    """Children of `pid`, and whether each still runs: one that has ended stays until it is waited for."""
    running = {}
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as listed:
        for child in map(int, listed.read().split()):
            running[child] = state(child) not in ("", "Z", "X")
    return running


def state(pid: int) -> str:
    """The kernel's letter for what `pid` does (`R`, `S`, `D`, `T` …); empty where there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(") ")[2][:1]
    except OSError:
        return ""


def stopped(pid: int) -> list[int]:
    """Which of `pid` and its children a signal has stopped."""
    return [each for each in (pid, *children(pid)) if state(each) == "T"]


def environment(pid: int) -> dict[str, str]:
    """The variables that `pid` was started with; none where it has gone, or is somebody else's."""
    try:
        with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
            return dict(word.partition("=")[::2] for word in file.read().split("\0") if word)
    except OSError:
        return {}


def is_traced(pid: int) -> bool:
    """Return whether a debugger holds `pid`."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in file)
    except OSError:
        return False


def has_buried(pid: int) -> bool:
    """Return whether `pid` has waited for a child that had ended, whose page faults then count as its."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(") ")[2].split()[8] != "0"
    except (OSError, IndexError):
        return False


def memory_kills() -> int:
    """Return how many processes the kernel of this host has killed because there was no memory left."""
    try:
        with open("/proc/vmstat", encoding="ascii") as file:
            return next((int(line.split()[1]) for line in file if line.startswith("oom_kill ")), 0)
    except OSError:
        return 0


def marked(mark: str) -> list[psutil.Process]:
    """Processes with `mark` in their environment: what a child has started, whatever its parent is by now."""
    import psutil

    name, _, value = mark.partition("=")
    processes: list[psutil.Process] = []
    for pid in _others() if mark else ():
        if environment(pid).get(name) == value:
            with contextlib.suppress(psutil.Error):
                processes.append(psutil.Process(pid))
    return processes


def any_marked(name: str, begin: str) -> bool:
    """Return whether there is a process in whose environment the variable `name` begins so."""
    return any(environment(pid).get(name, "").startswith(begin) for pid in _others())


def _others() -> Iterator[int]:
    """PIDs of all processes but this one."""
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if entry.isdigit() and int(entry) != os.getpid():
            yield int(entry)


def pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when `pid` ends, so that no tick is waited for, or None."""
    if sys.platform == "linux" and hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            return os.pidfd_open(pid)
    return None


def death_signal() -> Callable[[], object]:
    """Return a call by which a child is killed when its parent dies: one system call, safe after a fork."""
    return functools.partial(_prctl(), _PR_SET_PDEATHSIG, signal.SIGKILL)


def end_tree(child: subprocess.Popen[bytes], others: Iterable[int], program: str, mark: str = "") -> None:
    """Ends `child`, all its descendants, those in whose environment `mark` stands, and those of `others` that
    are `program`; they are gone on return.

    Asked first, killed after half a second: a launcher that is asked can still end ranks on other hosts. What
    a launcher leaves behind, such as ranks that it was just starting, becomes ours, and is ended as well.
    """
    spared = {process.pid for process in _tree(os.getpid())} - {process.pid for process in _tree(child.pid)}
    ranks = [rank for pid in others if (rank := living(pid, program)) is not None]

    def below() -> list[psutil.Process]:
        return [process for process in _tree(os.getpid()) if process.pid not in spared]

    def look() -> list[psutil.Process]:
        return [process for process in {*below(), *marked(mark), *ranks} if _runs(process)]

    def left() -> list[psutil.Process]:
        return look() or look()  # one that is not listed yet may have been started by one that has just gone

    with _adopting():
        for victim in left():
            _quietly(victim.terminate)
        if not _gone(left, GRACE):
            _kill(left)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=GRACE)
        for process in below():
            with contextlib.suppress(OSError):
                os.waitpid(process.pid, os.WNOHANG)


def outliving(pids: Iterable[int], program: str, patience: float) -> list[psutil.Process]:
    """Processes of `pids` that are really `program` and still live after `patience` seconds.

    Patience is for ranks that leave MPI later than the one we waited for: killing them would fail the job.
    """
    ranks = [rank for pid in pids if (rank := living(pid, program)) is not None]
    if ranks:
        _gone(lambda: [rank for rank in ranks if _runs(rank)], patience)
    return [rank for rank in ranks if _runs(rank)]


def kill(ranks: Iterable[psutil.Process]) -> None:
    """Kills those that still live; they are gone on return."""
    ranks = list(ranks)
    _kill(lambda: [rank for rank in ranks if _runs(rank)])


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


def _gone(left: Callable[[], list[psutil.Process]], seconds: float) -> bool:
    """Return whether nothing is left within `seconds`; a zombie counts as gone."""
    deadline = time.monotonic() + seconds
    while left():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _kill(left: Callable[[], list[psutil.Process]]) -> None:
    """Kills what is left again and again: it may just have started something, and takes a while to go."""
    deadline = time.monotonic() + GONE
    while (living := left()) and time.monotonic() < deadline:
        for process in living:
            _quietly(process.kill)
        time.sleep(0.01)


@contextlib.contextmanager
def _adopting() -> Iterator[None]:
    """Adopt what loses its parent below us meanwhile, so that it is not lost from sight."""
    prctl = _prctl()
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0)


@functools.cache
def _prctl() -> Callable[[int, int], object]:
    """The kernel's, where it is Linux's; else what does nothing."""
    if sys.platform != "linux":
        return lambda what, value: None
    call = ctypes.CDLL(None).prctl
    return lambda what, value: call(what, value, 0, 0, 0)


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
