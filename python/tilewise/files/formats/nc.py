"""NetCDF: version 4 is HDF5 with named dimensions, the classic one has numbers in big endian."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

from tilewise.base.errors import UsageError
from tilewise.files.dtypes import ALL
from tilewise.files.formats import Format, h5, nc_classic
from tilewise.files.formats.h5_names import find
from tilewise.files.formats.nc_variables import DIMENSION_NUMBER, NO_VARIABLE
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular
from tilewise.files.stacks import Selection

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped,unused-ignore]

    from tilewise.files.contents import Content

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
        return h5.inspect_kind(path, name, member, "nc", selection)
    if magic[:4] == b"CDF\x05":
        raise UsageError(
            f"{name} is a CDF-5 file, but only classic NetCDF and NetCDF-4 are supported",
            f"nccopy -k nc4 {name} new.nc",
        )
    if magic[:4] not in (b"CDF\x01", b"CDF\x02"):
        what = "is empty" if size == 0 else "has no NetCDF signature"
        raise UsageError(f"{name} {what}, but a .nc file was expected")
    return nc_classic.inspect(path, name, member, size, selection)


def decode(source: Source, out: BinaryIO) -> None:
    """Hands over to the one that `inspect` took."""
    with open(source.path, "rb") as file:
        version_4 = file.read(8) == h5.SIGNATURE
    (h5.decode if version_4 else nc_classic.decode)(source, out)


def contents(path: str, name: str) -> list[Content]:
    """All variables of either kind."""
    with open(path, "rb") as file:
        version_4 = file.read(8) == h5.SIGNATURE
    return h5.contents_kind(path, "nc") if version_4 else nc_classic.contents(path, name)


def check_member(path: str, name: str, member: str, force: bool) -> None:
    """As for HDF5; a dimension is never replaced, because other variables would lose it."""
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
    return h5.create_kind(new, netcdf=True)


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
