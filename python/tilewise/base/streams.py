"""Streams: names that are no files to be replaced, and bytes from one open file to another.

A stream is a pipe, a terminal, or what a program has open already.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat

_OPEN_FILE = re.compile(r"/proc/(?P<process>\d+)(/task/\d+)?/fd/(?P<descriptor>\d+)")
_LINKS_MAX = 40
_PIECE = 1 << 20  # bytes, also of a pipe: what Linux lets anybody ask for
_CANNOT = (errno.EINVAL, errno.ENOSYS)  # neither is a pipe, or the file system has no such way


def is_stream(path: str) -> bool:
    """Return whether `path` is written in place: a pipe, a socket, a device, an open file (`/dev/stdout`)."""
    if _open_file(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def write_stream(path: str, content: bytes) -> None:
    """Writes `content` behind what was written before; a reader that leaves, as `head` does, is no failure.

    Raises OSError.
    """
    opened = _open_file(path)
    if opened is not None and int(opened["process"]) == os.getpid():
        descriptor = os.dup(int(opened["descriptor"]))  # with its place in the file
    else:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    with contextlib.suppress(BrokenPipeError), open(descriptor, "wb", buffering=0) as stream:
        left = memoryview(content)
        while left:
            left = left[stream.write(left) :]


def _open_file(path: str) -> re.Match[str] | None:
    """The process and descriptor that `path` means, perhaps over links; None where it means none."""
    step = path
    for _ in range(_LINKS_MAX):
        folder = os.path.dirname(step)
        real = os.path.join(os.path.realpath(folder), os.path.basename(step))
        if opened := _OPEN_FILE.fullmatch(real):
            return opened
        if not os.path.islink(step):
            return None
        step = os.path.join(folder, os.readlink(step))
    return None


def pour(source: int, target: int) -> None:
    """Copy what is left in `source` to `target`, inside the kernel where it can. Raises OSError."""
    for descriptor in (source, target):
        with contextlib.suppress(OSError, AttributeError):  # no pipe, or as many are large as may be
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIECE)
    try:
        while os.splice(source, target, _PIECE):
            pass
        return
    except AttributeError:  # not on this system
        pass
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
    while piece := os.read(source, _PIECE):
        left = memoryview(piece)
        while left:
            left = left[os.write(target, left) :]
