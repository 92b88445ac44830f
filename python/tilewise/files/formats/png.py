"""The .png format: grey values or colours of 8 or 16 bits, always decoded and encoded as a whole.

Samples are read as stored, where Pillow by itself cuts 16 bits to 8, or stretches fewer. Its decoder can be
asked for other parts of a sample than Pillow asks for. Of 16 bits:

    stored          R1 R0 G1 G0 B1 B0        two bytes a sample, the high one first
    as "RGB;16B"    R1    G1    B1           Pillow's choice
    as "RGB;16L"       R0    G0    B0        the same file for numbers with the low byte first

One or two samples of 16 bits are as many bytes as a pixel of 8 bits has in one of Pillow's modes, and samples
of fewer bits are indices of a palette to Pillow.
"""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO

from tilewise.base.errors import UsageError
from tilewise.files.formats import Format
from tilewise.files.formats.pillow import PillowFormat
from tilewise.files.region import Region, Source
from tilewise.files.regular import Bounded

FORMAT = Format(numbers=("uint8", "uint16"), picture=True, planes=(1, 2, 3, 4))

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _COLOURS, _PALETTE, _GREY_ALPHA, _COLOURS_ALPHA = 0, 2, 3, 4, 6
_SAMPLES = {_GREY: 1, _COLOURS: 3, _GREY_ALPHA: 2, _COLOURS_ALPHA: 4}
_UP = 2  # each byte less the one above it


class PngFormat(PillowFormat, frozen=True):
    """PNG images; 8 bits a sample and palettes, whatever their bits, are left to Pillow."""

    def encode(self, raw: Region, path: str, planes: int) -> None:
        """Pack the numbers of `raw` into the file at `path`."""
        if planes == 1 or raw.dtype == "uint8":
            super().encode(raw, path, planes)
        else:
            with open(path, "wb") as out:
                _write(raw, planes, out)

    def _facts(self, image: Any) -> tuple[int, str, tuple[str, ...]]:
        from tilewise.files.formats.colours import darker

        depth, kind = _depth(image)
        if depth == 8 or kind == _PALETTE:
            return super()._facts(image)
        transparent = kind in (_GREY, _COLOURS) and "transparency" in image.info
        said = darker(2**depth - 1, "uint8") if depth < 8 else ()
        return _SAMPLES[kind] + transparent, "uint8" if depth < 8 else "uint16", said

    def _picture(self, image: Any, source: Source) -> Any:
        import numpy

        depth, kind = _depth(image)
        if depth == 8 or kind == _PALETTE:
            return super()._picture(image, source)
        picture = _samples(image, _data(source.path, source.name), depth, kind)
        if source.planes in (1, 3) or source.planes == picture.shape[2]:
            return picture
        # One of the colours stands for no colour at all.
        clear = numpy.atleast_1d(image.info["transparency"]) % 2**depth
        seen = (picture != clear).any(axis=2, keepdims=True).astype(picture.dtype)
        return numpy.concatenate((picture, seen * seen.dtype.type(255 if depth < 8 else 65535)), axis=2)


def _depth(image: Any) -> tuple[int, int]:
    """The bits of a sample and the kind of colours, which the first chunk of the file has."""
    at = image.fp.tell()
    image.fp.seek(0)
    head = image.fp.read(26)
    image.fp.seek(at)
    return head[24], head[25]


def _samples(image: Any, data: bytes, depth: int, kind: int) -> Any:
    """The samples of an image as they are stored, of shape (rows, columns, samples)."""
    import numpy
    from PIL import Image

    def unpacked(mode: str, raw: str) -> Any:
        interlaced = int(bool(image.info.get("interlace")))
        return numpy.asarray(Image.frombytes(mode, image.size, data, "zip", raw, interlaced))

    if depth < 8:
        return unpacked("P", f"P;{depth}")[..., None]
    if kind in (_GREY, _GREY_ALPHA):
        mode = "LA" if kind == _GREY else "RGBA"
        return unpacked(mode, mode).view(">u2")
    mode = "RGB" if kind == _COLOURS else "RGBA"
    picture = unpacked(mode, f"{mode};16B").astype("uint16")
    picture <<= 8
    picture |= unpacked(mode, f"{mode};16L")
    return picture


def _data(path: str, name: str) -> bytes:
    """The packed samples of an image: what its chunks called IDAT hold."""
    found: list[bytes] = []
    with Bounded(path) as file:
        file.seek(len(_SIGNATURE))
        while len(head := file.read(8)) == 8:
            length, kind = int.from_bytes(head[:4]), head[4:]
            if kind != b"IDAT":
                if found:
                    break
                file.seek(length + 4, 1)
                continue
            body, sum_ = file.read(length), file.read(4)
            if len(body) < length or len(sum_) < 4:
                break
            if zlib.crc32(body, zlib.crc32(kind)) != int.from_bytes(sum_):
                raise UsageError(f"{name} is damaged: the checksum of its numbers does not match")
            found.append(body)
    return b"".join(found)


def _write(raw: Region, planes: int, out: BinaryIO) -> None:
    """Write planes of 16 bits as an image with all samples of a point side by side."""
    import numpy

    from tilewise.files.formats.colours import panels

    def chunk(kind: bytes, body: bytes) -> None:
        out.write(len(body).to_bytes(4) + kind + body + zlib.crc32(body, zlib.crc32(kind)).to_bytes(4))

    rows = raw.rows // planes
    kind = {2: _GREY_ALPHA, 3: _COLOURS, 4: _COLOURS_ALPHA}[planes]
    out.write(_SIGNATURE)
    chunk(b"IHDR", raw.columns.to_bytes(4) + rows.to_bytes(4) + bytes((16, kind, 0, 0, 0)))
    packer = zlib.compressobj()
    above = numpy.zeros((1, raw.columns * planes * 2), "uint8")
    for panel in panels(raw.path, planes, rows, raw.columns, raw.dtype):
        lines = panel.astype(">u2").reshape(len(panel), -1).view("uint8")
        filtered = numpy.diff(numpy.concatenate((above, lines)), axis=0)
        packed = packer.compress(numpy.insert(filtered, 0, _UP, axis=1).tobytes())
        above = lines[-1:]
        if packed:
            chunk(b"IDAT", packed)
    chunk(b"IDAT", packer.flush())
    chunk(b"IEND", b"")


_PNG = PngFormat("PNG", extent_max=(1 << 31) - 1)

inspect, decode, create, encode = _PNG.inspect, _PNG.decode, _PNG.create, _PNG.encode
