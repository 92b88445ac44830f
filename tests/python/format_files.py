"""What tests of formats share: a matrix, and the two ways between it and a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy
import pytest
from tilewise import files
from tilewise.files.formats import format_of
from tilewise.files.output import Output, create
from tilewise.files.reading import binary, pieces, rows_of
from tilewise.files.region import Region
from tilewise.files.target import Target, check_holds, find_target, require_replaceable

SHAPES = [(1, 1), (1, 7), (7, 1), (13, 11), (300, 257)]
COMPLEX = ["complex64", "complex128"]


def require_library(name: str) -> None:
    """Skips a test of a format whose library is an extra that is not installed."""
    if format_of(name).table:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def check_target(name: str, force: bool) -> Target:
    """The place called `name`, where an output may be written there."""
    target = find_target(name)
    require_replaceable(target, force)
    return target


def matrix(shape: tuple[int, int], dtype: str = "float64") -> numpy.ndarray[Any, Any]:
    """Numbers that every dtype holds exactly, all different where it can."""
    count = shape[0] * shape[1]
    numbers = (numpy.arange(count) % 120).reshape(shape)
    if dtype.startswith("complex"):
        return (numbers + 1j * (numbers + 1)).astype(dtype)
    return numbers.astype(dtype)


def loaded(name: object) -> numpy.ndarray[Any, Any]:
    """The matrix that a name means, by our own road."""
    source = files.inspect(str(name))
    with binary(source) as region:
        rows = [row.copy() for row in rows_of(region, range(region.rows))]
    found = numpy.array(rows).reshape(source.rows, source.columns)
    assert found.dtype.newbyteorder("=") == numpy.dtype(source.dtype)
    flat = list(pieces(source)) if not source.packed else []
    assert not flat or sum(piece.size for piece in flat) == found.size
    return found


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


def written(
    name: Path | str, numbers: numpy.ndarray[Any, Any], force: bool = False, **options: Any
) -> Output:
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
