"""The .tif format: plain grey pages are read and written in place, ranks unpack most others."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.programs import lacking
from tilewise.files.checks import (
    MOST_BYTES,
    MOST_CHUNKS,
    number_type,
    numbers_bytes,
    require_positive,
    require_room,
)
from tilewise.files.dtypes import ALL, ITEMSIZE
from tilewise.files.formats import Format, ending_of
from tilewise.files.formats.tiff_pages import opened, page_at, page_count, page_named, warnings_of
from tilewise.files.headed import raw_beside
from tilewise.files.region import Chunks, Filter, New, Rectangle, Region, Source
from tilewise.files.regular import size_of

if TYPE_CHECKING:
    import tifffile

    from tilewise.files import Content

FORMAT = Format(numbers=ALL, member="page", picture=True, planes=(1, 2, 3, 4))
_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB, _PALETTE, _YCBCR = 0, 1, 2, 3, 6
_MAKES_RGB = (6, 7, 33007, 34892, 34927, 50001, 50002, 52546)  # unpack YCbCr to RGB: JPEG, WebP, JPEG XL
_DENSEST = 2000  # bytes that one packed byte may stand for; deflate reaches 1032
_BIG_FROM = (1 << 32) - (1 << 25)  # bytes; the old kind ends at 4 GiB
_PACKED = {1: "", 5: "lzw", 8: "inflate", 32946: "inflate", 32773: "packbits"}  # by the format's numbers
_DIFFERENCES, _FLOATING = 2, 3
_OLD_LZW = 5


def inspect(path: str, name: str, member: str, planes: tuple[int, ...] = (1,)) -> Source:
    """The page with the number `member` (from 0), or the only one; grey, or what `planes` takes of it."""
    size = size_of(path, name, ".tif file")
    with opened(path) as book:
        page = page_named(book, path, name, member)
        order = "big" if book.byteorder == ">" else "little"
        source = _source(page, path, name, member, size, order, planes)
        return msgspec.structs.replace(source, warnings=source.warnings + warnings_of(book, page))


def contents(path: str, name: str) -> list[Content]:
    """List the pages, by their numbers; (rows, columns, samples) where a point has several."""
    from tilewise.files import Content

    with opened(path) as book:
        found = []
        for number in range(page_count(book)):
            page = page_at(book, number)
            samples = (page.samplesperpixel,) if page.samplesperpixel > 1 else ()
            shape = (page.imagelength, page.imagewidth, *samples)
            number_ = str(page.dtype) if page.dtype is not None else f"{page.bitspersample} bits"
            layout = "in one piece" if _in_one_piece(page) else f"packed ({_name(page.compression)})"
            found.append(Content(str(number), shape, number_, layout, matrix=page.imagedepth == 1))
        return found


def blocks(source: Source, wanted: Sequence[Rectangle]) -> list[Any] | None:
    """The numbers of strips or tiles."""
    from tilewise.files.formats.tiff_decode import lacks_codec, segments_at

    assert source.chunks is not None
    high, wide = source.chunks.shape
    across = -(-source.columns // wide)
    indices = [rows[0] // high * across + columns[0] // wide for rows, columns in wanted]
    with opened(source.path) as book:
        page = page_named(book, source.path, source.name, source.member)
        try:
            found = segments_at(page, indices)
        except Exception as error:
            if lacks_codec(error, page):
                return None
            raise
    return [
        numbers[: bottom - top, : right - left]
        for numbers, ((top, bottom), (left, right)) in zip(found, wanted, strict=True)
    ]


def decode(source: Source, out: BinaryIO) -> None:
    """Unpacks strips or tiles one after the other; by Pillow where tifffile lacks the codec."""
    from tilewise.files.formats.tiff_decode import decode_by_pillow, decode_segments, lacks_codec

    with opened(source.path) as book:
        page = page_named(book, source.path, source.name, source.member)
        try:
            decode_segments(page, source, out)
            return
        except Exception as error:
            if not lacks_codec(error, page):
                raise
        out.seek(0)
        out.truncate()
        decode_by_pillow(page, source, out)


def create(new: New) -> Region:
    """Writes the header of one contiguous grey page; of several planes, makes the raw file beside it."""
    if new.member:
        raise UsageError(f"{new.name} names a page, but a .tif file can be written with one page only")
    require_positive(*new.shape, new.name, "an image")
    if new.planes > 1:
        return raw_beside(new)
    offset = _write_header(new.path, new.name, new.shape, new.dtype)
    return new.region(offset=offset, file_bytes=os.path.getsize(new.path))


def encode(raw: Region, path: str, planes: int) -> None:
    """Writes the planes of `raw` as one contiguous page in which each point has all of its colours."""
    from tilewise.files.formats.colours import panels

    rows = raw.rows // planes
    offset = _write_header(path, raw.name, (rows, raw.columns, planes), raw.dtype)
    with open(path, "r+b") as out:
        out.seek(offset)
        for panel in panels(raw.path, planes, rows, raw.columns, raw.dtype):
            out.write(panel.data)


def _write_header(path: str, name: str, shape: tuple[int, ...], dtype: str) -> int:
    """Makes a page of full size, beyond 4 GiB of the kind called BigTIFF; returns where its numbers begin."""
    import tifffile

    bytes_ = math.prod(shape) * ITEMSIZE[dtype]
    planes = shape[2] if len(shape) == 3 else 1
    written = tifffile.imwrite(
        path,
        data=None,
        shape=shape,
        dtype=dtype,
        bigtiff=bytes_ >= _BIG_FROM,
        byteorder="<",
        photometric="rgb" if planes >= 3 else "minisblack",
        planarconfig=None if planes == 1 else "contig",
        extrasamples=["unassalpha"] if planes in (2, 4) else None,
        metadata=None,
        align=4096,
        returnoffset=True,
    )
    assert written is not None
    offset, count = written
    if count != bytes_:
        raise UsageError(f"{name} cannot hold {'×'.join(map(str, shape))} {dtype}")
    return offset


def _source(
    page: tifffile.TiffPage,
    path: str,
    name: str,
    member: str,
    size: int,
    order: str,
    wanted: tuple[int, ...],
) -> Source:
    from tilewise.files.formats.colours import ORIENTATION, darker, lost, taken, turned_by_viewers

    rows, columns, samples = page.imagelength, page.imagewidth, page.samplesperpixel
    if page.imagedepth != 1:
        raise UsageError(
            f"{name} is a volume of {page.imagedepth}×{rows}×{columns} points, but a picture was expected"
        )
    if page.dtype is None:
        raise UsageError(f"{name} holds numbers of {page.bitspersample} bits, which are not supported")
    dtype = number_type(page.dtype, name)
    require_positive(rows, columns, name, "an image")
    numbers_bytes(rows, columns * max(1, samples), dtype, name)
    photometric = int(page.photometric)
    if photometric not in (_WHITE_IS_ZERO, _BLACK_IS_ZERO, _RGB, _PALETTE, _YCBCR):
        raise UsageError(
            f"{name} has colours of kind {_name(page.photometric)}, but grey or RGB was expected"
        )
    if photometric == _YCBCR and (page.compression not in _MAKES_RGB or page.planarconfig != 1):
        raise UsageError(
            f"{name} stores luma and chroma (YCbCr), and not in JPEG, but grey or RGB was expected",
            "a copy of it in RGB, made by the program that wrote it",
        )
    colour = photometric in (_RGB, _YCBCR)
    basic = 3 if colour else 1
    if not colour and samples > 2:
        raise UsageError(
            f"{name} has {samples} samples per pixel, but grey with or without transparency was expected",
            "an image with one page for each of them",
        )
    if colour and samples < 3:
        raise UsageError(f"{name} is declared as a colour image, but has {samples} samples per pixel")
    absent = sum(
        not (offset and count) for offset, count in zip(page.dataoffsets, page.databytecounts, strict=False)
    )
    plain = (
        _in_one_piece(page)
        and page.dataoffsets[0] > 0
        and samples == 1
        and photometric in (_WHITE_IS_ZERO, _BLACK_IS_ZERO)
    )
    offset = page.dataoffsets[0] if plain else 0
    notes: list[str] = []
    warnings: list[str] = []
    if plain:
        require_room(name, size, offset, rows, columns, dtype)
    else:
        _require_segments(page, size, name)
        pieces = "tiles" if page.is_tiled else "strips"
        notes.append(
            f"its numbers are not stored in one piece ({_name(page.compression)}, "
            f"{len(page.dataoffsets)} {pieces})"
        )
        if absent:
            notes.append(f"{absent} of its {pieces} are not stored and read as {page.nodata}")
    own = (3 if photometric == _PALETTE else basic) + (samples == basic + 1)
    planes = taken(own, wanted)
    warnings += lost(own, planes)
    if samples > basic + 1:  # which of them is transparency, if any, is not known
        warnings.append(f"of its {samples} samples per pixel, only red, green and blue are read")
    if page.bitspersample < 8 * ITEMSIZE[dtype] <= 16 and photometric != _PALETTE:
        warnings += darker(2**page.bitspersample - 1, dtype)
    if photometric == _WHITE_IS_ZERO:
        warnings.append("its numbers are read as stored; 0 is white")
    warnings += turned_by_viewers(page.tags.valueof(ORIENTATION))
    grey = planes == 1 and samples <= 2 and photometric in (_WHITE_IS_ZERO, _BLACK_IS_ZERO)
    packed = chunks_of(page, path, dtype, order) if grey and not plain else None
    if packed is None and not plain:
        from tilewise.files.formats.tiff_decode import needs_codec

        warnings += lacking("imagecodecs") if needs_codec(page) else []
    if packed is not None:
        order = packed[1]
    return Source(
        path=path,
        name=name,
        offset=offset,
        rows=planes * rows,
        columns=columns,
        dtype=dtype,
        byte_order=order if (plain or packed) and ITEMSIZE[dtype] > 1 else "little",
        file_bytes=size,
        format=ending_of(path)[1:],
        member=member,
        encoded=not plain and packed is None,
        encoding="binary" if packed is None else "chunks",
        chunks=packed and packed[0],
        planes=planes,
        notes=tuple(notes),
        warnings=tuple(warnings),
    )


def _in_one_piece(page: tifffile.TiffPage) -> bool:
    """True where the numbers lie row by row from the first strip's offset on."""
    if page.is_contiguous:
        return page.is_final
    # The library says no to numbers of 128 bits, whatever the layout.
    alone = len(page.dataoffsets) == 1 and not page.is_tiled and page.compression == 1
    return alone and page.bitspersample == 128 and page.fillorder == 1 and page.predictor == 1


