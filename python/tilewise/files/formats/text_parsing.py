"""The numbers of a text, parsed in bounded blocks of lines, for looking at them without a worker."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy

from tilewise.base.errors import UsageError
from tilewise.files.formats.text_lines import plain_exponents, top
from tilewise.files.region import Region

_BLOCK = 4 << 20  # bytes
_COMMENT = re.compile(rb"#[^\n]*|^[ \t]*%[^\n]*", re.MULTILINE)


def numbers_of_text(region: Region, only_top: bool = False) -> Iterator[numpy.ndarray[Any, numpy.dtype[Any]]]:
    """Flat arrays of numbers, line by line; UsageError where one is none, or for too many or too few.

    With `only_top` there may be more lines behind those of the region, where a line is a row; they are not
    looked at.
    """
    left = region.rows * region.columns
    for text in _top(region) if only_top else _blocks(region):
        plain = _COMMENT.sub(b"", text) if b"#" in text or b"%" in text else text
        if region.separator.strip() or region.separator == "\t":
            plain = plain.replace(region.separator.encode(), b" ")
        numbers = _parse(plain_exponents(plain), region)
        left -= numbers.size
        if left < 0:
            break
        if numbers.size:
            yield numbers
    if left:
        what = "fewer" if left > 0 else "more"
        raise UsageError(f"{region.name} has {what} than {region.rows}×{region.columns} numbers")


def _parse(text: bytes, region: Region) -> numpy.ndarray[Any, numpy.dtype[Any]]:
    try:
        if region.dtype.startswith("complex"):
            if region.pairs:
                parts = _real(text, numpy.dtype("float64"))
                return parts.view(numpy.complex128).astype(region.dtype, copy=False)
            return numpy.array([complex(token.decode("latin1")) for token in text.split()], region.dtype)
        return _real(text, numpy.dtype(region.dtype))
    except (ValueError, DeprecationWarning):
        raise UsageError(f"{region.name} has text in its lines that is not a {region.dtype} number") from None


def _real(text: bytes, dtype: numpy.dtype[Any]) -> numpy.ndarray[Any, numpy.dtype[Any]]:
    if not text.strip():
        return numpy.empty(0, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # how numpy reports what is not a number
        return numpy.fromstring(text, dtype, sep=" ")


def _top(region: Region) -> Iterator[bytes]:
    """The lines of the region's rows, in the same blocks."""
    left = region.rows
    for block in _blocks(region) if left else ():
        text, lines = top(block, left)
        left -= lines
        yield text
        if left <= 0:
            break


def _blocks(region: Region) -> Iterator[bytes]:
    """The text from the first number on, in blocks that end with a line."""
    with open(region.path, "rb") as file:
        file.seek(region.offset)
        while block := file.read(_BLOCK):
            yield block + file.readline()
