"""Removes what the dead have left in shared memory: segments of MPI, and arrays on their way to ranks.

MPI unlinks its segments only at a regular end; a caller who is killed, such as a notebook's kernel that is
restarted, leaves the arrays of its call.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat
import sys
import time

FOLDER = "/dev/shm"
# As MPICH, the UCX below it and Open MPI call them, and the age in seconds from which nobody is just making
# one: the first two hold it from that moment on, while Open MPI closes it, and opens it again at once.
_NAMES = {"mpich_sh": 0.0, "ucx_shm_posix_": 0.0, "vader_segment.": 60.0, "sm_segment.": 60.0}
_ARRAYS = "tilewise-arrays-"  # a folder, locked for as long as its owner lives


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
    """Whether `path` was a folder of this user's that nobody had locked; it is gone then."""
    import shutil

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path)
    except OSError:  # held, or another process was first
        return False
    finally:
        os.close(descriptor)
    return True


def _remove(path: str, age: float) -> bool:
    """Whether `path` was this user's, as old as that, and held by nobody; it is gone then."""
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
