"""The child process, a worker or a launcher: its start, the job on its way to it, and its end."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import subprocess
from typing import IO

from tilewise.base.errors import UsageError
from tilewise.launch import constants, worker
from tilewise.launch.connections import Connections
from tilewise.launch.launcher import Start
from tilewise.launch.outcome import Outcome

_LEAVING = 3.0  # seconds for the child to end when the other ranks have
_DISMISSED = 8.0  # seconds for ranks to leave when they are asked to; after 10, the one that failed aborts
_BRIEFLY = 1.0  # seconds for that where a rank is lost, which leaves no more


def spawn(start: Start) -> subprocess.Popen[bytes]:
    """Start the command in its own process group, with pipes for its three streams; it dies with us.

    No code of ours runs between fork and exec: threads, such as a progress bar's, may hold any lock then.
    Raises UsageError when the program cannot be started.
    """
    program = start.command[0]
    missing = os.sep in program and not os.access(program, os.X_OK)
    try:
        if missing:
            raise OSError(errno.ENOENT if not os.path.exists(program) else errno.EACCES, "")
        return subprocess.Popen(
            worker.tied(start.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=start.environment,
            # A rank of somebody else's job talks to its launcher over an inherited descriptor.
            close_fds=not start.launcher.joined,
        )
    except OSError as error:
        raise UsageError(
            f"{program} cannot be started: {os.strerror(error.errno or 0)}", "tilewise doctor"
        ) from None


class Feed:
    """The job on its way to rank 0, no faster than it reads: launchers between may die of a full pipe.

    `read_there` is how many bytes of it rank 0 has said to have read.
    """

    def __init__(self) -> None:
        self.read_there = 0
        self._ahead = constants.seam().job_window  # bytes that go out before rank 0 says what it has read
        self._stream: IO[bytes] | None = None
        self._job = memoryview(b"")
        self._sent = 0
        self._waits = False  # for rank 0 to read more

    def open(self, selector: selectors.BaseSelector, stream: IO[bytes], job: memoryview) -> None:
        """Hands on `job` whenever `stream`, which does not block, takes more."""
        self._stream, self._job = stream, job
        selector.register(stream, selectors.EVENT_WRITE)

    def write(self, selector: selectors.BaseSelector) -> None:
        """Writes what may go, as the stream takes it."""
        stream = self._stream
        assert stream is not None, "it has begun"
        may_go = self.read_there + self._ahead - self._sent
        if may_go <= 0:
            selector.unregister(stream)
            self._waits = True
            return
        try:
            written = os.write(stream.fileno(), self._job[:may_go])
        except BlockingIOError:
            return
        except OSError:
            written = len(self._job)  # the child has gone; its exit tells the rest
        self._sent += written
        self._job = self._job[written:]
        if not self._job:
            selector.unregister(stream)
            with contextlib.suppress(OSError):
                stream.close()

    def resume(self, selector: selectors.BaseSelector) -> None:
        """Go on with writing once rank 0 has read more."""
        if self._waits and self._sent < self.read_there + self._ahead:
            self._waits = False
            assert self._stream is not None, "it has begun"
            selector.register(self._stream, selectors.EVENT_WRITE)


def let_go(child: subprocess.Popen[bytes], connections: Connections, outcome: Outcome) -> None:
    """Ends a child that waits until we have said why the job failed, and all other ranks."""
    gone = outcome.lost is not None or outcome.hang is not None
    _dismiss(connections, outcome, _BRIEFLY if gone else _DISMISSED)
    connections.close()
    close_streams(child)
    try:
        child.wait(0.0 if gone else _LEAVING)
    except subprocess.TimeoutExpired:
        child.kill()


def close_streams(child: subprocess.Popen[bytes]) -> None:
    """Closes our ends of its streams."""
    for stream in (child.stdin, child.stdout, child.stderr):
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()


def _dismiss(connections: Connections, outcome: Outcome, patience: float) -> None:
    """Ask all ranks to leave a failed job, the one that said so last: it aborts the job if need be."""
    failure = outcome.failed or outcome.signalled
    if failure is None:
        connections.dismiss(None, patience)
        return
    for rank in outcome.places:
        if rank.rank == failure.rank:
            connections.dismiss((rank.host, rank.pid), patience)