def _name(code: int) -> str:
    """The library's name of a code of the format, or its number."""
    return str(getattr(code, "name", code)).lower()


def _require_segments(page: tifffile.TiffPage, size: int, name: str) -> None:
    """Raises UsageError when strips or tiles are missing, leave the file, or cannot hold so much."""
    wanted = math.prod(page.chunked)
    if not page.dataoffsets or not wanted <= len(page.dataoffsets) == len(page.databytecounts):
        raise UsageError(
            f"{name} has {len(page.dataoffsets)} strips or tiles of numbers, but its shape requires {wanted}"
        )
    stored = sum(page.databytecounts)
    if 0 not in page.databytecounts and page.nbytes > _DENSEST * stored:
        raise UsageError(
            f"{name} declares {page.nbytes} bytes of numbers, too many for its {stored} compressed bytes"
        )
    for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True):
        if offset < 0 or count < 0 or offset + count > size:
            raise UsageError(
                f"{name} has {size} bytes, but numbers up to byte {offset + count}: it is truncated"
            )


def chunks_of(page: tifffile.TiffPage, path: str, dtype: str, order: str) -> tuple[Chunks, str] | None:
    """Strips or tiles of a grey page, and the byte order of what they unpack to; None where ranks cannot."""
    item, samples = ITEMSIZE[dtype], page.samplesperpixel
    apart = page.planarconfig == 2 and samples > 1
    compression, predictor = int(page.compression), int(page.predictor)
    if compression not in _PACKED or apart or page.fillorder != 1 or page.bitspersample != 8 * item:
        return None
    if predictor != 1 and compression not in (5, 8, 32946):
        return None
    filters = [Filter(name=_PACKED[compression])] if _PACKED[compression] else []
    if predictor == _DIFFERENCES and dtype.startswith(("int", "uint")):
        filters.append(Filter(name="horizontal", item=item, byte_order=order))
    elif predictor == _FLOATING and dtype.startswith("float") and samples == 1:
        filters.append(Filter(name="floating", item=item))
        order = "little"
    elif predictor != 1:
        return None
    if page.is_tiled:
        high, wide = page.tilelength, page.tilewidth
    else:
        high, wide = min(page.rowsperstrip, page.imagelength), page.imagewidth
    if high < 1 or wide < 1:
        return None
    count = -(-page.imagelength // high) * -(-page.imagewidth // wide)
    numbers = high * wide * samples
    if count != len(page.dataoffsets) or count > MOST_CHUNKS or numbers * item > MOST_BYTES:
        return None
    if compression == _OLD_LZW and _bits_reversed(path, page):
        return None
    stored = [
        bytes_ if offset else 0 for offset, bytes_ in zip(page.dataoffsets, page.databytecounts, strict=True)
    ]
    import numpy

    fill = numpy.dtype(dtype).newbyteorder(">" if order == "big" else "<")
    chunks = Chunks(
        shape=(high, wide),
        steps=(wide * samples, samples),
        numbers=numbers,
        clipped=not page.is_tiled,
        filters=filters,
        offsets=list(page.dataoffsets),
        bytes=stored,
        fill=numpy.array(page.nodata, fill).tobytes().hex(),
    )
    return chunks, order if item > 1 else "little"


def _bits_reversed(path: str, page: tifffile.TiffPage) -> bool:
    """True for the LZW of before TIFF 6.0, whose first code is another."""
    with open(path, "rb") as file:
        for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True):
            if count > 1:
                file.seek(offset)
                first = file.read(2)
                return len(first) == 2 and first[0] == 0 and bool(first[1] & 1)
    return False
