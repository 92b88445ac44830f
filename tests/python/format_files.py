"""What tests of formats share: a matrix, and the two ways between it and a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import scipy.io
import tifffile
from PIL import Image
from tilewise import files
from tilewise.files.formats import format_of
from tilewise.files.output import Output, create
from tilewise.files.reading import binary, mapped, pieces, rows_of
from tilewise.files.region import Region
from tilewise.files.target import Target, check_holds, find_target, require_replaceable

Array = numpy.ndarray[Any, Any]
SHAPES = [(1, 1), (1, 7), (7, 1), (13, 11), (300, 257)]
COMPLEX = ["complex64", "complex128"]


def read_bin(path: Path) -> Any:
    rows, columns = numpy.fromfile(path, "<i4", 2)
    return numpy.fromfile(path, "<f8", offset=8).reshape(rows, columns)


def read_petsc(path: Path) -> Any:
    head = numpy.fromfile(path, ">i4", 4)
    assert head[0] == 1211216 and head[3] == -1
    wide = os.path.getsize(path) == 16 + 16 * int(head[1]) * int(head[2])
    return numpy.fromfile(path, ">c16" if wide else ">f8", offset=16).reshape(head[1], head[2])


def read_h5(path: Path) -> Any:
    with h5py.File(path) as book:
        assert book["matrix"].chunks is None
        return book["matrix"][:]


def read_safetensors(path: Path) -> Any:
    library = pytest.importorskip("safetensors.numpy")
    return library.load_file(path)["matrix"]


def read_text(separator: str | None) -> Callable[[Path], Any]:
    return lambda path: numpy.loadtxt(path, delimiter=separator, ndmin=2)


def read_parquet(path: Path) -> Any:
    return columns_of(pytest.importorskip("pyarrow.parquet").read_table(path))


def read_feather(path: Path) -> Any:
    return columns_of(pytest.importorskip("pyarrow.feather").read_table(path))


def columns_of(table: Any) -> Any:
    assert table.column_names == [f"c{place}" for place in range(table.num_columns)]
    return numpy.stack([column.to_numpy() for column in table.columns], axis=1)


READERS: dict[str, Callable[[Path], Any]] = {
    ".npy": numpy.load,
    ".bin": read_bin,
    ".petsc": read_petsc,
    ".h5": read_h5,
    ".hdf5": read_h5,
    ".nc": read_h5,
    ".parquet": read_parquet,
    ".feather": read_feather,
    ".arrow": read_feather,
    ".mat": lambda path: scipy.io.loadmat(path)["matrix"],
    ".safetensors": read_safetensors,
    ".mtx": scipy.io.mmread,
    ".txt": read_text(None),
    ".csv": read_text(","),
    ".tsv": read_text("\t"),
    ".tif": tifffile.imread,
    ".tiff": tifffile.imread,
    ".pgm": lambda path: numpy.asarray(Image.open(path)),
    ".pnm": lambda path: numpy.asarray(Image.open(path)),
    ".png": lambda path: numpy.asarray(Image.open(path)),
    ".zarr": lambda path: pytest.importorskip("zarr").open_array(path, mode="r")[:],
}


def require_library(name: str) -> None:
    """Skips a test of a format whose library is an extra that is not installed."""
    if format_of(name).table:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def check_target(name: str, force: bool) -> Target:
    """The place called `name`, where an output may be written there."""
    target = find_target(name)
    require_replaceable(target, force)
    return target


def matrix(shape: tuple[int, int], dtype: str = "float64") -> Array:
    """Numbers that every dtype holds exactly, all different where it can."""
    count = shape[0] * shape[1]
    numbers = (numpy.arange(count) % 120).reshape(shape)
    if dtype.startswith("complex"):
        return (numbers + 1j * (numbers + 1)).astype(dtype)
    return numbers.astype(dtype)


def loaded(name: object) -> Array:
    """The matrix that a name means, by our own road."""
    source = files.inspect(str(name))
    with binary(source) as region:
        rows = [row.copy() for row in rows_of(region, range(region.rows))]
    found = numpy.array(rows).reshape(source.rows, source.columns)
    assert found.dtype.newbyteorder("=") == numpy.dtype(source.dtype)
    flat = list(pieces(source)) if not source.packed else []
    assert not flat or sum(piece.size for piece in flat) == found.size
    return found


def planes_of(name: object, planes: tuple[int, ...] = (1, 2, 3, 4)) -> Array:
    """A picture with its planes last, as it is told to ranks."""
    source = files.inspect(str(name), planes=planes)
    with binary(source) as region:
        assert (region.rows, region.columns) == (source.rows, source.columns)
        stacked = numpy.array(mapped(region))
    return numpy.moveaxis(stacked.reshape(source.planes, -1, source.columns), 0, -1)


def colours(dtype: str = "uint8", planes: int = 3, shape: tuple[int, int] = (21, 17)) -> Array:
    """A picture of noise."""
    generator = numpy.random.default_rng(3)
    if dtype.startswith("float"):
        return generator.standard_normal((*shape, planes)).astype(dtype)
    return generator.integers(0, numpy.iinfo(dtype).max, (*shape, planes), dtype, endpoint=True)


def grey(picture: Array) -> Array:
    """Grey values of a picture of whole numbers."""
    return numpy.rint(picture[..., :3].astype(float) @ [0.299, 0.587, 0.114]).astype(picture.dtype)


def filled(region: Region, numbers: numpy.ndarray[Any, Any]) -> None:
    """Does the worker's part: puts the numbers where `region` says."""
    stored = numpy.dtype(region.dtype).newbyteorder(">" if region.byte_order == "big" else "<")
    if region.encoding == "text":
        flat = numbers.reshape(-1, order=region.order) if region.order == "F" else numbers
        with open(region.path, "ab") as file:
            assert file.tell() == region.offset
            for line in flat.reshape(-1, 1) if region.order == "F" else flat:
                parts: list[Any] = []
                for value in line.tolist():
                    two = region.pairs
                    parts += [value.real, value.imag] if two else [value]
                file.write((region.separator.join(map(str, parts)) + "\n").encode())
        return
    if region.tiles:
        for tile in region.tiles:
            extent = tile.extent(region.order)
            if extent:
                flat = numpy.memmap(tile.path, stored, "r+", tile.offset, (extent,))
                strides = [step * stored.itemsize for step in tile.steps(region.order)]
                view = numpy.ndarray(tile.shape, stored, flat, strides=strides)
                view[:] = numbers[slice(*tile.rows), slice(*tile.columns)]
        return
    assert os.path.getsize(region.path) == region.file_bytes
    with open(region.path, "r+b") as file:
        file.seek(region.offset)
        file.write(numbers.astype(stored).tobytes(order="F" if region.order == "F" else "C"))
    assert os.path.getsize(region.path) == region.file_bytes


def written(name: Path | str, numbers: Array, force: bool = False, **options: Any) -> Output:
    """A whole output, committed; nothing but the output may be left in its folder."""
    target = check_target(str(name), force)
    check_holds(target, numbers.dtype.name)
    shape = (numbers.shape[0], numbers.shape[1])
    output = create(
        target, shape, numbers.dtype.name, options.pop("order", target.natural_order), "id", **options
    )
    assert all(os.path.exists(path) for path in (seal.path for seal in output.seals))
    filled(output.region, numbers)
    output.commit()
    assert not [path for path in os.listdir(os.path.dirname(target.path)) if path.startswith(".")]
    return output
