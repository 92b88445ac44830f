"""Turns whatever a library raises on a broken file into one UsageError that names the file."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator
from typing import TypeVar

from tilewise.base.errors import DISK_ERRORS, Interrupted, TilewiseError, UsageError, disk_failure, one_line

_Kind = TypeVar("_Kind", bound=BaseException)


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
