"""Pictures by their libraries, with all options of these, and by hand where no library writes them."""

from __future__ import annotations

import importlib.util
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from drawn import ORDERS, REAL, WHOLE, Draw, Kind, Made, Matrix, refused
from PIL import Image

SIDES = (1, 2, 3, 7, 16, 17, 33, 64, 100)
CODECS = importlib.util.find_spec("imagecodecs") is not None
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def grey(picture: Matrix) -> Matrix:
    """The grey value of colours along the last axis; transparency is ignored."""
    if picture.shape[-1] < 3:
        return picture[..., 0]
    red, green, blue = np.moveaxis(picture[..., :3].astype("f8"), -1, 0)
    value = red * 0.299 + green * 0.587 + blue * 0.114
    return np.asarray(np.rint(value) if picture.dtype.kind in "iu" else value).astype(picture.dtype)


def tif(path: Path, draw: Draw) -> Made:
    """A page of one or several by tifffile, or an array in one page."""
    samples, pages = draw.pick("samples", (1, 1, 1, 1, 2, 3, 4)), draw.pick("pages", (1, 1, 1, 2, 4))
    types = (*WHOLE, *REAL, "bool") if samples == 1 else ("uint8", "uint16", "float32")
    dtype, shape, most = np.dtype(draw.pick("type", types)), draw.shape(2, SIDES), None
    options = packing(dtype, draw)
    options |= {"byteorder": draw.pick("byteorder", ORDERS), "bigtiff": draw.maybe("bigtiff", 0.2)}
    if samples > 1:
        options["planarconfig"] = draw.pick("planarconfig", ("contig", "separate"))
        options["extrasamples"] = ["unassalpha"] if samples in (2, 4) else None
    kinds = ("rgb",) if samples > 2 else ("minisblack", "minisblack", "miniswhite")
    options["photometric"] = draw.pick("photometric", kinds)
    if draw.maybe("tiles", 0.4):
        options["tile"] = draw.pick("tile", ((16, 16), (32, 16), (16, 48), (64, 64)))
    else:
        options["rowsperstrip"] = draw.pick("rowsperstrip", (None, 1, 7, 50))
    narrow = {"uint8": (1, 2, 4), "uint16": (10, 12, 14)}.get(dtype.name) if samples == 1 and CODECS else None
    if narrow and not options["compression"] and draw.maybe("bits", 0.2):
        options["bitspersample"] = bits = draw.pick("of", narrow)
        most = 2**bits - 1
    if draw.maybe("GDAL_NODATA", 0.2):
        values = ("0", "1") if dtype.kind in "bu" else ("0", "7", "-9999")  # which the numbers can have
        options["extratags"] = [(42113, 2, 0, draw.pick("nodata", values), True)]
    options["metadata"] = {"axes": "ZYX"} if pages > 1 and samples == 1 else draw.pick("metadata", (None, {}))
    if pages > 1 and draw.maybe("truncated", 0.3):
        options |= {"truncate": True, "compression": None, "predictor": None, "tile": None}
    elif pages > 1 and dtype.name in ("uint8", "uint16", "float32") and draw.maybe("imagej", 0.2):
        options |= {"imagej": True, "byteorder": ">", "bigtiff": False, "metadata": {}}
    elif samples == 1 and draw.maybe("ome", 0.1):
        options |= {"ome": True}
    whole = (samples, *shape) if options.get("planarconfig") == "separate" else (*shape, samples)
    whole = whole if samples > 1 else shape
    tifffile.imwrite(path, draw.numbers((pages, *whole) if pages > 1 else whole, dtype, most), **options)
    with tifffile.TiffFile(path) as book:
        pages, first = len(book.pages), book.pages.first
        if pages == 1 and book.series[0].size != first.size:  # one page stands for more of them
            return Made(path.name, refused, warned="page|stack|axes")
    page = draw.dice.randrange(pages)
    if options.get("tile") and draw.maybe("sparse", 0.3):
        forget_some(path, page, draw)

    def read() -> Matrix:
        with tifffile.TiffFile(path) as book:
            one = book.pages[page].aspage()
            found = np.asarray(one.asarray()).reshape(one.shape)
            if one.samplesperpixel > 1:
                found = grey(np.moveaxis(found, 0, -1) if one.planarconfig == 2 else found)
            return found.reshape(one.imagelength, one.imagewidth)

    return Made(f"{path.name}:{page}" if pages > 1 else path.name, read)


