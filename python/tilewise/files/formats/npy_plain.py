"""The .npy header as numpy and tilewise write it, read and written without numpy, whose import costs 0.1 s.

0          6    8       10                                                                        offset
\\x93NUMPY  1 0  length  {'descr': '<f8', 'fortran_order': False, 'shape': (3, 5), }  blanks \\n  numbers
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from tilewise.files.checks import PAGE, PAGE_ALIGNED_FROM
from tilewise.files.dtypes import ITEMSIZE

_LEAD = b"\x93NUMPY\x01\x00"
_LETTERS = {"int": "i", "uint": "u", "float": "f", "complex": "c"}
_CODES = {dtype: f"{_LETTERS[dtype.rstrip('0123456789')]}{size}" for dtype, size in ITEMSIZE.items()}
_NAMES = {code: dtype for dtype, code in _CODES.items()} | {"b1": "uint8"}
_EXTENT = rb"(0|[1-9][0-9]{0,17})"
_FIELDS = re.compile(
    rb"\{'descr': '([<>|])([biufc][0-9]{1,2})', 'fortran_order': (True|False), 'shape': \("
    + _EXTENT
    + rb", "
    + _EXTENT
    + rb"\)(?:, )?\} *\n"
)


class Header(NamedTuple):
    """What a header says of a matrix; `offset` is where its numbers begin."""

    rows: int
    columns: int
    dtype: str
    byte_order: str
    order: str
    offset: int


def parse(begin: bytes) -> Header | None:
    """What the file that begins so holds; None for whatever is not written plainly, rightly or wrongly so."""
    offset = len(_LEAD) + 2 + int.from_bytes(begin[len(_LEAD) : len(_LEAD) + 2], "little")
    match = _FIELDS.fullmatch(begin[len(_LEAD) + 2 : offset])
    if not begin.startswith(_LEAD) or len(begin) < offset or match is None:
        return None
    side, code, fortran, rows, columns = (field.decode() for field in match.groups())
    dtype = _NAMES.get(code)
    if dtype is None or (side == "|") != (ITEMSIZE[dtype] == 1):
        return None
    order = "F" if fortran == "True" else "C"
    return Header(int(rows), int(columns), dtype, "big" if side == ">" else "little", order, offset)


def header_bytes(shape: tuple[int, ...], dtype: str, order: str, offset: int = 0) -> bytes:
    """The bytes before the numbers of a little-endian array; their count is the offset of the numbers.

    From 1 MiB of numbers on these begin at byte 4096, so that neighbouring ranks share no page of the header;
    smaller files keep numpy's own 64-byte alignment. With `offset` there are so many.
    """
    side = "|" if ITEMSIZE[dtype] == 1 else "<"
    fields = {"descr": side + _CODES[dtype], "fortran_order": order == "F", "shape": shape}
    text = repr(fields).encode("latin1")
    large = math.prod(shape) * ITEMSIZE[dtype] >= PAGE_ALIGNED_FROM
    step = PAGE if large else 64
    total = offset or -(-(len(_LEAD) + 2 + len(text) + 1) // step) * step
    padding = b" " * (total - len(_LEAD) - 2 - len(text) - 1)
    return _LEAD + (total - len(_LEAD) - 2).to_bytes(2, "little") + text + padding + b"\n"
