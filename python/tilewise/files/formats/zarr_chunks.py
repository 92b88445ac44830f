"""The chunks of a Zarr array as tiles of a matrix in it, and those that a new one has.

shape (4, 6), chunks of (3, 4): a chunk is stored whole        [:, 5] of three dimensions: a tile has gaps
    c.0.0  ▇▇▇▇   c.0.1  ▇▇··                                     c.0.0.0  ·· ▇▇▇ ·· ▇▇▇
    c.1.0  ▇▇▇▇   c.1.1  ▇▇··      · nobody reads
           ····          ····
"""

from __future__ import annotations

import math
import os

from tilewise.base.errors import UsageError
from tilewise.files.formats.zarr_metadata import Stored
from tilewise.files.region import Rectangle, Tile
from tilewise.files.regular import cannot_read, require_regular
from tilewise.files.slices import Part

BYTES = 8 << 20  # of a new chunk
TILES_MAX = 100_000  # of an input; more are copied into one file first
_FILES = 1 << 14  # from so many on, new chunks are larger


def order_of(stored: Stored, part: Part) -> str:
    """The order of storage in which fewer numbers lie between two that a chunk holds side by side."""
    strides = [stride for stride, fixed in zip(stored.strides, part.index, strict=True) if fixed is None]
    return "F" if len(strides) == 2 and strides[0] < strides[1] else "C"


def count_of(stored: Stored, part: Part) -> int:
    """Chunks that have numbers of the matrix."""
    high, wide = part.of_matrix(stored.chunks)
    return -(-part.rows // max(1, high)) * -(-part.columns // max(1, wide))


def tiles_of(stored: Stored, part: Part, folder: str, name: str) -> list[Tile]:
    """A tile for each chunk that has numbers of the matrix; those without a file have no path.

    Raises UsageError for a chunk that is no file of the right size.
    """
    if part.rows * part.columns == 0:
        return [Tile(path="", offset=0, rows=(0, part.rows), columns=(0, part.columns))]
    high, wide = part.of_matrix(stored.chunks)
    fixed = [
        (each, chunk, stride)
        for each, chunk, stride in zip(part.index, stored.chunks, stored.strides, strict=True)
        if each is not None
    ]
    first = sum(each % chunk * stride for each, chunk, stride in fixed)
    offset = first * (stored.chunk_bytes // math.prod(stored.chunks))
    down, *across = (stride for stride, each in zip(stored.strides, part.index, strict=True) if each is None)
    tiles = []
    for i, row in enumerate(range(0, part.rows, high)):
        for j, column in enumerate(range(0, part.columns, wide)):
            place = iter((i, j))
            key = stored.key(
                tuple(
                    next(place) if each is None else each // chunk
                    for each, chunk in zip(part.index, stored.chunks, strict=True)
                )
            )
            tiles.append(
                Tile(
                    path=_path(os.path.join(folder, key), f"{name}: its chunk {key}", stored.chunk_bytes),
                    offset=offset,
                    rows=(row, min(row + high, part.rows)),
                    columns=(column, min(column + wide, part.columns)),
                    strides=(down, across[0] if across else 1),
                )
            )
    return tiles


def rectangles(shape: tuple[int, int], item: int) -> list[Rectangle]:
    """How a new matrix is cut into chunks that are all alike, up to the last ones."""
    most = max(BYTES, math.prod(shape) * item // _FILES) // item
    wide = _even(shape[1], max(math.isqrt(most), most // max(1, shape[0])))
    high = _even(shape[0], most // wide)
    cut = [
        ((row, min(row + high, shape[0])), (column, min(column + wide, shape[1])))
        for row in range(0, shape[0], high)
        for column in range(0, shape[1], wide)
    ]
    return cut or [((0, shape[0]), (0, shape[1]))]


def _even(extent: int, most: int) -> int:
    """The extent of as few equal parts as there can be with `most` at most."""
    return max(1, -(-extent // max(1, -(-extent // most))))


def _path(path: str, what: str, size: int) -> str:
    """The path of a chunk's file, empty where there is none; UsageError for one of another size."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise cannot_read(error, path, what) from None
    require_regular(status.st_mode, what)
    if status.st_size != size:
        raise UsageError(f"{what} has {status.st_size} bytes where {size} were expected")
    return path