def packing(dtype: np.dtype[Any], draw: Draw) -> dict[str, Any]:
    """A compression, and a predictor where it takes one."""
    more = ("lzw", "lzw", "packbits", "zstd", "lzma", "lerc", "jpegxl", "png", "jpeg") if CODECS else ()
    packed = draw.pick("compression", (None, None, None, "zlib", "zlib", *more))
    fitting = dtype.kind != "b" and (CODECS or (dtype.kind in "iu" and dtype.itemsize <= 4))
    predicted = packed in ("zlib", "lzw", "zstd", "lzma") and fitting and draw.maybe("predictor")
    return {"compression": packed, "predictor": predicted or None}


def forget_some(path: Path, page: int, draw: Draw) -> None:
    """Has some tiles of a page stored nowhere, as sparse files have."""
    with tifffile.TiffFile(path, mode="r+") as book:
        tags = book.pages[page].aspage().tags
        gone = {draw.dice.randrange(len(tags["TileOffsets"].value)) for _ in range(3)}
        for tag in (tags["TileOffsets"], tags["TileByteCounts"]):
            tag.overwrite([0 if place in gone else each for place, each in enumerate(tag.value)])


def tif_by_pillow(path: Path, draw: Draw) -> Made:
    """A page by Pillow, which has compressions of its own."""
    mode = draw.pick("mode", ("1", "L", "L", "LA", "P", "RGB", "RGBA", "I;16", "I", "F"))
    packings = ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "lzma", "zstd"]
    packings += ["group3", "group4", "tiff_ccitt"] * (mode == "1")
    random_image(mode, draw).save(path, compression=draw.pick("compression", packings))

    def read() -> Matrix:
        with Image.open(path) as image:
            found = np.asarray(image.convert("RGB") if image.mode == "P" else image)
            return found if found.ndim == 2 else grey(found)

    return Made(path.name, read)


