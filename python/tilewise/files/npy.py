"""The .npy format: headers parsed by numpy's own reader, and written so that numbers begin a page."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any, BinaryIO

from tilewise.errors import Interrupted, UsageError
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.files.regular import open_regular

if TYPE_CHECKING:
    import numpy

PAGE = 4096
PAGE_ALIGNED_FROM = 1 << 20  # bytes of numbers; below, a page of padding would be most of the file


def inspect(path: str, name: str) -> Region:
    """The matrix in the .npy file at `path`; `name` is what the user wrote, for messages.

    Reads the header only and never unpickles. Raises UsageError when the file is no 2-D array of numbers or
    when its size is not the one its header promises.
    """
    file, size = open_regular(path, name)
    with file:
        shape, fortran, dtype = _header(file, name, size)
        offset = file.tell()
    number = _number_type(dtype, name)
    rows, columns = _two_dimensions(shape, name)
    expected = offset + rows * columns * ITEMSIZE[number]
    if size != expected:
        what = "it is truncated" if size < expected else "it has more than its header says"
        raise UsageError(
            f"{name} has {size} bytes, but its header ({rows}×{columns} {number} from byte {offset}) "
            f"promises {expected}: {what}"
        )
    return Region(
        path=path,
        name=name,
        offset=offset,
        rows=rows,
        columns=columns,
        dtype=number,
        byte_order="big" if dtype.str[0] == ">" else "little",
        order="F" if fortran else "C",
        file_bytes=size,
    )


def header(shape: tuple[int, int], dtype: str, order: str) -> bytes:
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
    large = shape[0] * shape[1] * native.itemsize >= PAGE_ALIGNED_FROM
    step = PAGE if large else 64
    total = -(-(len(lead) + 2 + len(text) + 1) // step) * step
    padding = b" " * (total - len(lead) - 2 - len(text) - 1)
    return lead + (total - len(lead) - 2).to_bytes(2, "little") + text + padding + b"\n"


def _header(file: BinaryIO, name: str, size: int) -> tuple[tuple[int, ...], bool, numpy.dtype[Any]]:
    """Shape, whether in Fortran order, and dtype, as numpy reads them."""
    from numpy.lib import format as npy

    if size == 0:
        raise UsageError(f"{name} is empty, but a .npy file was expected")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that Python 2 wrote: they are read all the same
            version = npy.read_magic(file)
            if version not in ((1, 0), (2, 0), (3, 0)):
                raise ValueError(f"it is of version {version[0]}.{version[1]}, known are 1.0 to 3.0")
            # 3.0 differs from 2.0 only in how field names are encoded, and fields are refused anyway.
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            return read(file)
    except Interrupted:
        raise
    except Exception as error:  # a hostile header makes Python's parser raise nearly anything
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"{name} is no readable .npy file: {reason}") from None


def _number_type(dtype: numpy.dtype[Any], name: str) -> str:
    """Our name of `dtype`, or UsageError for what is no number."""
    known = "uint8" if dtype.name == "bool" else dtype.name
    if known in ITEMSIZE and dtype.fields is None and dtype.subdtype is None:
        return known
    if dtype.hasobject:
        what = "Python objects, which are never unpickled"
    elif dtype.fields is not None:
        what = f"records with the fields {', '.join(dtype.names or ())}"
    elif dtype.kind in "SUV":
        what = f"text or raw bytes ({dtype.name})"
    elif dtype.kind in "mM":
        what = f"dates or durations ({dtype.name})"
    else:
        what = f"{dtype.name}, which differs from machine to machine"
    raise UsageError(f"{name} holds {what}, but numbers were expected: {', '.join(ITEMSIZE)}")


def _two_dimensions(shape: tuple[int, ...], name: str) -> tuple[int, int]:
    if any(extent < 0 for extent in shape) or max(shape, default=0) > sys.maxsize:
        raise UsageError(f"{name} says that its shape is {shape}, which no array can have")
    if len(shape) == 2:
        return int(shape[0]), int(shape[1])
    if len(shape) == 0:
        advice = "reshape it to (1, 1)"
    elif len(shape) == 1:
        advice = f"reshape it to ({shape[0]}, 1) for a column or (1, {shape[0]}) for a row"
    else:
        rest = 1
        for extent in shape[1:]:
            rest *= extent
        advice = f"reshape it to ({shape[0]}, {rest}) or save one slice of it"
    raise UsageError(
        f"{name} has {len(shape)} dimensions {shape}, but a matrix has 2",
        f"{advice}: numpy.save({name!r}, a.reshape(…))",
    )
