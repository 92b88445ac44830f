"""The .png format: grey values of 8 or 16 bits, always decoded and encoded as a whole."""

from __future__ import annotations

from typing import BinaryIO

from tilewise.files.images import create_raw, decode_image, encode_image, inspect_image
from tilewise.files.region import Region, Source

MEMBER = ""
NUMBERS = ("uint8", "uint16")
_EXTENT_MAX = (1 << 31) - 1


def inspect(path: str, name: str, member: str) -> Source:
    """The grey values of the image at `path`."""
    return inspect_image(path, name, "PNG")


def decode(source: Source, out: BinaryIO) -> None:
    """Unpacks the image."""
    decode_image(source, out, "PNG")


def create(
    path: str, name: str, member: str, shape: tuple[int, int], dtype: str, order: str, header: bool = False
) -> Region:
    """Makes a raw file beside `path`, which `encode` packs."""
    return create_raw(path, name, shape, dtype, order, _EXTENT_MAX)


def encode(raw: Region, path: str, name: str, member: str) -> None:
    """Packs the numbers without loss."""
    encode_image(raw, path, "PNG")
