"""Unpacks a TIFF page strip by strip, or tile by tile, into rows of grey values, or of planes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy

from tilewise.base.errors import UsageError
from tilewise.base.programs import installing
from tilewise.files.formats.colours import MODES, ORIENTATION, WEIGHTS, as_stored, grey, write_planes
from tilewise.files.region import Source
from tilewise.files.regular import Bounded

if TYPE_CHECKING:
    import tifffile

_WHITE_IS_ZERO, _PALETTE = 0, 3
_BY_PILLOW = (1, 2, 3, 4, 5, 6, 7, 8, 32773, 32946)  # of others its libtiff talks to the terminal
_SEGMENT_MAX = 1 << 30  # bytes of one strip or tile


def decode_segments(page: tifffile.TiffPage, source: Source, out: BinaryIO) -> None:
    """Writes each strip or tile to its place; colours that lie in planes of their own are read as a whole."""
    native = numpy.dtype(source.dtype).newbyteorder("<")
    out.truncate(source.bytes)
    rows = source.rows // source.planes
    if page.planarconfig == 2 and page.samplesperpixel > 1:
        picture = numpy.moveaxis(page.asarray(), 0, -1)
        _place(_taken(picture, source), 0, 0, source, out, native)
        return
    if math.prod(page.chunks) * native.itemsize > max(_SEGMENT_MAX, 2 * source.bytes):
        raise UsageError(f"{source.name} declares a strip or tile with {page.chunks} numbers")
    table = _table(page, source)
    # Not sorted by their places, the library takes parts around one that is not stored for neighbours.
    for stored, (_, _, row, column, _), shape in page.segments(maxworkers=1, sort=True):
        if stored is None and page.nodata == 0 and table is None:
            continue
        data = numpy.full(shape, page.nodata, page.dtype) if stored is None else stored
        # Without depth; tiles at the edges reach beyond the picture.
        block = data[0, : rows - row, : source.columns - column]
        _place(_taken(block, source, table), row, column, source, out, native)


def segments_at(page: tifffile.TiffPage, indices: Sequence[int]) -> list[Any]:
    """The first sample of each point of some strips or tiles, which may reach beyond the picture."""
    found = []
    for index in indices:
        size = page.databytecounts[index] if page.dataoffsets[index] else 0
        page.parent.filehandle.seek(page.dataoffsets[index])
        numbers, _, _ = page.decode(page.parent.filehandle.read(size) if size else None, index)
        if numbers is None:
            numbers = numpy.full((1, *page.chunks[:2], 1), page.nodata, page.dtype)
        found.append(numbers[0, ..., 0])
    return found


def _taken(block: Any, source: Source, table: Any = None) -> Any:
    """Take the wanted samples of a block: the first few, or their grey value; by a palette."""
    if table is not None:
        picture = table[block[..., 0].astype(table.dtype)]  # bits would pick as a mask
        return numpy.concatenate((picture, block[..., 1:2]), axis=-1) if source.planes == 4 else picture
    if source.planes > 1:
        return block[..., : source.planes]
    return grey(block) if block.shape[-1] >= 3 else block[..., 0]


def lacks_codec(error: Exception, page: tifffile.TiffPage) -> bool:
    """True where tifffile says that it needs a package with more codecs, or Pillow knows the packing."""
    unknown = "COMPRESSION" in str(error) and page.compression in _BY_PILLOW
    return unknown or "imagecodecs" in str(error) or isinstance(error, ImportError)


def needs_codec(page: tifffile.TiffPage) -> bool:
    """True where neither tifffile nor Pillow has the codec; nothing of the page is read."""
    try:
        page.decode(b"", 0)
    except Exception as error:  # no segment is empty
        return lacks_codec(error, page) and page.compression not in _BY_PILLOW
    return False


def _needs_codecs(page: tifffile.TiffPage, name: str) -> UsageError:
    kind, bits = str(getattr(page.compression, "name", page.compression)).lower(), page.bitspersample
    what = f"has numbers of {bits} bits" if kind == "none" else f"is packed in {kind}, {bits} bits a number"
    return UsageError(f"{name} {what}: that needs the package imagecodecs", installing("imagecodecs"))


def decode_by_pillow(page: tifffile.TiffPage, source: Source, out: BinaryIO) -> None:
    """Unpack by Pillow, which brings codecs of its own; the page is read as a whole.

    Pillow turns pictures by their orientation, stretches few bits to 0 … 255, and makes white the largest
    number: all of that is undone, so that the numbers do not depend on how they are packed.
    """
    from PIL import Image, UnidentifiedImageError

    native = numpy.dtype(source.dtype)
    stored = all(page.dataoffsets) and all(page.databytecounts)
    reversed_ = native.itemsize == 4 and page.parent.byteorder == ">"  # by Pillow, without a word
    if page.compression not in _BY_PILLOW or reversed_ or not stored:
        raise _needs_codecs(page, source.name)
    table = _table(page, source)
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(Bounded(source.path))
        try:
            image: Image.Image = stack.enter_context(Image.open(file, formats=["TIFF"]))
        except UnidentifiedImageError:
            raise _needs_codecs(page, source.name) from None
        image.seek(int(source.member or 0))
        image.load()
        turned = ORIENTATION not in image.getexif()  # Pillow forgets it as it turns the picture
        inverted = image.mode in ("1", "L") and int(page.photometric) == _WHITE_IS_ZERO
        if image.mode in ("1", "LA"):
            image = image.convert(MODES[source.planes])
        elif image.mode not in ("L", "I;16", "I;16B", "I", "F", "P", "PA"):
            image = image.convert(MODES[max(3, source.planes)])
        values: Any = numpy.asarray(image)
    if turned:
        values = as_stored(values, page.tags.valueof(ORIENTATION))
    if values.shape[:2] != (source.rows // source.planes, source.columns):
        raise UsageError(f"{source.name} has pages that two libraries count differently")
    if values.dtype.itemsize < native.itemsize:
        raise _needs_codecs(page, source.name)
    if inverted:
        values = 255 - values
    if page.bitspersample in (1, 2, 4) and table is None:
        values = values // (255 // (2**page.bitspersample - 1))
    picture = _taken(numpy.atleast_3d(values), source, table)
    write_planes(numpy.atleast_3d(picture), source.dtype, out)


def _place(
    picture: Any, row: int, column: int, source: Source, out: BinaryIO, native: numpy.dtype[Any]
) -> None:
    """Writes a block of the picture, perhaps with an axis of planes, to its place in the file of all rows."""
    columns, size = source.columns, native.itemsize
    for plane, numbers in enumerate(numpy.moveaxis(numpy.atleast_3d(picture), -1, 0)):
        block = numpy.ascontiguousarray(numbers, native)
        top = plane * (source.rows // source.planes) + row
        if block.shape[1] == columns:
            out.seek(top * columns * size)
            out.write(block.data)
            continue
        for line, values in enumerate(block):
            out.seek(((top + line) * columns + column) * size)
            out.write(values.data)


def _table(page: tifffile.TiffPage, source: Source) -> Any:
    """Grey values of a palette, or its colours of shape (colours, 3); None where the page has none.

    The palette has 16 bits whatever the picture has.
    """
    if int(page.photometric) != _PALETTE:
        return None
    if page.colormap is None:
        raise UsageError("its palette is missing")
    dtype = numpy.dtype(source.dtype)
    # The high bytes are right whether a program wrote 8 bits times 256 or times 257.
    colours = numpy.asarray(page.colormap) >> 8 if dtype.itemsize == 1 else numpy.asarray(page.colormap)
    table = colours.astype(numpy.float64)
    if source.planes == 1:
        table = sum(weight * plane for weight, plane in zip(WEIGHTS, table, strict=True))
    return numpy.rint(table.T).astype(dtype)
