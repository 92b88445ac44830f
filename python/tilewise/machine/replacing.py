"""Gives a file new content at once: whoever reads it finds the old one or the new one, never a part."""

from __future__ import annotations

import contextlib
import os

from tilewise.errors import RunError


def replace(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes `data` to `path`, by way of a hidden file beside it. Raises OSError, and leaves nothing then."""
    import tempfile  # takes longer than all else that a small job imports of the library

    real = os.path.realpath(path)
    descriptor, part = tempfile.mkstemp(dir=os.path.dirname(real), prefix=".tilewise-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        mask = os.umask(0o077)
        os.umask(mask)
        os.chmod(part, 0o666 & ~mask)
        os.replace(part, real)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def replace_or_fail(path: str, data: bytes, said: str = "") -> None:
    """The same, with a RunError that has the file in words: `said`, or its path."""
    try:
        replace(path, data)
    except OSError as error:
        raise RunError(f"{said or path} cannot be written: {error.strerror or error}") from None