def random_image(mode: str, draw: Draw) -> Image.Image:
    """An image of Pillow's in one of its modes."""
    shape, types = draw.shape(2, SIDES), {"I;16": "uint16", "I": "int32", "F": "float32", "1": "bool"}
    if mode in types:
        return Image.fromarray(draw.numbers(shape, types[mode]))
    bands = {"LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}.get(mode, 1)
    numbers = draw.numbers((*shape, bands), "uint8")
    image = Image.frombytes("L" if mode == "P" else mode, (shape[1], shape[0]), numbers.tobytes())
    if mode == "P":
        image.putpalette(draw.numbers((768,), "uint8").tobytes())
    return image


def png(path: Path, draw: Draw) -> Made:
    """A picture by Pillow without loss."""
    mode = draw.pick("mode", ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"))
    options: dict[str, Any] = {"optimize": draw.maybe("optimize")}
    options |= {"compress_level": draw.pick("level", (0, 1, 9))}
    if mode in ("L", "RGB", "P") and draw.maybe("transparent", 0.3):
        options["transparency"] = (1, 2, 3) if mode == "RGB" else 5
    random_image(mode, draw).save(path, **options)
    return Made(path.name, lambda: by_pillow(path))


def jpg(path: Path, draw: Draw) -> Made:
    """A picture by Pillow with loss."""
    options: dict[str, Any] = {each: draw.maybe(each) for each in ("progressive", "optimize")}
    options |= {"quality": draw.pick("quality", (10, 75, 95)), "subsampling": draw.pick("of", (0, 1, 2))}
    random_image(draw.pick("mode", ("L", "RGB", "CMYK")), draw).save(path, **options)
    return Made(path.name, lambda: by_pillow(path))


def by_pillow(path: Path) -> Matrix:
    """The numbers that Pillow has, or its grey values of colours."""
    with Image.open(path) as image:
        if image.mode in ("1", "I;16", "I"):
            return np.asarray(image).astype("u2" if image.mode != "1" else "u1")
        return np.asarray(image) if image.mode == "L" else grey(np.asarray(image.convert("RGBA")))


def png_by_hand(path: Path, draw: Draw) -> Made:
    """Any depth, kind of colours, and interlacing."""
    colour = draw.pick("colours", (0, 0, 2, 3, 4, 6))
    depth = draw.pick("depth", {0: (1, 2, 4, 8, 16), 3: (1, 2, 4, 8)}.get(colour, (8, 16)))
    bands, shape = {2: 3, 4: 2, 6: 4}.get(colour, 1), draw.shape(2, SIDES)
    numbers = draw.numbers((*shape, bands), "uint16" if depth == 16 else "uint8", 2**depth - 1)
    interlaced, table = (
        draw.pick("interlaced", (0, 1)),
        draw.numbers((2**depth if colour == 3 else 1, 3), "uint8"),
    )
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", shape[1], shape[0], depth, colour, 0, 0, interlaced))]
    if colour == 3:
        chunks.append((b"PLTE", table.tobytes()))
    if colour in (0, 2, 3) and draw.maybe("tRNS", 0.2):
        chunks.append((b"tRNS", struct.pack(">H", 1) * {0: 1, 2: 3}.get(colour, 0) or b"\x07"))
    passes = ADAM7 if interlaced else ((0, 0, 1, 1),)
    body = b"".join(scanlines(numbers[y::high, x::wide], depth) for x, y, wide, high in passes)
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for kind, data in (*chunks, (b"IDAT", zlib.compress(body)), (b"IEND", b"")):
            file.write(struct.pack(">I", len(data)) + kind + data)
            file.write(struct.pack(">I", zlib.crc32(kind + data)))
    return Made(path.name, lambda: grey(table[numbers[..., 0]] if colour == 3 else numbers))


def scanlines(numbers: Matrix, depth: int) -> bytes:
    """Rows as PNG has them, each with no filter."""
    if not numbers.size:
        return b""
    flat = numbers.reshape(len(numbers), -1)
    if depth == 16:
        rows = flat.astype(">u2").view("u1")
    else:
        bits = np.unpackbits(flat.astype("u1")[..., None], axis=-1)[..., 8 - depth :]
        rows = np.packbits(bits.reshape(len(flat), -1), axis=1)
    return b"".join(b"\0" + row.tobytes() for row in rows)


def pnm(path: Path, draw: Draw) -> Made:
    """Grey or colours, as text or in binary, with any largest number and with comments."""
    kind = draw.pick("kind", ("P2", "P3", "P5", "P6"))
    most = draw.pick("most", (1, 15, 100, 255, 256, 1000, 4095, 65535))
    rows, columns, bands = *draw.shape(2, SIDES), 3 if kind in ("P3", "P6") else 1
    numbers = draw.numbers((rows, columns, bands), "uint8" if most < 256 else "uint16", most)
    blank, comment = draw.pick("blank", ("\n", " ", "\t", "\r\n")), "# by hand\n" * draw.maybe("comment")
    with path.open("wb") as file:
        file.write(f"{kind}\n{comment}{columns}{blank}{rows}\n{comment}{most}\n".encode())
        if kind in ("P5", "P6"):
            file.write(numbers.astype(numbers.dtype.newbyteorder(">")).tobytes())
        else:
            wide = draw.pick("lines", ((rows, -1), (-1, 1)))
            np.savetxt(file, numbers.reshape(wide), "%d", newline=draw.pick("newline", ("\n", " \r\n")))
    return Made(path.name, lambda: grey(numbers))


IMAGES = [
    Kind("tif", ".tif", tif, 10),
    Kind("tif by Pillow", ".tif", tif_by_pillow, 3),
    Kind("png", ".png", png),
    Kind("png by hand", ".png", png_by_hand, 3, by_hand=True),
    Kind("jpg", ".jpg", jpg, 1),
    Kind("pgm", ".pgm", pnm, by_hand=True),
]
