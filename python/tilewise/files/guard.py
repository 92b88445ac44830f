"""Turns whatever a library raises on a broken file into one UsageError that names the file."""

from __future__ import annotations

import contextlib
import errno
import warnings
from collections.abc import Iterator

from tilewise.errors import Interrupted, RunError, TilewiseError, UsageError, advice_for

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def guarded(what: str) -> Iterator[None]:
    """Around code that reads a foreign file; `what` begins the sentence: "A.h5 is no readable .h5 file".

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


def one_line(error: BaseException) -> str:
    """The text of an error in at most 200 characters without line ends, or its kind where it has none."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(shown.split())[:200] or type(error).__name__


def disk_failure(what: str, error: OSError) -> RunError:
    """What to raise where the file system failed; `what` begins the sentence."""
    return RunError(f"{what}: {one_line(error)}", advice_for(error.errno or 0))


def _interruption(error: BaseException | None) -> Interrupted | None:
    while error is not None and not isinstance(error, Interrupted):
        error = error.__cause__ or error.__context__
    return error
