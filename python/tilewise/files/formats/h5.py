"""The HDF5 format: contiguous datasets are read and written in place, ranks or h5py unpack chunks."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from tilewise.base.errors import UsageError
from tilewise.base.units import shape_text
from tilewise.files.checks import (
    MOST_BYTES,
    byte_order,
    fill_values,
    not_applied,
    number_type,
    numbers_bytes,
    printable,
    require_room,
)
from tilewise.files.dtypes import ALL, ITEMSIZE
from tilewise.files.formats import Format, ending_of, h5_links, nc_variables
from tilewise.files.formats.h5_chunks import chunks_of, fill_of, packed_by
from tilewise.files.formats.h5_links import choose, datasets, find, require_readable
from tilewise.files.region import New, Rectangle, Region, Source, Tile
from tilewise.files.regular import guarded, size_of
from tilewise.files.slices import ArrayPart, Selection, part_of, where, write_blocks

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped,unused-ignore]
    import numpy

    from tilewise.files import Content

FORMAT = Format(numbers=ALL, member="dataset", sliced=True, stacked=True, reproducible=False)
SIGNATURE, others = h5_links.SIGNATURE, h5_links.others
DEFAULT = "/matrix"
_ALIGNED_FROM = 64 << 10  # bytes; smaller objects are not put at the begin of a page


def inspect(
    path: str, name: str, member: str, selection: Selection | None = None, netcdf: bool = False
) -> Source:
    """Find the dataset called `member`, or the only matrix; for `netcdf` the variable."""
    kind = "nc" if netcdf else ending_of(path)[1:]
    size = size_of(path, name, f".{kind} file")
    with opened(path, "r") as book:
        dataset = choose(book, name, path, member, nc_variables.variables(book) if netcdf else None)
        if netcdf:
            dataset = nc_variables.variable_of(dataset, name)
        return _source(dataset, path, name, size, kind, selection)


def decode(source: Source, out: BinaryIO) -> None:
    """Unpacks the part of the dataset, or all slices of a stack."""
    assert source.part is not None
    with opened(source.path, "r") as book:
        write_part(find(book, source.name, source.member), source.part, source.dtype, out, source.format)


def write_part(dataset: h5py.Dataset, part: ArrayPart, dtype: str, out: BinaryIO, kind: str = "h5") -> None:
    """Writes the part row by row, or one slice behind the other; each chunk is unpacked once.

    One that is large and not packed is read in parts.
    """
    read = reader(dataset, dtype)
    if kind == "nc" and part.shape != dataset.shape:
        read = nc_variables.filled(read, dataset, part.shape)
    chunks = dataset.chunks or (1,) * len(part.shape)
    if math.prod(chunks) * dataset.dtype.itemsize > MOST_BYTES and not packed_by(dataset, also_moved=True):
        chunks = (1,) * len(part.shape)
    write_blocks(part, chunks, dtype, out, read)


def reader(dataset: h5py.Dataset, dtype: str) -> Callable[[tuple[int | slice, ...]], Any]:
    """Return a function that reads the numbers of an index, little-endian."""
    import numpy

    native = numpy.dtype(dtype).newbyteorder("<")

    def read(chosen: tuple[int | slice, ...]) -> Any:
        numbers = dataset[chosen]
        if numbers.dtype.names:  # a complex number as a record of two
            order = numbers.dtype[0].str[0]
            numbers = numpy.ascontiguousarray(numbers).view(f"{order}c{numbers.dtype.itemsize}")
        return numbers.astype(native, copy=False)

    return read


def blocks(source: Source, wanted: Sequence[Rectangle]) -> list[Any]:
    """The numbers of each block; of a list taken as a row, too."""
    part = source.part
    assert part is not None
    with opened(source.path, "r") as book:
        read = reader(find(book, source.name, source.member), source.dtype)
        turned = source.rows != part.rows
        places = (each[::-1] if turned else each for each in wanted)
        return [read(part.block(slice(*rows), slice(*columns))) for rows, columns in places]


def contents(path: str, name: str, netcdf: bool = False) -> list[Content]:
    """List the datasets, in the order of their names; for `netcdf` the variables."""
    import h5py

    from tilewise.files import content

    with opened(path, "r") as book:
        found, shapes = [], nc_variables.Shapes(book)
        for member in datasets(book):
            dataset = book[member]
            if netcdf and not nc_variables.is_variable(dataset):
                continue
            strings = h5py.check_string_dtype(dataset.dtype) is not None
            layout = why_encoded(dataset, dataset.size or 0) or "in one piece"
            holds = "strings" if strings else "nothing" if dataset.shape is None else ""
            shown = nc_variables.variable_name(dataset) if netcdf else member
            shape = shapes.of(dataset) if netcdf and dataset.shape else dataset.shape
            found.append(content(shown, shape or (), dataset.dtype, layout, holds))
        return found


def create(new: New, netcdf: bool = False) -> Region:
    """Make a contiguous dataset, in a new file or in the copy of an old one; for `netcdf` a variable."""
    import numpy

    from tilewise.files.formats.nc import forget_dimensions, name_dimensions

    member = "/" + "/".join(part for part in (new.member or DEFAULT).split("/") if part)
    if member == "/":
        raise UsageError(f"the output {new.name} is the root group, but a dataset was expected")
    with opened(new.path, "r+" if os.path.getsize(new.path) else "w", netcdf) as book:
        if member in book:
            if netcdf:
                forget_dimensions(book[member])
            del book[member]
        dataset = contiguous(book, member, new.array_shape, numpy.dtype(new.dtype).newbyteorder("<"))
        if netcdf:
            name_dimensions(book, dataset)
        offset = dataset.id.get_offset() or 0
    return new.region(offset=offset, file_bytes=os.path.getsize(new.path))


def contiguous(book: h5py.File, member: str, shape: tuple[int, ...], dtype: numpy.dtype[Any]) -> h5py.Dataset:
    """A new dataset in one piece, whose place in the file is known at once."""
    import h5py

    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.CONTIGUOUS)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    links = h5py.h5p.create(h5py.h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    number = h5py.h5t.py_create(dtype, logical=True)
    space = h5py.h5s.create_simple(shape)
    return h5py.Dataset(h5py.h5d.create(book.id, member.encode(), number, space, properties, lcpl=links))


def check_member(path: str, name: str, member: str, force: bool) -> None:
    """Raises UsageError unless `member` may be written into the existing file at `path`."""
    with guarded(f"the output {name} cannot be added to {path}"), opened(path, "r") as book:
        import h5py

        old = find(book, name, member, must_exist=False)
        if isinstance(old, h5py.Group):
            raise UsageError(f"the output {name} is a group in that file, but a dataset was expected")
        if old is not None and not force:
            raise UsageError(f"the output {name} exists already", "--force replaces this dataset only")


def opened(path: str, mode: str, netcdf: bool = False) -> h5py.File:
    """The file, locked against other programs where the file system can do that."""
    import h5py

    if mode == "r":
        return h5py.File(path, mode, locking="best-effort")
    return h5py.File(
        path,
        mode,
        locking="best-effort",
        alignment_threshold=_ALIGNED_FROM,
        alignment_interval=4096,
        track_order=netcdf and mode == "w",
    )


def _source(
    dataset: h5py.Dataset, path: str, name: str, size: int, kind: str, selection: Selection | None
) -> Source:
    import h5py

    if dataset.shape is None:
        raise UsageError(f"{name} is a dataset without numbers (a null dataspace)")
    dtype = dataset.dtype
    if h5py.check_string_dtype(dtype) is not None:
        raise UsageError(f"{name} holds strings, but numbers were expected: {', '.join(ITEMSIZE)}")
    number = number_type(dtype, name)
    how = f"book.create_dataset({dataset.name!r}, data=a.reshape(…))"
    shape = nc_variables.Shapes(dataset.file).of(dataset) if kind == "nc" else dataset.shape
    part = part_of(shape, name, selection, how=how)
    numbers = math.prod(part.shape)
    bytes_ = numbers_bytes(1, numbers, number, name, part.shape)
    reason = why_encoded(dataset, bytes_)
    offset = 0
    if not reason and bytes_:
        offset = dataset.id.get_offset()
        require_room(name, size, offset, 1, numbers, number, part.shape)
    require_readable(dataset, path, name)
    note = reason and f"{printable(dataset.name)} is {reason}"
    place = where(part, offset, number, byte_order(dtype), note)
    warnings = not_applied(dataset.attrs)
    default = [nc_variables.fill_value(dataset)] if kind == "nc" and dtype.itemsize > 1 else []
    whole = shape == dataset.shape
    if not whole:
        fill = nc_variables.fill_value(dataset)
        warnings += (
            f"only {shape_text(*dataset.shape)} of its {shape_text(*shape)} numbers are written, as another "
            f"variable is longer in an unlimited dimension; the others are the fill value {fill}",
        )
    ranked = reason and whole and part.slices is None
    unpacked = chunks_of(dataset, part, name, size) if ranked else None
    if ranked and (filled := unwritten(dataset, part)):
        place |= filled
    elif unpacked is not None:
        own = part.notes if part.is_list else ()
        place |= {
            "encoded": False,
            "encoding": "chunks",
            "chunks": unpacked,
            "byte_order": byte_order(dtype),
            "notes": (*own, note),
        }
    return Source(
        path=path,
        name=name,
        dtype=number,
        file_bytes=size,
        format=kind,
        member=dataset.name,
        warnings=warnings,
        fills=fill_values(dataset.attrs, number, default),
        **place,
    )


def unwritten(dataset: h5py.Dataset, part: ArrayPart) -> dict[str, Any]:
    """Fields of the Source where nothing of the dataset was written, so that all of it is the fill value."""
    import h5py

    properties = dataset.id.get_create_plist()
    stored = dataset.is_virtual or properties.get_layout() == h5py.h5d.COMPACT
    if stored or properties.get_external_count() or dataset.id.get_storage_size():
        return {}
    own = part.notes if part.is_list else ()
    return {
        "encoded": False,
        "byte_order": byte_order(dataset.dtype),
        "tiles": [Tile(path="", offset=0, rows=(0, part.rows), columns=(0, part.columns))],
        "fill": fill_of(dataset),
        "notes": (*own, f"{printable(dataset.name)} was never written, and holds the fill value"),
    }


def why_encoded(dataset: h5py.Dataset, numbers: int) -> str:
    """Reason for which the numbers cannot be read where they lie; empty when they can."""
    import h5py

    properties = dataset.id.get_create_plist()
    layout = properties.get_layout()
    if dataset.is_virtual:
        return "virtual, composed of parts of other datasets"
    if layout == h5py.h5d.CHUNKED:
        packed = f", packed by {names}" if (names := packed_by(dataset)) else ""
        return f"stored in chunks of {'×'.join(map(str, dataset.chunks))}{packed}"
    if layout == h5py.h5d.COMPACT:
        return "stored in its header"
    if properties.get_external_count():
        return "stored in other files"
    if dataset.id.get_type() != h5py.h5t.py_create(dataset.dtype, logical=True):
        return "stored in an unusual number type"
    # With a user block the library's offset of what is not there is no longer None.
    if numbers and (dataset.id.get_offset() is None or dataset.id.get_storage_size() == 0):
        return "not written yet"
    return ""
