"""Turns whatever a library raises on a broken file into one UsageError that names the file."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

from tilewise.base.errors import DISK_ERRORS, Interrupted, TilewiseError, UsageError, disk_failure, one_line


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
        interruption = _interruption(error)
        if interruption is not None:
            raise interruption from None
        reason = one_line(error)
        if isinstance(error, OSError) and error.errno in DISK_ERRORS:
            raise disk_failure(what, error) from None
        raise UsageError(f"{what}: {reason}") from None


def _interruption(error: BaseException | None) -> Interrupted | None:
    while error is not None and not isinstance(error, Interrupted):
        error = error.__cause__ or error.__context__
    return error
