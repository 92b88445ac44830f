"""NetCDF: version 4 is HDF5 with named dimensions, the classic one has numbers in big endian.

Of a classic file scipy reads the header, which says where the numbers lie.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from tilewise.base.errors import UsageError
from tilewise.files.checks import (
    byte_order,
    choose,
    fill_values,
    not_applied,
    number_type,
    numbers_bytes,
    printable,
    require_room,
)
from tilewise.files.dtypes import ALL
from tilewise.files.formats import Format, h5
from tilewise.files.formats.h5_links import find
from tilewise.files.formats.nc_variables import DIMENSION_NUMBER, NO_VARIABLE, usual_fill
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import Bounded, open_regular
from tilewise.files.slices import Selection, part_of, where, write_part

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped,unused-ignore]
    import numpy

    from tilewise.files import Content

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

FORMAT = Format(
    numbers=tuple(dtype for dtype in ALL if dtype not in ("float16", "complex64", "complex128")),
    member="variable",
    sliced=True,
    stacked=True,
    reproducible=False,
)
blocks, others = h5.blocks, h5.others


def inspect(path: str, name: str, member: str, selection: Selection | None = None) -> Source:
    """The variable called `member`, or the only 2-D one."""
    file, size = open_regular(path, name)
    with file:
        magic = file.read(8)
    if magic == h5.SIGNATURE:
        return h5.inspect(path, name, member, selection, netcdf=True)
    if magic[:4] == b"CDF\x05":
        raise UsageError(
            f"{name} is a CDF-5 file, but only classic NetCDF and NetCDF-4 are supported",
            f"nccopy -k nc4 {name} new.nc",
        )
    if magic[:4] not in (b"CDF\x01", b"CDF\x02"):
        what = "is empty" if size == 0 else "has no NetCDF signature"
        raise UsageError(f"{name} {what}, but a .nc file was expected")
    return _inspect_classic(path, name, member, size, selection)


def decode(source: Source, out: BinaryIO) -> None:
    """Hands over to the one that `inspect` took."""
    with open(source.path, "rb") as file:
        version_4 = file.read(8) == h5.SIGNATURE
    (h5.decode if version_4 else _decode_classic)(source, out)


def contents(path: str, name: str) -> list[Content]:
    """List the variables of either kind."""
    with open(path, "rb") as file:
        version_4 = file.read(8) == h5.SIGNATURE
    return h5.contents(path, name, netcdf=True) if version_4 else _contents_classic(path, name)


def check_member(path: str, name: str, member: str, force: bool) -> None:
    """Check as for HDF5; a dimension is never replaced, because other variables would lose it."""
    import h5py

    h5.check_member(path, name, member, force)
    with h5.opened(path, "r") as book:
        old = find(book, name, member, must_exist=False)
        if isinstance(old, h5py.Dataset) and h5py.h5ds.is_scale(old.id):
            raise UsageError(
                f"the output {name} is a dimension in that file, but a new variable was expected",
                "choose another name",
            )


def create(new: New) -> Region:
    """Makes a NetCDF-4 variable with named dimensions."""
    return h5.create(new, netcdf=True)


def forget_dimensions(variable: h5py.Dataset) -> None:
    """Takes a variable that will be replaced out of the lists that its dimensions keep."""
    for dimension in variable.dims:
        for scale in list(dimension.values()):
            dimension.detach_scale(scale)


def name_dimensions(book: h5py.File, variable: h5py.Dataset) -> None:
    """Gives `variable` its dimensions, as datasets that are marked as such and take no room."""
    group, leaf = variable.parent, variable.name.rsplit("/", 1)[1]
    number = _free_number(book)
    dimensions = len(variable.shape)
    names = ("rows", "columns") if dimensions == 2 else (f"dimension_{axis}" for axis in range(dimensions))
    for axis, what in enumerate(names):
        wanted = name = f"{leaf}_{what}"
        attempt = 1
        while name in group and group[name].shape != (variable.shape[axis],):
            attempt += 1
            name = f"{wanted}_{attempt}"
        if name not in group:
            scale = group.create_dataset(name, (variable.shape[axis],), ">f4", track_order=True)
            scale.make_scale(NO_VARIABLE % variable.shape[axis])
            scale.attrs[DIMENSION_NUMBER] = number
            number += 1
        variable.dims[axis].attach_scale(group[name])


def _free_number(book: h5py.File) -> int:
    """The number after those of all dimensions in the file, its groups included."""
    taken = [-1]

    def visit(_: str, item: Any) -> None:
        if DIMENSION_NUMBER in item.attrs:
            taken.append(int(item.attrs[DIMENSION_NUMBER]))

    book.visititems(visit)
    return max(taken) + 1


def _inspect_classic(
    path: str, name: str, member: str, size: int, selection: Selection | None = None
) -> Source:
    """The variable called `member`, or the only matrix; record variables between others are decoded."""
    variables = _classic_variables(path)
    some = [
        key
        for key, each in variables.items()
        if each.view.ndim and each.view.dtype.kind in "iuf" and each.dimensions != (key,)
    ]
    chosen = choose(name, path, "variable", member.removeprefix("/"), variables, some)
    view, offset, attributes, _ = variables[chosen]
    number = number_type(view.dtype, name)
    part = part_of(view.shape, name, selection)
    numbers_bytes(1, view.size, number, name, view.shape)
    in_place = bool(view.flags.c_contiguous)
    offset = offset if in_place and view.size else 0
    order = byte_order(view.dtype)
    warnings = not_applied(attributes)
    if in_place:
        require_room(name, size, offset, 1, view.size, number, view.shape)
    why = (
        "" if in_place else f"the variable {printable(chosen)} is a record variable, interleaved with others"
    )
    return Source(
        path=path,
        name=name,
        dtype=number,
        file_bytes=size,
        format="nc",
        member=chosen,
        warnings=warnings,
        fills=fill_values(attributes, number, [usual_fill(view.dtype)] if view.dtype.itemsize > 1 else []),
        **where(part, offset, number, order, why),
    )


def _decode_classic(source: Source, out: BinaryIO) -> None:
    """Copies panels of rows out of the mapped file."""
    part = source.part
    assert part is not None
    view = _classic_variables(source.path)[source.member].view
    if view.shape != part.shape:
        raise UsageError(f"{source.name} changed while it was read")
    write_part(part, view, out)


def _contents_classic(path: str, name: str) -> list[Content]:
    """List the variables."""
    from tilewise.files import content

    return [
        content(key, view.shape, view.dtype, "in one piece" if view.flags.c_contiguous else "in records")
        for key, (view, *_) in _classic_variables(path).items()
    ]


class _Variable(NamedTuple):
    """A variable: where its view begins in the file, and what is said of it."""

    view: Array
    offset: int
    attributes: dict[str, Any]
    dimensions: tuple[str, ...]


class _Strict(Bounded):
    """A file that refuses to give less than is asked for, so that a header that ends early is noticed."""

    def read(self, count: int | None = -1, /) -> bytes:
        found = super().read(count)
        if count is None or len(found) != count:
            raise ValueError
        return found


def _classic_variables(path: str) -> dict[str, _Variable]:
    """Every variable, with a view of the mapped file, which stays open as long as a view does."""
    import numpy
    from scipy.io import netcdf_file  # type: ignore[import-untyped,unused-ignore]

    class Header(netcdf_file):  # type: ignore[misc,unused-ignore]
        """The header without scipy's views of the numbers: of a single record variable these can be wrong."""

        def _read_var_array(self) -> None:
            self.fp.read(4)
            self.found = [self._read_var() for _ in range(self._unpack_int())]

    found = {}
    try:
        with _Strict(path) as file:
            header = Header(file, "r", mmap=False)
        parts = {
            name: math.prod(shape[1:]) * item
            for name, _, shape, _, _, item, *_ in header.found
            if None in shape[:1]
        }
        # In a record each part begins at a multiple of four bytes, but a single one has no gap behind it.
        gap = 4 if len(parts) > 1 else 1
        step = sum(-(-part // gap) * gap for part in parts.values())
        mapped = numpy.memmap(path, "u1", "r")
        for name, dimensions, shape, attributes, _, item, dtype, begin, _ in header.found:
            extents = (header._recs, *shape[1:]) if name in parts else shape
            strides = [item * math.prod(shape[place + 1 :]) for place in range(len(shape))]
            if name in parts:
                strides[0] = step
            # Records that are not there can begin beyond the end.
            here = int(begin) if math.prod(extents) else 0
            view = numpy.ndarray(extents, dtype, mapped, here, strides)
            found[name] = _Variable(view, here, attributes, dimensions)
    except ValueError:  # numpy's, of views that reach beyond the end
        raise ValueError("its header promises more than the file holds: it is truncated or broken") from None
    return found
