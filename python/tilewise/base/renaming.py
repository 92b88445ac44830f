"""Gives what is finished its name at once: over nothing, or in exchange with the folder that has it."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
from collections.abc import Callable

ASIDE = ".old"  # behind the name of a new folder: the old one, while both change names in steps
_AT_FDCWD = -100
_NOREPLACE, _EXCHANGE = 1, 2
_MISSING = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)  # a kernel, or a file system, that cannot do it


def name_new(part: str, path: str) -> None:
    """Renames the folder `part` to `path`; FileExistsError where somebody made something there meanwhile."""
    if _renamed(part, path, _NOREPLACE):
        return
    if os.path.lexists(path):  # plain renaming goes over an empty folder
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    os.rename(part, path)


def name_new_file(part: str, path: str) -> None:
    """Renames `part` to `path`, but never over what somebody made there in the meantime: FileExistsError."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: look, then rename
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.replace(part, path)
    else:
        with contextlib.suppress(OSError):  # it has its name; who tidies up tries again, and says so
            os.unlink(part)


def exchange(part: str, path: str) -> str:
    """Lets the folders `part` and `path` change names; returns where what was at `path` is now.

    At once where the kernel and the file system have that. Else by three renamings: for a moment there is no
    `path`, and where the second one fails, the first is taken back. Where the third one fails `path` is new
    all the same, and the old one stays aside.
    """
    if _renamed(part, path, _EXCHANGE):
        return part
    aside = part + ASIDE
    os.rename(path, aside)
    try:
        os.rename(part, path)
    except BaseException:
        os.rename(aside, path)
        raise
    try:
        os.rename(aside, part)
    except OSError:
        return aside
    return part


def _renamed(old: str, new: str, how: int) -> bool:
    """Whether renameat2 did it; False where there is none that can, OSError where it failed."""
    call = _renameat2()
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), how) == 0:
        return True
    number = ctypes.get_errno()
    if number in _MISSING:
        return False
    raise OSError(number, os.strerror(number), new)


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    """The C library's, where it has one."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    call.restype = ctypes.c_int
    function: Callable[..., int] = call
    return function
