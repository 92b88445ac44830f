"""The record's and the timeline's files: checked before the run, given their names behind the result's."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Sequence

from tilewise.base.claim import Claim
from tilewise.base.errors import RunError, UsageError, disk_failure
from tilewise.base.staging import Staged
from tilewise.base.streams import is_stream, write_stream
from tilewise.files.headed import put_head
from tilewise.files.target import check_folder

_LOOK = 512  # bytes in which a file says that it is ours
_MARKS = (b'"tilewise"', b'"traceEvents"', b'content="tilewise')


def check(flag: str, path: str | None, others: list[str], force: bool | None = None) -> None:
    """Raises UsageError unless `path` can be written and is none of `others`, nor in a folder among them.

    Without `force` what lies there must be empty or of ours; None: whoever asks looks himself.
    """
    if path is None or path == "-":
        return
    if not path:
        raise UsageError(f"{flag} expects a file name, not an empty one")
    if path.startswith("-"):
        raise UsageError(f"{flag} expects a file name, not {path}")
    real = os.path.realpath(path)
    if os.path.isdir(real):
        raise UsageError(f"{flag} {path} is a folder, but a file name was expected")
    if is_stream(path):
        return
    known = {os.path.realpath(other) for other in others if other}
    if real in known:
        raise UsageError(f"{flag} {path} is also an input or an output of this job")
    if os.path.dirname(real) in known:
        raise UsageError(f"{flag} {path} is in a folder that holds a matrix of this job", "another place")
    check_folder(os.path.dirname(real), f"{flag} {path}")
    if force is False and os.path.exists(real) and not _ours(real):
        raise UsageError(
            f"{flag} {path} exists and was not written by tilewise, so it is not replaced",
            "another name, or remove it first",
        )


def require_folder(flag: str, folder: str | None, others: Sequence[str] = ()) -> None:
    """Raises UsageError unless files can be made in `folder`, there or new, and it is none of `others`."""
    if folder is None:
        return
    real = os.path.realpath(folder)
    if not folder or (os.path.exists(real) and not os.path.isdir(real)):
        raise UsageError(f"{flag} expects a folder, not {folder!r}")
    if real in map(os.path.realpath, others):
        raise UsageError(f"{flag} {folder} is already used by another flag")
    check_folder(real if os.path.isdir(real) else os.path.dirname(real), f"{flag} {folder}")


def _ours(path: str) -> bool:
    """True if the file at `path` is empty, or a record, timeline or page as we write them."""
    with contextlib.suppress(OSError, EOFError, zlib.error), open(path, "rb") as file:
        head = file.read(_LOOK)
        if head.startswith(b"\x1f\x8b"):
            import gzip

            file.seek(0)
            head = gzip.GzipFile(fileobj=file).read(_LOOK)
        text = head.lstrip()
        return not head or (text[:1] in b"{[<" and (any(mark in text for mark in _MARKS) or text == b"[]"))
    return False


class SideFile:
    """One file beside the result, under a hidden name until `name`; with no `path` there is none.

    What goes to a stream is made in the working folder, and sent by `name`.
    """

    def __init__(self, what: str, path: str | None, identity: str) -> None:
        self._what = what
        self._stream = path if path and is_stream(path) else ""
        made_here = what.rsplit(maxsplit=1)[-1]  # "record", "timeline"
        self._path = os.path.realpath(made_here if self._stream else path) if path else ""
        self._staged = Staged.beside(self._path, identity, more=[".gz"])
        self.part = self._staged.part if path else ""
        self.claim = self._staged.claim if path else Claim("", "")
        self._ready = False

    def put(self, content: bytes) -> None:
        """Writes what the file will hold. Raises RunError."""
        if not self.part:
            return
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.part)
            os.close(self._staged.make())
            put_head(self.part, content)
        except OSError as error:
            raise self._lost(error) from None
        self._ready = True

    def reserve(self) -> None:
        """Makes the hidden file, empty, so that others can see whether they look into the same folder."""
        if not self.part:
            return
        try:
            os.close(self._staged.make())
        except OSError as error:
            raise self._lost(error) from None

    def finish(self) -> None:
        """Makes ready what a worker has written, compressed when its name ends in `.gz`. Raises RunError."""
        if not self.part:
            return
        try:
            if self._path.endswith(".gz"):
                import gzip
                import shutil

                packed = self.part + ".gz"
                with (
                    open(self.part, "rb") as plain,
                    open(packed, "xb") as file,
                    gzip.open(file, "wb", compresslevel=5) as out,
                ):
                    shutil.copyfileobj(plain, out, 1 << 20)
                os.replace(packed, self.part)
                self.claim.inode = os.stat(self.part).st_ino
            os.stat(self.part)
        except OSError as error:
            raise self._lost(error) from None
        self._ready = True

    def name(self) -> None:
        """Gives what is ready its name, whatever was there. Raises RunError."""
        if not self._ready:
            return
        try:
            if self._stream:
                with open(self.part, "rb") as file:
                    write_stream(self._stream, file.read())
            else:
                self._staged.take_name()
        except OSError as error:
            raise self._lost(error) from None
        self._ready = False
        self.discard()

    def discard(self) -> None:
        """Removes what has no name."""
        if self.part:
            self._staged.discard()

    def _lost(self, error: OSError) -> RunError:
        return disk_failure(f"{self._what} {self._stream or self._path} cannot be written", error)
