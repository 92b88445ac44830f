"""The .jpg format: grey values of 8 bits, packed with loss."""

from __future__ import annotations

from typing import BinaryIO

from tilewise.files.images import create_raw, decode_image, encode_image, inspect_image
from tilewise.files.region import Region, Source

MEMBER = ""
NUMBERS = ("uint8",)
WRITTEN_NOTES = ("a JPEG image keeps the numbers only roughly (quality 95); .png keeps them exactly",)
_EXTENT_MAX = 65500  # of the library that packs it


def inspect(path: str, name: str, member: str) -> Source:
    """The grey values of the image at `path`."""
    return inspect_image(path, name, "JPEG")


def decode(source: Source, out: BinaryIO) -> None:
    """Unpacks the image."""
    decode_image(source, out, "JPEG")


def create(
    path: str, name: str, member: str, shape: tuple[int, int], dtype: str, order: str, header: bool = False
) -> Region:
    """Makes a raw file beside `path`, which `encode` packs."""
    return create_raw(path, name, shape, dtype, order, _EXTENT_MAX)


def encode(raw: Region, path: str, name: str, member: str) -> None:
    """Packs the numbers with quality 95."""
    encode_image(raw, path, "JPEG", quality=95)
