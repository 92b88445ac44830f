"""The .ppm images: read as .pgm ones are; not written, because a matrix has no colours."""

from __future__ import annotations

from tilewise.files.pgm import decode, inspect

__all__ = ["MEMBER", "NUMBERS", "decode", "inspect"]

MEMBER = ""
NUMBERS: tuple[str, ...] = ()
