"""Unpacks a TIFF page strip by strip, or tile by tile, into rows of grey values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy

from tilewise.errors import UsageError
from tilewise.files.grey import WEIGHTS, grey
from tilewise.files.region import Source

if TYPE_CHECKING:
    import tifffile

_PALETTE = 3
_SEGMENT_MAX = 1 << 30  # bytes of one strip or tile


def decode_segments(page: tifffile.TiffPage, source: Source, out: BinaryIO) -> None:
    """Writes each strip or tile to its place; colours that lie in planes of their own are read as a whole."""
    native = numpy.dtype(source.dtype).newbyteorder("<")
    out.truncate(source.bytes)  # strips that are not stored are zeros
    if page.planarconfig == 2 and page.samplesperpixel > 1:
        planes = page.asarray()[:3]
        picture = grey(numpy.moveaxis(planes, 0, -1)) if len(planes) >= 3 else planes[0]
        _place(numpy.ascontiguousarray(picture, native), 0, 0, source.columns, out)
        return
    if math.prod(page.chunks) * native.itemsize > max(_SEGMENT_MAX, 2 * source.bytes):
        raise UsageError(f"{source.name} says that a strip or tile of it has {page.chunks} numbers")
    table = _grey_table(page, native) if int(page.photometric) == _PALETTE else None
    for data, (_, _, row, column, _), _ in page.segments(maxworkers=1):
        if data is None:
            continue
        # Without depth; tiles at the edges reach beyond the picture.
        block = data[0, : source.rows - row, : source.columns - column]
        picture = grey(block) if block.shape[-1] >= 3 else block[..., 0]
        if table is not None:
            picture = table[block[..., 0]]
        _place(numpy.ascontiguousarray(picture, native), row, column, source.columns, out)


def lacks_codec(error: Exception) -> bool:
    """Whether tifffile says that it needs a package with more codecs."""
    return "imagecodecs" in str(error)


def decode_by_pillow(source: Source, out: BinaryIO) -> None:
    """The same by Pillow, which brings codecs of its own; the page is read as a whole."""
    from PIL import Image

    with Image.open(source.path, formats=["TIFF"]) as image:
        image.seek(int(source.member or 0))
        if image.size != (source.columns, source.rows):
            raise UsageError(f"{source.name} has pages that two libraries count differently")
        values: Any = numpy.asarray(
            image if image.mode in ("L", "I;16", "I;16B", "I", "F") else image.convert("L")
        )
        if values.dtype.itemsize < numpy.dtype(source.dtype).itemsize:
            raise UsageError(f"{source.name} is packed in a way that is not read with {source.dtype} numbers")
        out.write(numpy.ascontiguousarray(values, numpy.dtype(source.dtype).newbyteorder("<")).data)


def _place(block: Any, row: int, column: int, columns: int, out: BinaryIO) -> None:
    """Writes a block of the picture to its place in the file of all rows."""
    size = block.dtype.itemsize
    if block.shape[1] == columns:
        out.seek(row * columns * size)
        out.write(block.data)
        return
    for line, numbers in enumerate(block):
        out.seek(((row + line) * columns + column) * size)
        out.write(numbers.data)


def _grey_table(page: tifffile.TiffPage, native: numpy.dtype[Any]) -> Any:
    """Grey values of a palette, whose colours have 16 bits whatever the picture has."""
    colours = page.colormap
    if colours is None:
        raise UsageError("its palette is missing")
    value = sum(weight * plane.astype(numpy.float64) for weight, plane in zip(WEIGHTS, colours, strict=True))
    scale = 257 if native.itemsize == 1 else 1
    return numpy.rint(value / scale).astype(native)
