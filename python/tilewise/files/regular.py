"""Opens an input as a regular file, and says in one sentence why where that is not possible.

Design: docs/design/formats.md.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import stat
import warnings
from collections.abc import Iterator
from typing import BinaryIO, TypeVar

from tilewise.base.errors import DISK_ERRORS, Interrupted, TilewiseError, UsageError, disk_failure, one_line
from tilewise.base.units import nearest
from tilewise.files.checks import MANIFEST

_Kind = TypeVar("_Kind", bound=BaseException)


def open_regular(path: str, name: str) -> tuple[BinaryIO, int]:
    """The file at `path`, opened for reading, and its size in bytes; `name` is what the user wrote.

    Raises UsageError for what is missing, unreadable, or no regular file. A FIFO is never opened, because
    that would wait for a writer.
    """
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            refuse_results(path, name)
        require_regular(mode, name)
        # Non-blocking, so that a file swapped for a FIFO since the check cannot hang us either.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise cannot_read(error, path, name) from None
    file = os.fdopen(descriptor, "rb")
    status = os.fstat(descriptor)
    try:
        require_regular(status.st_mode, name)
    except UsageError:
        file.close()
        raise
    return file, status.st_size


def size_of(path: str, name: str, kind: str) -> int:
    """Size of the file at `path` in bytes; UsageError as for `open_regular`, and for an empty one."""
    file, size = open_regular(path, name)
    file.close()
    if size == 0:
        raise UsageError(f"{name} is empty, but a {kind} was expected")
    return size


class Bounded(io.BufferedReader):
    """A file that gives at most what it holds, and takes no memory for more: a length in it may lie."""

    def __init__(self, path: str) -> None:
        super().__init__(io.FileIO(path))
        self._size = os.fstat(self.fileno()).st_size

    def read(self, count: int | None = -1, /) -> bytes:
        """Read at most `count` bytes, or the rest, whatever is asked for."""
        left = max(0, self._size - self.tell())
        return super().read(left if count is None or count < 0 else min(count, left))


def refuse_results(path: str, name: str) -> None:
    """Raises UsageError for a folder with a manifest as ours, and matrices in files of their own."""
    held = sorted(each for each in os.listdir(path) if each.endswith(".npy"))
    if held and os.path.isfile(os.path.join(path, MANIFEST)):
        raise UsageError(
            f"{name} is a folder of results with {', '.join(held)} in it, but a matrix file was expected",
            os.path.join(name, held[0]),
        )


def require_regular(mode: int, name: str) -> None:
    """Raises UsageError unless `mode` is that of a regular file."""
    if stat.S_ISREG(mode):
        return
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe (FIFO)"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    kind = next((text for test, text in kinds if test(mode)), "no regular file")
    raise UsageError(f"{name} is {kind}, but a matrix file was expected")


def cannot_read(error: OSError, path: str, name: str) -> UsageError:
    """The error to raise when `path` cannot be opened."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        if os.path.islink(path):
            return UsageError(f"{name} is a link to {os.readlink(path)}, which does not exist")
        return UsageError(f"{name} does not exist", _neighbour(path))
    if error.errno == errno.EACCES:
        return UsageError(f"{name} cannot be read: permission denied")
    return UsageError(f"{name} cannot be opened: {error.strerror or error}")


def require_utf8(path: str) -> None:
    """Raises UsageError for a name that JSON cannot carry to the worker."""
    try:
        path.encode()
    except UnicodeEncodeError:
        shown = path.encode(errors="surrogateescape").decode(errors="replace")
        raise UsageError(f"the name {shown} is not valid UTF-8; rename the file") from None


def refuse_url(name: str) -> None:
    """Raises UsageError for the address of something elsewhere."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name) and not os.path.lexists(name):
        raise UsageError(f"{name} is a URL, but a file was expected", "copy it to a file system here first")


def _neighbour(path: str) -> str:
    """Names of files in the same folder that look like a slip of the keyboard away."""
    folder, base = os.path.split(path)
    stem = os.path.splitext(base)[0]  # an extension makes all names of a kind alike
    try:
        names = os.listdir(folder or ".")[:10_000]
    except OSError:
        return ""
    near = nearest(base, (name for name in names if nearest(stem, [os.path.splitext(name)[0]])), 0.75)
    return os.path.join(folder, near) if near else ""


@contextlib.contextmanager
def guarded(what: str) -> Iterator[None]:
    """Around code that reads a foreign file; `what` begins the sentence: "A.h5 is not a readable .h5 file".

    Our own errors pass, an interruption above all, also when a library has wrapped it in its own error. A
    full disk is a RunError. Libraries' warnings about odd files are silenced: what matters is checked.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except TilewiseError:
        raise
    except Exception as error:  # a hostile file makes a library raise nearly anything
        if (interruption := _found(error, Interrupted)) is not None:
            raise interruption from None
        reason = one_line(error)
        if _found(error, MemoryError) or re.search("alloc", reason, re.IGNORECASE):  # libraries of C say that
            raise UsageError(
                f"{what}, or it takes more memory to unpack than there may be: {reason}",
                "a larger --memory, where you trust the file",
            ) from None
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            raise disk_failure(what, error) from None
        raise UsageError(f"{what}: {reason}") from None


def _found(error: BaseException | None, kind: type[_Kind]) -> _Kind | None:
    """The first of that kind among an error and those that it hides."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error
