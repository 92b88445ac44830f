"""Cleanup after the dead: what they left in shared memory, and a guardian for a front that is killed.

MPI unlinks its segments only at a regular end; a caller who is killed, such as a notebook's kernel that is
restarted, leaves the arrays of its call. Hydra, for one, kills all ranks at once when the front is killed.

front ──pipe──▶ guardian     the claims, anew whenever they change; a last word, or an end without one

Design: docs/design/publication.md.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from tilewise.base import processes
from tilewise.base.claim import Claim, last_word, settle
from tilewise.launch.worker import RUN

FOLDER = "/dev/shm"
# As MPICH, the UCX below it and Open MPI call them, and the age in seconds from which nobody is just making
# one: the first two hold it from that moment on, while Open MPI closes it, and opens it again at once.
_NAMES = {"mpich_sh": 0.0, "ucx_shm_posix_": 0.0, "vader_segment.": 60.0, "sm_segment.": 60.0}
_ARRAYS = "tilewise-arrays-"  # a folder, locked for as long as its owner lives
_DONE = b"done\n"
_PIECE = 1 << 16
_DYING = 10.0  # seconds that ranks may take to follow the front
_LOOK = 0.02  # seconds between two looks for them


def new_folder(parent: str | None) -> tuple[str, int]:
    """Makes a folder for arrays in `parent` (None: where `tempfile` puts files); returns its path and a lock.

    No sweep removes it until that descriptor is closed, as the system does for whoever dies. Raises OSError.
    """
    import tempfile

    while True:
        path = tempfile.mkdtemp(prefix=f"{_ARRAYS}{os.getpid()}-", dir=parent)
        with contextlib.suppress(FileNotFoundError):
            held = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(held, fcntl.LOCK_EX)
            if os.path.isdir(path):  # else a sweep was faster than the lock
                return path, held
            os.close(held)


def sweep(folder: str = FOLDER) -> list[str]:
    """Removes this user's segments and arrays that no process holds any more; returns their paths.

    A segment of a living job, in whatever container, is held: it is open, or mapped, for writing. The kernel
    knows all who do: it grants a lease for reading only on a file that nobody may write to.
    """
    removed: list[str] = []
    if sys.platform != "linux" or not hasattr(fcntl, "F_SETLEASE"):
        return removed
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            age = next((age for name, age in _NAMES.items() if entry.name.startswith(name)), None)
            gone = _remove(entry.path, age) if age is not None else False
            if gone or (entry.name.startswith(_ARRAYS) and _remove_folder(entry.path)):
                removed.append(entry.path)
    return removed


def _remove_folder(path: str) -> bool:
    """Return whether `path` was a folder of this user's that nobody had locked; it is gone then."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for folder, folders, files in os.walk(path, topdown=False):
            for name in (*files, *(each for each in folders if os.path.islink(os.path.join(folder, each)))):
                os.unlink(os.path.join(folder, name))
            os.rmdir(folder)
    except OSError:  # held, or another process was first
        return False
    finally:
        os.close(descriptor)
    return True


def _remove(path: str, age: float) -> bool:
    """Return whether `path` was this user's, as old as that, and held by nobody; it is gone then."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        status = os.fstat(descriptor)
        mine = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if not mine or time.time() - status.st_ctime < age:
            return False
        # Who opens it meanwhile has us told, by a signal that is ignored unless it is handled.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        os.unlink(path)
    except OSError:  # held, or another front was first
        return False
    finally:
        os.close(descriptor)
    return True


class Guardian:
    """A copy of this process, in a session of its own so that no killing of groups reaches it.

    When we end without a word it settles the claims: part files go, what has its name stays, and one line on
    standard error, which begins with `lead`, says which it is. Then it waits for the ranks to follow us, and
    removes the segments of MPI that they leave.
    """

    def __init__(self, claims: Sequence[Claim], lead: str) -> None:
        self._pid, self._pipe = 0, -1
        front, (reader, writer) = os.getpid(), os.pipe()
        try:
            pid = os.fork()
        except OSError:  # where there can be no more processes, there is no guardian
            os.close(reader)
            os.close(writer)
            return
        if pid == 0:
            _guard(front, reader, lead)
        os.close(reader)
        self._pid, self._pipe = pid, writer
        self.tell(claims)

    def tell(self, claims: Sequence[Claim]) -> None:
        """Replace the claims; the guardian has them before anything else is done here."""
        self._say(msgspec.json.encode(list(claims)) + b"\n")

    def dismiss(self) -> None:
        """Nothing is left to guard; safe to call twice."""
        self._say(_DONE)
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        if self._pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = 0

    def _say(self, words: bytes) -> None:
        rest = memoryview(words)
        with contextlib.suppress(OSError):  # somebody has killed it
            while rest and self._pipe >= 0:
                rest = rest[os.write(self._pipe, rest) :]


def _guard(front: int, reader: int, lead: str) -> NoReturn:
    """The guardian's whole life. Nothing of the copy that it is must run on: no handlers, no buffers."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        if reader != 3:
            os.dup2(reader, 3)
        os.dup2(3, 0)
        os.dup2(2, 1)  # whoever reads our output does not wait for the guardian
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        received = b""
        while piece := os.read(0, _PIECE):
            received += piece
            if received.endswith(b"\n"):
                received = received[received.rfind(b"\n", 0, -1) + 1 :]
        if received != _DONE:
            claims = msgspec.json.decode(received.rpartition(b"\n")[0].rpartition(b"\n")[2], type=list[Claim])
            words = [lead, last_word(claims)]
            if left := settle(claims):
                words.append(f"{', '.join(left)} could not be removed")
            os.write(2, f"tilewise: {'; '.join(filter(None, words))}\n".encode(errors="replace"))
            late = time.monotonic() + _DYING
            while processes.any_marked(RUN, f"{front}-") and time.monotonic() < late:
                time.sleep(_LOOK)
            sweep()
    finally:
        os._exit(0)
