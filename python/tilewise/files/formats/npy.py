"""The .npy format: headers parsed by numpy's own reader, and written so that numbers begin a page.

Importing numpy takes longer than all else that is done for a small matrix. So headers are written without
it, and one that says it the way numpy itself does is read without it too.

0          6    8       10                                                                        offset
\\x93NUMPY  1 0  length  {'descr': '<f8', 'fortran_order': False, 'shape': (3, 5), }  blanks \\n  numbers
"""

from __future__ import annotations

import math
import os
import re
import warnings
from typing import IO, TYPE_CHECKING, Any, BinaryIO, NamedTuple

import msgspec

from tilewise.base.errors import TilewiseError, UsageError, one_line
from tilewise.files.checks import (
    HEADER_MAX,
    PAGE,
    PAGE_ALIGNED_FROM,
    byte_order,
    number_type,
    printable,
    require_size,
)
from tilewise.files.dtypes import ALL, ITEMSIZE
from tilewise.files.formats import Format
from tilewise.files.headed import create_headed, put_head
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular
from tilewise.files.slices import Selection, copy_out, part_of, where

if TYPE_CHECKING:
    import numpy

FORMAT = Format(numbers=ALL, orders=("C", "F"), sliced=True, stacked=True)
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


def inspect(path: str, name: str, member: str = "", selection: Selection | None = None) -> Source:
    """The matrix in the .npy file at `path`; `name` is what the user wrote, for messages.

    Of an array with more dimensions `selection` says which slice. Reads the header only and never unpickles.
    Raises UsageError where that is no matrix of numbers, or where the file has another size than its header
    promises.
    """
    file, size = open_regular(path, name)
    with file:
        if size == 0:
            raise UsageError(f"{name} is empty, but a .npy file was expected")
        header = parse_plain(file.read(PAGE)) if selection is None else None
        if header is None:
            file.seek(0)
            return _source(path, name, file, selection, size)
    require_size(name, size, header.offset, header.rows, header.columns, header.dtype)
    return Source(path=path, name=name, **header._asdict(), file_bytes=size, format="npy")


def create(new: New) -> Region:
    """Give the empty file its header and its full size."""
    return create_headed(new, header_bytes(new.array_shape, new.dtype, new.order))


def create_array(path: str, name: str, shape: tuple[int, ...], dtype: str) -> Region:
    """Give the empty file at `path` the header and size of an array of any `shape`, row by row."""
    new = New(path=path, name=name, shape=_rows_columns(shape), dtype=dtype)
    return create_headed(new, header_bytes(shape, dtype, "C"))


def cut_array(region: Region, shape: tuple[int, ...]) -> Region:
    """Give the file that `create_array` made a smaller `shape`; its first numbers are of that."""
    rows, columns = _rows_columns(shape)
    put_head(region.path, header_bytes(shape, region.dtype, "C", region.offset))
    cut = msgspec.structs.replace(region, rows=rows, columns=columns)
    size = cut.offset + cut.bytes
    os.truncate(region.path, size)
    return msgspec.structs.replace(cut, file_bytes=size)


def _rows_columns(shape: tuple[int, ...]) -> tuple[int, int]:
    return math.prod(shape[:-1]), shape[-1]


def decode(source: Source, out: BinaryIO) -> None:
    """Copy a slice whose rows do not lie in one piece."""
    import numpy

    assert source.part is not None
    with open(source.path, "rb") as file:
        _, _, dtype = read_header(file, source.name)
        copy_out(source.part, source.path, file.tell(), numpy.dtype(dtype), out)


def _source(path: str, name: str, file: IO[bytes], selection: Selection | None, size: int) -> Source:
    """Read the header of `file` by numpy."""
    shape, fortran, dtype = read_header(file, name)
    number = number_type(dtype, name)
    part = part_of(shape, name, selection, fortran, f"numpy.save({name!r}, a.reshape(…))")
    require_size(name, size, file.tell(), 1, math.prod(shape), number, shape)
    return Source(
        path=path,
        name=name,
        dtype=number,
        file_bytes=size,
        format="npy",
        **where(part, file.tell(), number, byte_order(dtype)),
    )


def read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, numpy.dtype[Any]]:
    """Shape, whether in Fortran order, and dtype, as numpy reads them; `file` then stands at the numbers.

    `file` must be seekable. Raises UsageError for anything numpy refuses and for lengths beyond 8 MiB.
    """
    from numpy.lib import format as npy

    begin = file.tell()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that Python 2 wrote: they are read all the same
            version = npy.read_magic(file)
            if version not in ((1, 0), (2, 0), (3, 0)):
                raise ValueError(
                    f"it is version {version[0]}.{version[1]}; versions 1.0 to 3.0 are supported"
                )
            length = int.from_bytes(file.read(2 if version == (1, 0) else 4), "little")
            if length > HEADER_MAX:
                raise ValueError(f"its header claims to be {length} bytes long")
            file.seek(begin + npy.MAGIC_LEN)
            # 3.0 differs from 2.0 only in how field names are encoded, and fields are refused anyway.
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            return read(file)
    except TilewiseError:
        raise
    except Exception as error:  # a hostile header makes Python's parser raise nearly anything
        raise UsageError(f"{name} is not a readable .npy file: {printable(one_line(error))}") from None


class NpyHeader(NamedTuple):
    """The facts in the header of a matrix; `offset` is where its numbers begin."""

    rows: int
    columns: int
    dtype: str
    byte_order: str
    order: str
    offset: int


def parse_plain(begin: bytes) -> NpyHeader | None:
    """Parse a header that is written as numpy writes it; None for any other, right or wrong."""
    offset = len(_LEAD) + 2 + int.from_bytes(begin[len(_LEAD) : len(_LEAD) + 2], "little")
    match = _FIELDS.fullmatch(begin[len(_LEAD) + 2 : offset])
    if not begin.startswith(_LEAD) or len(begin) < offset or match is None:
        return None
    side, code, fortran, rows, columns = (field.decode() for field in match.groups())
    dtype = _NAMES.get(code)
    if dtype is None or (side == "|") != (ITEMSIZE[dtype] == 1):
        return None
    order = "F" if fortran == "True" else "C"
    return NpyHeader(int(rows), int(columns), dtype, "big" if side == ">" else "little", order, offset)


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
