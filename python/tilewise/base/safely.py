"""Opens what an earlier run has left, in a folder where others may have put something else by that name."""

from __future__ import annotations

import contextlib
import errno
import os
import pwd
import stat
from collections.abc import Iterator

_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # of a FIFO too nobody waits for the other end


def open_file(path: str, flags: int = os.O_RDONLY, at: int | None = None) -> int:
    """A descriptor of the regular file at `path`, in the open folder `at`, which has no other name.

    What is written to must be ours. Raises OSError.
    """
    try:
        descriptor = os.open(path, flags | _SAFELY, 0o666, dir_fd=at)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PermissionError(errno.EPERM, f"{path} is a link", path) from None
        raise
    found = os.fstat(descriptor)
    reads = flags & os.O_ACCMODE == os.O_RDONLY
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and (reads or found.st_uid == os.geteuid()):
        return descriptor
    os.close(descriptor)
    raise PermissionError(errno.EPERM, f"{path} is not a file of ours alone", path)


@contextlib.contextmanager
def opened(folder: str, at: int | None = None) -> Iterator[int]:
    """A descriptor of the folder, which is no link. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | _SAFELY, dir_fd=at)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def other_owner(path: str) -> str:
    """Name the owner of what lies at `path`; empty where that is us. Raises OSError."""
    user = os.lstat(path).st_uid
    if user == os.geteuid():
        return ""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
