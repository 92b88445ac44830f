"""Runs one command line of ours as a process of its own, as a user would, and keeps what it said."""

from __future__ import annotations

import contextvars
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

import msgspec

from tilewise.base import programs
from tilewise.base.errors import (
    WARNING,
    Interrupted,
    RunError,
    Stopped,
    TilewiseError,
    UsageError,
    VerificationError,
)
from tilewise.engine.request import PROGRESS
from tilewise.launch import environment, worker

Hear = Callable[[str, float], None]  # a phase, and how much of it is done
_TICK = 1.0  # seconds after which it is told once more, where nothing has changed: times go on
_LEAVING = 60.0  # seconds in which a command that was asked to end removes what it has made
_TYPES: tuple[type[TilewiseError], ...] = (UsageError, VerificationError, Stopped, Interrupted)


class Ended(msgspec.Struct, frozen=True):
    """How a command ended; `seconds` is its whole time, from before its start to after its end."""

    exit_code: int
    output: bytes
    errors: str
    seconds: float
    timed_out: bool = False

    def warnings(self) -> list[str]:
        """Warnings that it printed, once each."""
        lines = self.errors.splitlines()
        return list(dict.fromkeys(line.removeprefix(WARNING) for line in lines if line.startswith(WARNING)))

    def message(self) -> str:
        """The one sentence it said on failure, with its advice; a dead process says by which signal."""
        said = "; try: ".join(" ".join(part.split()) for part in self.errors.split("\n  try: "))
        said = said.removeprefix("tilewise: ")
        if self.timed_out:
            return f"ended after {self.seconds:.1f} s, beyond its time limit{': ' if said else ''}{said}"
        if self.exit_code < 0:
            return f"killed by {signal.Signals(-self.exit_code).name}{': ' if said else ''}{said}"
        return said or f"exit code {self.exit_code}"

    def fail(self) -> NoReturn:
        """Raises the error that its exit code stands for, with its own words."""
        lines = self.errors.strip().splitlines() or [self.message()]
        begin = max((i for i, line in enumerate(lines) if line.startswith("tilewise: ")), default=0)
        advice = [line.removeprefix("  try: ") for line in lines[begin + 1 :] if line.startswith("  try: ")]
        kind = next((each for each in _TYPES if each.exit_code == self.exit_code), RunError)
        raise kind(lines[begin].removeprefix("tilewise: "), advice[0] if advice else "")


def run_words(words: list[str], folder: str, timeout: float | None = None, hear: Hear | None = None) -> Ended:
    """Runs `tilewise words…` in `folder` by this Python; on any exception, the child is ended first.

    `hear` is told in a thread of its own how far each phase is. May be called in any thread, and in a rank of
    an MPI job, whose environment the child does not get: the command then starts a job of its own. The child
    is asked to end too where this process is killed.
    """
    with _heard(hear) as told:
        return _run(words, folder, timeout, told)


def _run(words: list[str], folder: str, timeout: float | None, told: dict[str, str]) -> Ended:
    begin = time.perf_counter()
    child = subprocess.Popen(
        worker.tied(programs.command(words)),
        cwd=folder,
        env={**_environment(), **told},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[int(each) for each in told.values()],
        start_new_session=True,  # Ctrl-C is ours to pass on, once
    )
    try:
        output, errors = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        output, errors = _end(child)
        return Ended(
            child.returncode, output, errors.decode(errors="replace"), time.perf_counter() - begin, True
        )
    except BaseException:
        _end(child)
        raise
    return Ended(child.returncode, output, errors.decode(errors="replace"), time.perf_counter() - begin)


@contextmanager
def _heard(hear: Hear | None) -> Iterator[dict[str, str]]:
    """Environment that tells a child where its progress is read, and passed on to `hear`."""
    if hear is None:
        yield {}
        return
    reading, writing = os.pipe()
    # What is shown in a notebook belongs to the cell that calls, which its context tells.
    context = contextvars.copy_context()
    listener = threading.Thread(target=context.run, args=(_listen, reading, hear), daemon=True)
    listener.start()
    try:
        yield {PROGRESS: str(writing)}
    finally:
        os.close(writing)
        listener.join(_LEAVING)


def _listen(reading: int, hear: Hear) -> None:
    waiting = select.poll()
    waiting.register(reading, select.POLLIN)
    rest = b""
    news: list[bytes] = []
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        while True:
            if waiting.poll(_TICK * 1000):
                if not (piece := pipe.read(select.PIPE_BUF)):
                    return
                *news, rest = (rest + piece).split(b"\n")
            for line in news:
                share, _, phase = line.decode().strip().partition(" ")
                hear(phase, float(share))
            news = news[-1:]


def _end(child: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Asks the command to end, which removes its part files and ranks; kills what does not hear."""
    child.terminate()
    try:
        return child.communicate(timeout=_LEAVING)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return child.communicate()


def _environment() -> dict[str, str]:
    """Ours, but for what makes us a rank of a job, with this very package found first by the child.

    Where it looks for modules does not depend on the folder that it is started in.
    """
    import tilewise

    ours = os.path.dirname(os.path.abspath(next(iter(tilewise.__path__))))
    others = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    paths = [ours, *map(os.path.abspath, others)]
    return {**environment.alone(os.environ), "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
