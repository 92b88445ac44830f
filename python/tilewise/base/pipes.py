"""Bytes from one open file to another, also pipes, not by way of this process where the system can do so."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os

_PIECE = 1 << 20  # bytes, also of a pipe: what Linux lets anybody ask for
_CANNOT = (errno.EINVAL, errno.ENOSYS)  # neither is a pipe, or the file system has no such way


def pour(source: int, target: int) -> None:
    """All that is left in `source` to `target`, from where both are. Raises OSError."""
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
