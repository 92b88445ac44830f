"""The record's and the timeline's files: checked before the run, given their names behind the result's."""

from __future__ import annotations

import contextlib
import os

from tilewise.errors import RunError, UsageError
from tilewise.files.claim import Claim
from tilewise.files.guard import disk_failure
from tilewise.files.headed import put_head
from tilewise.files.owner import part_path
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
        raise UsageError(f"{flag} wants a file name, not an empty one")
    if path.startswith("-"):
        raise UsageError(f"{flag} wants a file name, not {path}")
    real = os.path.realpath(path)
    if os.path.isdir(real):
        raise UsageError(f"{flag} {path} is a folder, but a file name was expected")
    if os.path.exists(real) and not os.path.isfile(real):
        raise UsageError(
            f"{flag} {path} is no regular file, and would be replaced",
            f"{flag} - for standard output" if flag == "--json" else "a name that is free",
        )
    known = {os.path.realpath(other) for other in others if other}
    if real in known:
        raise UsageError(f"{flag} {path} is also an input or an output of this job")
    if os.path.dirname(real) in known:
        raise UsageError(
            f"{flag} {path} would lie in a folder that holds a matrix of this job", "another place"
        )
    check_folder(os.path.dirname(real), f"{flag} {path}")
    if force is False and os.path.exists(real) and not _ours(real):
        raise UsageError(
            f"{flag} {path} exists and was not written by tilewise; it is not replaced",
            "another name, or remove it first",
        )


def _ours(path: str) -> bool:
    """Whether the file at `path` is empty, or a record, timeline or page as we write them."""
    with contextlib.suppress(OSError, EOFError), open(path, "rb") as file:
        head = file.read(_LOOK)
        if head.startswith(b"\x1f\x8b"):
            import gzip

            file.seek(0)
            head = gzip.GzipFile(fileobj=file).read(_LOOK)
        text = head.lstrip()
        return not head or (text[:1] in b"{[<" and (any(mark in text for mark in _MARKS) or text == b"[]"))
    return False


class SideFile:
    """One file beside the result, under a hidden name until `name`; with no `path` there is none."""

    def __init__(self, what: str, path: str | None, identity: str) -> None:
        self._what = what
        self._path = os.path.realpath(path) if path else ""
        self.part = part_path(self._path, identity) if path else ""
        self.claim = Claim(self._path, "", undo=[self.part, f"{self.part}.gz"] if path else [])
        self._ready = ""  # the hidden file that may take the name

    def put(self, content: bytes) -> None:
        """Writes what the file will hold. Raises RunError."""
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.part)
            with open(self.part, "xb"):
                pass
            put_head(self.part, content)
        except OSError as error:
            raise self._lost(error) from None
        self._ready = self.part

    def finish(self) -> None:
        """Makes ready what a worker has written, compressed when its name ends in `.gz`. Raises RunError."""
        if not self.part:
            return
        try:
            if self._path.endswith(".gz"):
                import gzip
                import shutil

                packed = self.part + ".gz"
                with open(self.part, "rb") as plain, gzip.open(packed, "wb", compresslevel=5) as out:
                    shutil.copyfileobj(plain, out, 1 << 20)
                self._ready = packed
            else:
                os.stat(self.part)
                self._ready = self.part
        except OSError as error:
            raise self._lost(error) from None

    def name(self) -> None:
        """Gives what is ready its name, whatever was there. Raises RunError."""
        if not self._ready:
            return
        try:
            os.replace(self._ready, self._path)
        except OSError as error:
            raise self._lost(error) from None
        self._ready = ""
        self.discard()

    def discard(self) -> None:
        """Removes what has no name."""
        self.claim.settle()

    def _lost(self, error: OSError) -> RunError:
        return disk_failure(f"{self._what} {self._path} cannot be written", error)
