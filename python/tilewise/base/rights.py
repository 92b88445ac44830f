"""Rights of a file, its owner, access list and other attributes, handed on to what replaces it."""

from __future__ import annotations

import contextlib
import os
import stat

_LISTS = ("system.posix_acl_access", "system.posix_acl_default")
_OF_CONTENT = ("security.capability", "security.evm", "security.ima")


def hand_on(old: str, new: str, inode: int = 0) -> None:
    """Give `new`, which we made, what `old` has, as far as the system lets us. Raises nothing.

    With an `inode`, `new` must still be that one. Where the group or the access list cannot be kept, the
    group that the file then has gets no more rights than everybody; nothing that runs as its owner stays so.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(new, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            made = os.fstat(descriptor)
            folder = stat.S_ISDIR(made.st_mode)
            if made.st_uid == os.geteuid() and (folder or made.st_nlink == 1) and inode in (0, made.st_ino):
                _hand_on(old, descriptor, folder)
        finally:
            os.close(descriptor)


def _hand_on(old: str, new: int, folder: bool) -> None:
    was = os.lstat(old)
    if stat.S_ISLNK(was.st_mode) or stat.S_ISDIR(was.st_mode) != folder:
        return
    for user, group in ((was.st_uid, -1), (-1, was.st_gid)):
        with contextlib.suppress(OSError):
            os.chown(new, user, group)
    mode = stat.S_IMODE(was.st_mode) & (0o7777 if folder else 0o777)
    if not _attributes(old, new) or os.fstat(new).st_gid != was.st_gid:
        mode &= ~0o2070 | (mode & 0o007) << 3
    os.chmod(new, mode)


def _attributes(old: str, new: int) -> bool:
    """Copies them, and whether `new` has the access list of `old`, if there is one."""
    try:
        names = os.listxattr(old, follow_symlinks=False)
        for name in os.listxattr(new):
            if name not in names:
                with contextlib.suppress(OSError):
                    os.removexattr(new, name)
    except OSError:  # a file system without
        return True
    kept = True
    for name in names:
        if name not in _OF_CONTENT:
            try:
                os.setxattr(new, name, os.getxattr(old, name, follow_symlinks=False))
            except OSError:
                kept = kept and name not in _LISTS
    return kept
