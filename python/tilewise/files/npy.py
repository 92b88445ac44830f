"""The .npy format: headers parsed by numpy's own reader, and written so that numbers begin a page."""

from __future__ import annotations

import math
import warnings
from typing import IO, TYPE_CHECKING, Any

from tilewise.errors import TilewiseError, UsageError
from tilewise.files.checks import (
    HEADER_MAX,
    PAGE,
    PAGE_ALIGNED_FROM,
    byte_order,
    number_type,
    printable,
    require_size,
    two_dimensions,
)
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.guard import one_line
from tilewise.files.headed import create_headed
from tilewise.files.region import Region, Source
from tilewise.files.regular import open_regular

if TYPE_CHECKING:
    import numpy

MEMBER = ""
NUMBERS = tuple(ITEMSIZE)


def inspect(path: str, name: str, member: str = "") -> Source:
    """The matrix in the .npy file at `path`; `name` is what the user wrote, for messages.

    Reads the header only and never unpickles. Raises UsageError when the file is no 2-D array of numbers or
    when its size is not the one its header promises.
    """
    file, size = open_regular(path, name)
    with file:
        if size == 0:
            raise UsageError(f"{name} is empty, but a .npy file was expected")
        shape, fortran, dtype = read_header(file, name)
        offset = file.tell()
    number = number_type(dtype, name)
    rows, columns = two_dimensions(shape, name, f"numpy.save({name!r}, a.reshape(…))")
    require_size(name, size, offset, rows, columns, number)
    return Source(
        path=path,
        name=name,
        offset=offset,
        rows=rows,
        columns=columns,
        dtype=number,
        byte_order=byte_order(dtype),
        order="F" if fortran else "C",
        file_bytes=size,
        format="npy",
    )


def create(
    path: str, name: str, member: str, shape: tuple[int, int], dtype: str, order: str, header: bool = False
) -> Region:
    """Gives the empty file at `path` its header and its full size."""
    return create_headed(path, name, header_bytes(shape, dtype, order), shape, dtype, order=order)


def create_array(path: str, name: str, shape: tuple[int, ...], dtype: str) -> Region:
    """The same, row by row, where `shape` may also have one extent; such a file's numbers are one row."""
    rows, columns = (shape[0], shape[1]) if len(shape) == 2 else (1, shape[0])
    return create_headed(path, name, header_bytes(shape, dtype, "C"), (rows, columns), dtype)


def header_bytes(shape: tuple[int, ...], dtype: str, order: str) -> bytes:
    """The bytes before the numbers of a little-endian array; their count is the offset of the numbers.

    From 1 MiB of numbers on these begin at byte 4096, so that neighbouring ranks share no page of the header;
    smaller files keep numpy's own 64-byte alignment.
    """
    import numpy
    from numpy.lib import format as npy

    native = numpy.dtype(dtype).newbyteorder("<")
    fields: dict[str, Any] = {
        "descr": npy.dtype_to_descr(native),
        "fortran_order": order == "F",
        "shape": shape,
    }
    text = repr(fields).encode("latin1")
    lead = npy.magic(1, 0)
    large = math.prod(shape) * native.itemsize >= PAGE_ALIGNED_FROM
    step = PAGE if large else 64
    total = -(-(len(lead) + 2 + len(text) + 1) // step) * step
    padding = b" " * (total - len(lead) - 2 - len(text) - 1)
    return lead + (total - len(lead) - 2).to_bytes(2, "little") + text + padding + b"\n"


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
                raise ValueError(f"it is of version {version[0]}.{version[1]}, known are 1.0 to 3.0")
            length = int.from_bytes(file.read(2 if version == (1, 0) else 4), "little")
            if length > HEADER_MAX:
                raise ValueError(f"its header says to be {length} bytes long")
            file.seek(begin + npy.MAGIC_LEN)
            # 3.0 differs from 2.0 only in how field names are encoded, and fields are refused anyway.
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            return read(file)
    except TilewiseError:
        raise
    except Exception as error:  # a hostile header makes Python's parser raise nearly anything
        raise UsageError(f"{name} is no readable .npy file: {printable(one_line(error))}") from None
