"""The record's and the timeline's files: checked before the run, given their names after it."""

from __future__ import annotations

import contextlib
import os

from tilewise.errors import RunError, UsageError
from tilewise.files.output import check_folder


def check(flag: str, path: str | None, others: list[str]) -> None:
    """Raises UsageError unless `path` can be written and is none of `others`, nor in a folder among them."""
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


class Trace:
    """A timeline that the worker writes beside its future name."""

    def __init__(self, path: str | None, identity: str) -> None:
        self._path = os.path.realpath(path) if path else ""
        folder, base = os.path.split(self._path)
        self.part = os.path.join(folder, f".{base[:100]}.{identity}.part") if path else ""

    def commit(self) -> None:
        """Gives the timeline its name, compressed when that ends in `.gz`."""
        if not self.part:
            return
        try:
            if self._path.endswith(".gz"):
                import gzip
                import shutil

                packed = self.part + ".gz"
                with open(self.part, "rb") as plain, gzip.open(packed, "wb", compresslevel=5) as out:
                    shutil.copyfileobj(plain, out, 1 << 20)
                os.unlink(self.part)
                self.part = packed
            os.replace(self.part, self._path)
        except OSError as error:
            raise RunError(
                f"the timeline {self._path} cannot be written: {error.strerror or error}"
            ) from None

    def discard(self) -> None:
        """Removes what there is of it; safe after `commit` too."""
        for path in {self.part, self.part + ".gz"} if self.part else ():
            with contextlib.suppress(OSError):
                os.unlink(path)
