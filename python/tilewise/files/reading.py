"""A matrix's numbers as numpy arrays, to look at: single rows, or all of them in bounded pieces."""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy

from tilewise.base.errors import UsageError
from tilewise.files.dtypes import is_integer
from tilewise.files.formats.text_parsing import Warn, numbers_of_text
from tilewise.files.region import Region, Source, Tile

Array = numpy.ndarray[Any, numpy.dtype[Any]]
PIECE = 16 << 20  # bytes


@contextlib.contextmanager
def binary(source: Source, most: int | None = None, warn: Warn | None = None) -> Iterator[Region]:
    """A Region whose numbers are binary: in the file itself, or in a temporary one while this lasts.

    Of a text whose lines are rows, it may end behind the first `most` of them, so that no others are parsed.
    `warn` hears what its numbers lost.

    Raises UsageError for a generator's name, and whatever decoding raises.
    """
    _require_file(source)
    if not source.packed and source.encoding == "binary":
        yield source
        return
    with tempfile.TemporaryDirectory(prefix="tilewise-") as folder:
        if source.packed:
            from tilewise.files.decoded import decoded

            yield decoded(source, folder, "look")
        else:
            yield _parsed(source, folder, most, warn)


def mapped(region: Region) -> Array:
    """The matrix as a read-only array in the file's own order; only pages that are looked at are read.

    Tiles are not one array: `rows_of` reads them too.
    """
    _require_file(region)
    assert not region.tiles and region.encoding == "binary"
    whole = region.uncut
    numbers = _mapped(whole.path, whole.offset, (whole.rows, whole.columns), _stored(whole), whole.order)
    return numbers[region.window]


def rows_of(region: Region, picked: range) -> Iterator[Array]:
    """The rows with the numbers `picked`, one after the other; `region` is binary."""
    if not region.tiles:
        matrix = mapped(region)
        for row in picked:
            yield matrix[row]
        return
    open_tiles: list[tuple[Tile, Array]] = []
    above, columns = region.window
    for row in (above.start + each for each in picked):
        # The same tiles serve many rows.
        if (
            not open_tiles
            or not open_tiles[0][0].rows[0] <= row < open_tiles[0][0].rows[1]
            or _ragged(region)
        ):
            open_tiles = [
                (tile, tile_numbers(region, tile))
                for tile in region.tiles
                if tile.rows[0] <= row < tile.rows[1]
            ]
        line = numpy.empty(region.uncut.columns, _stored(region))
        for tile, numbers in open_tiles:
            line[tile.columns[0] : tile.columns[1]] = numbers[row - tile.rows[0]]
        yield line[columns]


