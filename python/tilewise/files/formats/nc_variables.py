"""NetCDF-4's variables among the datasets of an HDF5 file: which they are, and how long.

In NetCDF an unlimited dimension is as long as the longest of its variables, and the others are filled up. In
HDF5 each dataset has the length that was written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from tilewise.base.errors import UsageError
from tilewise.files.formats.h5_links import datasets, find

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped,unused-ignore]

Index = tuple[int | slice, ...]
DIMENSION_NUMBER = "_Netcdf4Dimid"  # the attribute that numbers the dimensions of a whole file
NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable.%10d"  # fixed by the format
_NUMBERS_OF_VARIABLE = "_Netcdf4Coordinates"  # of its dimensions; in older files only if it is one itself
_RENAMED = "_nc4_non_coord_"  # before the name of a variable whose name a dimension has taken
_UNSIGNED = {"u1": 255, "u2": 65535, "u4": 4294967295, "u8": 18446744073709551614}
_FILLS = _UNSIGNED | {"i1": -127, "i2": -32767, "i4": -2147483647, "i8": -9223372036854775806}
_FILL_REAL = 9.969209968386869e36


def is_variable(dataset: h5py.Dataset) -> bool:
    """True for a dataset that holds numbers, not only the length of a dimension."""
    import h5py

    said: bytes = h5py.h5ds.get_scale_name(dataset.id) if h5py.h5ds.is_scale(dataset.id) else b""
    return not said.startswith(NO_VARIABLE.partition("%")[0].encode())


def variable_of(dataset: h5py.Dataset, name: str) -> h5py.Dataset:
    """The variable of that name: another dataset where `dataset` is a dimension alone; UsageError without."""
    if is_variable(dataset):
        return dataset
    group, leaf = dataset.name.rsplit("/", 1)
    other = find(dataset.file, name, f"{group}/{_RENAMED}{leaf}", must_exist=False)
    if other is None:
        raise UsageError(f"{name} is a dimension without numbers, but a variable was expected")
    return other


def variables(book: h5py.File) -> list[str]:
    """Names of all variables with numbers, but those of a dimension."""
    return [
        variable_name(dataset)
        for dataset in map(book.get, datasets(book))
        if dataset.shape and dataset.dtype.kind in "biuf" and not dataset.is_scale
    ]


def variable_name(dataset: h5py.Dataset) -> str:
    """The name of a variable in NetCDF."""
    return "/".join(part.removeprefix(_RENAMED) for part in dataset.name.split("/"))


class Shapes:
    """The shapes that variables of a file have in NetCDF; all of its objects are looked at once."""

    def __init__(self, book: h5py.File) -> None:
        self._book = book
        self._lengths: dict[str, int] = {}

    def of(self, dataset: h5py.Dataset) -> tuple[int, ...]:
        """Shape of `dataset`, whose unlimited dimensions can be longer than what is written of it."""
        shape: list[int] = list(dataset.shape)
        for axis, limit in enumerate(dataset.maxshape):
            if limit is None and (dimension := self._dimension(dataset, axis)) is not None:
                if dimension.name not in self._lengths:
                    self._lengths[dimension.name] = self._length(dimension)
                shape[axis] = max(shape[axis], self._lengths[dimension.name])
        return tuple(shape)

    def _dimension(self, dataset: h5py.Dataset, axis: int) -> h5py.Dataset | None:
        """The dataset of the dimension that a variable has along `axis`."""
        import h5py

        if h5py.h5ds.is_scale(dataset.id):  # it has its own along the first, and no list
            if axis == 0:
                return dataset
        elif len(dataset.dims[axis]):
            return dataset.dims[axis][0]
        numbers = list(dataset.attrs.get(_NUMBERS_OF_VARIABLE, ()))
        return self._numbered[0].get(numbers[axis]) if axis < len(numbers) else None

    def _length(self, dimension: h5py.Dataset) -> int:
        """Length of the longest variable along a dimension."""
        lengths = [dimension.shape[0]]
        for reference, axis in dimension.attrs.get("REFERENCE_LIST", ()):
            lengths.append(dimension.file[reference].shape[axis])
        number = dimension.attrs.get(DIMENSION_NUMBER)
        for shape, numbers in self._numbered[1]:
            lengths += [extent for extent, its in zip(shape, numbers, strict=False) if its == number]
        return int(max(lengths))

    @functools.cached_property
    def _numbered(self) -> tuple[dict[int, h5py.Dataset], list[tuple[tuple[int, ...], list[int]]]]:
        """Dimensions by their numbers; of variables that know these, the shape and the numbers."""
        import h5py

        dimensions, variables = {}, []
        for dataset in map(self._book.get, datasets(self._book)):
            if h5py.h5ds.is_scale(dataset.id) and DIMENSION_NUMBER in dataset.attrs:
                dimensions[int(dataset.attrs[DIMENSION_NUMBER])] = dataset
            if _NUMBERS_OF_VARIABLE in dataset.attrs:
                variables.append((dataset.shape, list(dataset.attrs[_NUMBERS_OF_VARIABLE])))
        return dimensions, variables


def fill_value(dataset: h5py.Dataset) -> Any:
    """The number that NetCDF has where none is written."""
    import h5py

    properties = dataset.id.get_create_plist()
    if properties.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED:
        return dataset.fillvalue
    return usual_fill(dataset.dtype)


def usual_fill(dtype: numpy.dtype[Any]) -> Any:
    """The number that NetCDF has where none is written, and nobody says which."""
    return _FILLS.get(dtype.str[1:], _FILL_REAL)


def filled(
    read: Callable[[Index], Any], dataset: h5py.Dataset, shape: tuple[int, ...]
) -> Callable[[Index], Any]:
    """Wrap `read` for an index of an array of `shape` that `dataset` fills the begin of."""
    fill = fill_value(dataset)

    def read_all(chosen: Index) -> Any:
        wanted = [
            range(*each.indices(extent)) if isinstance(each, slice) else range(each, each + 1)
            for each, extent in zip(chosen, shape, strict=True)
        ]
        stored = [
            range(each.start, min(each.stop, have)) for each, have in zip(wanted, dataset.shape, strict=True)
        ]
        numbers = numpy.full([len(each) for each in wanted], fill, dataset.dtype)
        if all(stored):
            numbers[tuple(slice(len(each)) for each in stored)] = read(
                tuple(slice(each.start, each.stop) for each in stored)
            )
        return numbers[tuple(slice(None) if isinstance(each, slice) else 0 for each in chosen)]

    return read_all
