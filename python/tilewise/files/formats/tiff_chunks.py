"""Where the strips or tiles of a TIFF page lie, for ranks that unpack them themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewise.files.chunks import MOST_BYTES, MOST_CHUNKS
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Chunks, Filter

if TYPE_CHECKING:
    import tifffile

_PACKED = {1: "", 5: "lzw", 8: "inflate", 32946: "inflate", 32773: "packbits"}  # by the format's numbers
_DIFFERENCES, _FLOATING = 2, 3
_OLD_LZW = 5


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
    """Whether this is the LZW of before TIFF 6.0, whose first code is another."""
    with open(path, "rb") as file:
        for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True):
            if count > 1:
                file.seek(offset)
                first = file.read(2)
                return len(first) == 2 and first[0] == 0 and bool(first[1] & 1)
    return False
