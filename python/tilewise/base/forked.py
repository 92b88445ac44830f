"""Work in a copy of this process: a library in a call hears no signals, and takes what it likes."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import time
from collections.abc import Callable
from typing import NoReturn

import msgspec

from tilewise.base.errors import RunError, TilewiseError, UsageError, VerificationError
from tilewise.base.processes import death_signal

_TICK = 0.05
_STACK = 8 << 20  # bytes of address space that a thread of a library has, on each core
_KINDS: dict[int, type[TilewiseError]] = {
    kind.exit_code: kind for kind in (RunError, UsageError, VerificationError)
}


class DiedError(RunError):
    """The child ended before its work did."""


class Bounds(msgspec.Struct, frozen=True):
    """Bytes of memory that a child may take beyond what it begins with, and of each file that it writes."""

    memory: int
    file: int


def run(
    work: Callable[[], None],
    check: Callable[[], None] = lambda: None,
    deadline: float | None = None,
    late: RunError | None = None,
    bounds: Bounds | None = None,
) -> None:
    """Returns when the child has done `work` within `bounds`, and raises the error that it raised there.

    Meanwhile `check` is called again and again and may raise, and `late` is raised at `deadline`, which is a
    time of `time.monotonic`; the child is killed then. What `work` does to memory is lost: only what it does
    to files is seen here.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _work(work, writer, bounds)
    os.close(writer)
    received = b""
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(reader, selectors.EVENT_READ)
            while True:
                check()
                if late is not None and deadline is not None and time.monotonic() > deadline:
                    raise late
                if not selector.select(_TICK):
                    continue
                if not (piece := os.read(reader, 1 << 16)):
                    break
                received += piece
    except BaseException:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(reader)
        _, status = os.waitpid(pid, 0)
    if received:
        code, message, advice = msgspec.json.decode(received, type=tuple[int, str, str])
        raise _KINDS.get(code, RunError)(message, advice)
    if status:
        raise DiedError(
            f"a child of the command died with status {os.waitstatus_to_exitcode(status)}",
            "look for 'out of memory' in the kernel's log",
        )


def _work(work: Callable[[], None], writer: int, bounds: Bounds | None) -> NoReturn:
    status = 1
    try:
        death_signal()()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # they are the parent's to hear
        try:
            if bounds is not None:
                _bind(bounds)
            work()
        except TilewiseError as error:
            _say(writer, error)
        except Exception as error:  # as anywhere else: one message
            _say(writer, RunError(f"an internal error: {type(error).__name__}: {error}", "report it"))
        status = 0
    finally:
        os._exit(status)


def _bind(bounds: Bounds) -> None:
    """Limit this process, so that asking for more fails at once. Files that are mapped do not count."""
    with open("/proc/self/statm", encoding="ascii") as file:
        held = int(file.read().split()[5]) * resource.getpagesize()
    for kind, most in (
        (resource.RLIMIT_DATA, held + bounds.memory + (os.cpu_count() or 1) * _STACK),
        (resource.RLIMIT_FSIZE, bounds.file),
    ):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _say(writer: int, error: TilewiseError) -> None:
    rest = memoryview(msgspec.json.encode((error.exit_code, error.message, error.advice)))
    while rest:
        rest = rest[os.write(writer, rest) :]
