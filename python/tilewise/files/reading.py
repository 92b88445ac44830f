"""A region's numbers as numpy arrays, to look at: mapped as a whole, or read in bounded pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from tilewise.errors import UsageError
from tilewise.files.region import Region

Array = numpy.ndarray[Any, numpy.dtype[Any]]
PIECE = 16 << 20  # bytes


def mapped(region: Region) -> Array:
    """The matrix as a read-only array in the file's own order; only pages that are looked at are read."""
    _require_file(region)
    shape = (region.rows, region.columns)
    if 0 in shape:
        return numpy.empty(shape, _stored(region))
    order: Any = region.order
    return numpy.memmap(region.path, _stored(region), "r", region.offset, shape, order)


def pieces(region: Region) -> Iterator[Array]:
    """The numbers in the order they are stored in, as flat arrays of at most 16 MiB."""
    _require_file(region)
    stored = _stored(region)
    left = region.rows * region.columns
    with open(region.path, "rb") as file:
        file.seek(region.offset)
        while left > 0:
            piece = numpy.fromfile(file, stored, min(left, PIECE // stored.itemsize))
            if piece.size == 0:
                raise UsageError(f"{region.name} became shorter while it was read")
            left -= piece.size
            yield piece


def _stored(region: Region) -> numpy.dtype[Any]:
    native: numpy.dtype[Any] = numpy.dtype(region.dtype)
    swapped: numpy.dtype[Any] = native.newbyteorder(">" if region.byte_order == "big" else "<")
    return swapped


def _require_file(region: Region) -> None:
    if region.generator:
        raise UsageError(
            f"{region.name} has no file to look into",
            f"tilewise generate -o A.npy --shape {region.rows}x{region.columns}",
        )
