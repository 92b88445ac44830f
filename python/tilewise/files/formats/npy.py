"""The .npy format: headers parsed by numpy's own reader, and written so that numbers begin a page.

Importing numpy takes longer than all else that is done for a small matrix. So headers are written without
it, and one that says it the way numpy itself does is read without it too (`npy_plain`).
"""

from __future__ import annotations

import math
import os
import warnings
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import msgspec

from tilewise.base.errors import TilewiseError, UsageError, one_line
from tilewise.files.checks import (
    HEADER_MAX,
    PAGE,
    byte_order,
    number_type,
    printable,
    require_size,
)
from tilewise.files.dtypes import ALL
from tilewise.files.formats import Format, npy_plain
from tilewise.files.headed import create_headed, put_head
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular
from tilewise.files.slices import copy_out, part_of, where
from tilewise.files.stacks import Selection

if TYPE_CHECKING:
    import numpy

FORMAT = Format(numbers=ALL, orders=("C", "F"), sliced=True, stacked=True)


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
        header = npy_plain.parse(file.read(PAGE)) if selection is None else None
        if header is None:
            file.seek(0)
            return _source(path, name, file, selection, size)
    require_size(name, size, header.offset, header.rows, header.columns, header.dtype)
    return Source(path=path, name=name, **header._asdict(), file_bytes=size, format="npy")


def create(new: New) -> Region:
    """Gives the empty file its header and its full size."""
    return create_headed(new, npy_plain.header_bytes(new.array_shape, new.dtype, new.order))


def create_array(path: str, name: str, shape: tuple[int, ...], dtype: str) -> Region:
    """The same, row by row, where `shape` may have any number of extents; all but the last are rows."""
    new = New(path=path, name=name, shape=_rows_columns(shape), dtype=dtype)
    return create_headed(new, npy_plain.header_bytes(shape, dtype, "C"))


def cut_array(region: Region, shape: tuple[int, ...]) -> Region:
    """Gives the file that `create_array` made a smaller `shape`; its first numbers are of that."""
    rows, columns = _rows_columns(shape)
    put_head(region.path, npy_plain.header_bytes(shape, region.dtype, "C", region.offset))
    cut = msgspec.structs.replace(region, rows=rows, columns=columns)
    size = cut.offset + cut.bytes
    os.truncate(region.path, size)
    return msgspec.structs.replace(cut, file_bytes=size)


def _rows_columns(shape: tuple[int, ...]) -> tuple[int, int]:
    return math.prod(shape[:-1]), shape[-1]


def decode(source: Source, out: BinaryIO) -> None:
    """Copies a slice whose rows do not lie in one piece."""
    import numpy

    assert source.part is not None
    with open(source.path, "rb") as file:
        _, _, dtype = read_header(file, source.name)
        copy_out(source.part, source.path, file.tell(), numpy.dtype(dtype), out)


def _source(path: str, name: str, file: IO[bytes], selection: Selection | None, size: int) -> Source:
    """What numpy says of the header of `file`."""
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
