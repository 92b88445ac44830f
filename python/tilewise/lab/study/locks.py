"""Locks on points, so that several parts of a study that run at once never launch the same point together.

points.lock   ····x·······x···   no content; each point has a byte of it, far behind the end, which the part
                  │       │      that launches the point holds a lock on
                part a  part b
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator

from tilewise.base.errors import RunError

LOCKS = "points.lock"
# What a file system says that has no locks, as Lustre does where it is mounted without them.
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
_DIGITS = 15  # of a digest, as the place of a byte: below 2^60, which fits into what systems take


def lock(file: int) -> bool:
    """Keeps other processes from locking an open file, until it is closed; False where there are no locks.

    Raises BlockingIOError where another process has it, and OSError as the system does.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True


class Locks:
    """The locks of one results folder. The system drops them when a process dies, however it dies.

    They are POSIX record locks, which NFS has too, and which a process loses when it closes any descriptor
    of the file: nothing else may open it. Within one process they keep nothing apart.
    """

    def __init__(self, folder: str) -> None:
        """Raises OSError where the file cannot be made. It stays: who removes it may part two that wait."""
        self._path = os.path.join(folder, LOCKS)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    @contextlib.contextmanager
    def held(self, name: str) -> Iterator[bool]:
        """Holds the lock called `name`, a digest, meanwhile; False where another process has it.

        Where the file system has no locks, nobody is kept off.
        """
        place = int(name[:_DIGITS], 16)
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):  # systems differ in the word for it
            yield False
            return
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise RunError(f"{self._path} cannot be locked: {error.strerror or error}") from None
            yield True
            return
        try:
            yield True
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, place)

    def close(self) -> None:
        """Drops what is held."""
        os.close(self._file)
