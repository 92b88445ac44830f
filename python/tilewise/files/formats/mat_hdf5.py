"""MATLAB files of version 7.3: HDF5 behind a header of 512 bytes, with all extents in reverse.

So what HDF5 has row by row is the variable column by column.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.files.checks import number_type, numbers_bytes, printable, require_room
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import h5
from tilewise.files.formats.h5_elsewhere import require_readable
from tilewise.files.formats.h5_names import find
from tilewise.files.formats.mat_variables import CLASSES, TYPES, Variable, choose, real_of
from tilewise.files.headed import put_head
from tilewise.files.region import New, Region, Source
from tilewise.files.slices import Part, part_of, where
from tilewise.files.stacks import Selection, write_slices

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped,unused-ignore]

_BLOCK = 512  # bytes before HDF5's own
_TEXT = b"MATLAB 7.3 MAT-file, created by tilewise"
_LISTED = 10_000  # variables
_DIMENSIONS = 64


def inspect(path: str, name: str, member: str, size: int, selection: Selection | None) -> Source:
    """The variable called `member`, or the only matrix."""
    with h5.opened(path, "r") as book:
        found = choose(_variables(book, name), name, path, member.removeprefix("/"))
        part = part_of(found.shape, name, selection, fortran=True)
        count = math.prod(found.shape)
        bytes_ = numbers_bytes(1, count, found.dtype, name)
        dataset = find(book, name, found.name)
        reason = h5.why_encoded(dataset, bytes_) if bytes_ else ""
        offset = 0
        if bytes_:
            require_readable(dataset, path, name)
            if not reason:
                offset = dataset.id.get_offset()
                require_room(name, size, offset, 1, count, found.dtype)
        why = reason and f"{printable(found.name)} is {reason}"
        order = "big" if _number(dataset.dtype).str[0] == ">" else "little"
        place = where(part, offset, found.dtype, order, why)
        if why and part.slices is None:
            place |= h5.unwritten(dataset, part)
        return Source(
            path=path,
            name=name,
            dtype=found.dtype,
            file_bytes=size,
            format="mat",
            member=found.name,
            **place,
        )


def variables(path: str, name: str) -> list[Variable]:
    """All variables, in the order of their names."""
    with h5.opened(path, "r") as book:
        return _variables(book, name)


def decode(source: Source, out: BinaryIO) -> None:
    """Writes the numbers column by column, which is row by row for HDF5."""
    assert source.part is not None
    with h5.opened(source.path, "r") as book:
        dataset = find(book, source.name, source.member)
        if (slices := source.part.slices) is not None:
            read = h5.reader(dataset, source.dtype)
            shape, index = source.part.shape, source.part.index
            write_slices(
                lambda chosen: read(chosen[::-1]).T, shape, index, slices, ITEMSIZE[source.dtype], out
            )
        elif 0 not in source.part.shape:
            h5.write_part(dataset, _turned(source.part), source.dtype, out)


def create(new: New, name: str) -> Region:
    """A new file with the variable `name`, in one piece."""
    import h5py
    import numpy

    real = real_of(new.dtype)
    dtype: Any = numpy.dtype(real).newbyteorder("<")
    if real != new.dtype:
        dtype = numpy.dtype([("real", dtype), ("imag", dtype)])
    with h5py.File(new.path, "w", userblock_size=_BLOCK) as book:
        dataset = h5.contiguous(book, f"/{name}", (new.shape[1], new.shape[0]), dtype)
        dataset.attrs["MATLAB_class"] = numpy.bytes_(CLASSES[real])
        offset = dataset.id.get_offset() or 0
    put_head(new.path, _TEXT.ljust(116) + bytes(8) + struct.pack("<HH", 0x0200, 0x4D49))
    with open(new.path, "rb") as file:
        size = file.seek(0, 2)
    return new.region(offset=offset, order="F", file_bytes=size)


def _variables(book: h5py.File, name: str) -> list[Variable]:
    import h5py

    found = []
    for key in list(book)[:_LISTED]:
        if key.startswith("#"):  # what cells and objects refer to
            continue
        if not isinstance(book.get(key, getlink=True), h5py.HardLink):
            continue
        item = book[key]
        if isinstance(item, h5py.Group):
            kind = "sparse" if "MATLAB_sparse" in item.attrs else "struct"
            found.append(Variable(name=key, kind=kind, dtype="", shape=(), layout=""))
        elif isinstance(item, h5py.Dataset):
            found.append(_variable(item, key, name))
    return found


def _variable(dataset: h5py.Dataset, key: str, name: str) -> Variable:
    said = dataset.attrs.get("MATLAB_class", b"")
    kind = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    shape = tuple(reversed(dataset.shape or ()))
    if "MATLAB_empty" in dataset.attrs and dataset.size and dataset.size <= _DIMENSIONS:
        shape = tuple(int(extent) for extent in dataset[()].reshape(-1))
        if 0 not in shape:
            raise UsageError(f"{name} is broken: {printable(key)} is empty, but its shape is {shape}")
    dtype = ""
    if kind in TYPES and 0 in shape:
        dtype = TYPES[kind]
    elif kind in TYPES or not kind:
        try:
            dtype = number_type(_number(dataset.dtype), key)
        except UsageError:
            kind = "unknown"
    layout = "" if 0 in shape else h5.why_encoded(dataset, dataset.size or 0)
    return Variable(name=key, kind=kind or dtype, dtype=dtype, shape=shape, layout=layout)


def _number(dtype: Any) -> Any:
    """The type of the numbers: a record of two equal floats, real and imaginary, is a complex number."""
    import numpy

    if dtype.names == ("real", "imag") and dtype[0] == dtype[1] and dtype[0].kind == "f":
        real = dtype[0]
        if dtype.itemsize == 2 * real.itemsize and f"complex{16 * real.itemsize}" in ITEMSIZE:
            return numpy.dtype(f"{real.str[0]}c{dtype.itemsize}")
    return dtype


def _turned(part: Part) -> Part:
    """The part as HDF5 has it: extents in reverse, row by row."""
    rows, columns = (part.rows, part.columns) if part.is_list else (part.columns, part.rows)
    return msgspec.structs.replace(
        part,
        shape=part.shape[::-1],
        fortran=False,
        index=part.index[::-1],
        rows=rows,
        columns=columns,
    )
