"""Watches what a call does beside its work: files opened, programs started, memory that it cannot have."""

from __future__ import annotations

import contextlib
import functools
import os
import resource
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECONDS = 1.0  # of processor time that one input may take
ROOM = 1 << 30  # bytes of address space beyond what there is when the watch begins
_STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "pty.spawn")
_REACHES = ("socket.connect", "socket.getaddrinfo", "ctypes.dlopen", "webbrowser.open")
_CHANGES = (
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.truncate",
)
_OURS = tuple({sys.prefix, sys.base_prefix, sysconfig.get_path("purelib"), str(Path(__file__).parents[2])})
_SYSTEM = ("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/usr/share/", "/etc/mime.types", "/etc/localtime")


class BrokenPromise(Exception):  # noqa: N818 - it is a promise that is broken, whatever the name of that
    """What a fuzzed call did and must never do."""


class _Watch:
    def __init__(self) -> None:
        self.folder = ""  # where a call may read and write; empty: nobody watches
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.folder:
            return
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            self._path(
                event, arguments[0], bool((arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
            )
        elif event in _CHANGES:
            for each in arguments[:2]:
                if isinstance(each, (str, bytes)):
                    self._path(event, each, True)
        elif event in _STARTS or event in _REACHES:
            self.seen.append(f"{event} {arguments!r}"[:300])

    def _path(self, event: str, path: str | bytes, writes: bool) -> None:
        where = os.path.join(self.folder, os.fsdecode(path))
        plain = os.path.normpath(where)
        if plain == self.folder or plain.startswith(self.folder + os.sep):
            return
        if not writes and plain.startswith((*_OURS, *_SYSTEM)):
            return  # a module that is imported late, or what the system says of itself
        self.seen.append(f"{event} {where}")


_WATCH = _Watch()


@functools.cache
def _hook() -> None:
    sys.addaudithook(_WATCH)  # which nobody can take away again


def limit_memory() -> None:
    """From now on this process can have `ROOM` more than it has: what asks for more fails at once."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


@contextlib.contextmanager
def watched(folder: str, most: float = SECONDS) -> Iterator[None]:
    """Raises BrokenPromise where what is inside leaves `folder`, starts something, or is slow."""
    _hook()
    _WATCH.folder, _WATCH.seen = os.path.realpath(folder), []
    begin = time.process_time()
    try:
        yield
    finally:
        _WATCH.folder = ""
        seconds = time.process_time() - begin
    if _WATCH.seen:
        raise BrokenPromise(_WATCH.seen[0])
    if seconds > most:
        raise BrokenPromise(f"{seconds:.1f} s of processor time")


def ran_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error is, or hides, that no memory could be had."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False
