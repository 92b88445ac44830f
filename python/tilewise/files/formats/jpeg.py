"""The .jpg format: grey values or colours of 8 bits, packed with loss."""

from __future__ import annotations

from tilewise.files.formats import Format
from tilewise.files.formats.pillow import PillowFormat

FORMAT = Format(numbers=("uint8",), picture=True, planes=(1, 3))
_QUALITY = 95
_JPEG = PillowFormat("JPEG", extent_max=65500, options={"quality": _QUALITY})  # the end of libjpeg

inspect, decode, create, encode = _JPEG.inspect, _JPEG.decode, _JPEG.create, _JPEG.encode


def written_warnings(name: str, shape: tuple[int, ...], dtype: str, order: str) -> tuple[str, ...]:
    """Warn that the numbers change a little, whatever they are."""
    return (
        f"a JPEG image stores the numbers only approximately (quality {_QUALITY}); .png keeps them exactly",
    )