def pieces(source: Region, warn: Warn | None = None) -> Iterator[Array]:
    """Yield all numbers once, as flat arrays of at most some 16 MiB, in the order they are stored in.

    `warn` hears what those of a text lost.
    """
    _require_file(source)
    if source.encoding == "text":
        yield from numbers_of_text(source, warn=warn)
    elif source.tiles or source.whole is not None:
        for numbers in _parts(source):
            stored = numbers if source.order == "C" else numbers.T
            high = max(1, PIECE // max(1, stored.shape[1] * stored.itemsize))
            for row in range(0, stored.shape[0], high):
                yield numpy.ravel(stored[row : row + high])
    else:
        yield from _pieces(source.path, source.offset, source.rows * source.columns, source)


def _parts(region: Region) -> Iterator[Array]:
    """The wanted numbers of each tile, or of the one file."""
    if not region.tiles:
        yield mapped(region)
    for tile in region.tiles:
        ends = zip(region.window, (tile.rows, tile.columns), strict=True)
        inside = [slice(max(0, cut.start - begin), max(0, cut.stop - begin)) for cut, (begin, _) in ends]
        yield tile_numbers(region, tile)[tuple(inside)]


def _pieces(path: str, offset: int, left: int, region: Region) -> Iterator[Array]:
    stored = _stored(region)
    with open(path, "rb") as file:
        file.seek(offset)
        while left > 0:
            piece = numpy.fromfile(file, stored, min(left, PIECE // stored.itemsize))
            if piece.size == 0:
                raise UsageError(f"{region.name} became shorter while it was read")
            left -= piece.size
            yield piece


def _parsed(source: Source, folder: str, most: int | None, warn: Warn | None) -> Region:
    """A raw file with the numbers of a text, in the order that the text has them in."""
    only_top = (most is not None or source.whole is not None) and source.order == "C"
    if most is not None and only_top:
        source = source.cut(slice(0, min(most, source.rows)), slice(0, source.columns))
    whole = source.uncut
    if only_top:
        whole = msgspec.structs.replace(whole, rows=source.window[0].stop)
    path = os.path.join(folder, "numbers.raw")
    native = numpy.dtype(source.dtype).newbyteorder("<")
    with open(path, "wb") as out:
        for piece in numbers_of_text(whole, only_top, warn):
            out.write(piece.astype(native, copy=False).data)
    return Region(
        path=path,
        name=source.name,
        rows=whole.rows,
        columns=whole.columns,
        dtype=source.dtype,
        order=source.order,
        file_bytes=whole.bytes,
    ).cut(*source.window)


def _mapped(path: str, offset: int, shape: tuple[int, int], stored: numpy.dtype[Any], order: Any) -> Array:
    if 0 in shape:
        return numpy.empty(shape, stored)
    return numpy.memmap(path, stored, "r", offset, shape, order)


def tile_numbers(region: Region, tile: Tile) -> Array:
    """The numbers of a tile as a read-only array; only pages that are looked at are read."""
    stored, extent = _stored(region), tile.extent(region.order)
    if not tile.path and extent:
        return numpy.broadcast_to(numpy.frombuffer(bytes.fromhex(region.fill), stored), tile.shape)
    flat = _mapped(tile.path, tile.offset, (extent, 1), stored, "C")
    down, across = (stride * stored.itemsize for stride in tile.steps(region.order))
    return (
        numpy.ndarray(tile.shape, stored, flat, strides=(down, across))
        if extent
        else flat.reshape(tile.shape)
    )


def _ragged(region: Region) -> bool:
    """True where tiles side by side may have different rows."""
    return len({tile.rows for tile in region.tiles}) * len({tile.columns for tile in region.tiles}) != len(
        region.tiles
    )


def _stored(region: Region) -> numpy.dtype[Any]:
    native: numpy.dtype[Any] = numpy.dtype(region.dtype)
    swapped: numpy.dtype[Any] = native.newbyteorder(">" if region.byte_order == "big" else "<")
    return swapped


def _require_file(region: Region) -> None:
    if region.generator:
        raise UsageError(
            f"{region.name} has no file to show",
            f"tilewise generate -o A.npy --shape {region.rows}x{region.columns}",
        )


class Statistics(msgspec.Struct, frozen=True, omit_defaults=True):
    """Over the finite numbers, null where there are none; `min` and `max` of complex ones are magnitudes.

    So many `fill_values`, which stand for no number, are left out.
    """

    min: float | int | None
    max: float | int | None
    mean: float | list[float] | None
    non_finite: int
    fill_values: int = 0


def statistics(region: Region, warn: Warn | None = None, fills: Sequence[float] = ()) -> Statistics:
    """Reads all numbers of a region, binary or text, once; `warn` hears what those of a text lost."""
    low: float | int | None = None
    high: float | int | None = None
    total: complex = 0.0
    count = bad = filled = 0
    for piece in pieces(region, warn):
        numbers = piece[~numpy.isin(piece, numpy.array(fills, piece.dtype))] if fills else piece
        filled += piece.size - numbers.size
        if not is_integer(region.dtype):
            finite = numpy.isfinite(numbers)
            bad += numbers.size - int(finite.sum())
            numbers = numbers if finite.all() else numbers[finite]
        if numbers.size == 0:
            continue
        sizes = numpy.abs(numbers) if numbers.dtype.kind == "c" else numbers
        smallest, largest = sizes.min().item(), sizes.max().item()
        low = smallest if low is None else min(low, smallest)
        high = largest if high is None else max(high, largest)
        wide = numpy.complex128 if numbers.dtype.kind == "c" else numpy.float64
        # Of huge numbers the sum overflows where the mean does not: sum the parts of the mean instead.
        with numpy.errstate(over="ignore"):
            part = numbers.mean(dtype=wide).item()
        total = total + (part - total) * (numbers.size / (count + numbers.size)) if count else part
        count += numbers.size
    mean: float | list[float] | None = None
    if count:
        mean = [total.real, total.imag] if region.dtype.startswith("complex") else total.real
        if isinstance(mean, float) and not math.isfinite(mean):
            mean = None
    return Statistics(low, high, mean, bad, filled)
