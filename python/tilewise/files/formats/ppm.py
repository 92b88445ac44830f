"""The .ppm images: read as .pgm ones are; written with colours, from planes that are packed at the end."""

from __future__ import annotations

from tilewise.base.errors import UsageError
from tilewise.files.checks import require_positive
from tilewise.files.formats import Format
from tilewise.files.formats.colours import panels
from tilewise.files.formats.pgm import decode, inspect
from tilewise.files.headed import raw_beside
from tilewise.files.region import New, Region

__all__ = ["FORMAT", "create", "decode", "encode", "inspect"]

FORMAT = Format(numbers=("uint8", "uint16"), picture=True, planes=(3,))


def create(new: New) -> Region:
    """Makes the raw file that the planes go to before they are packed."""
    require_positive(*new.shape, new.name, "an image")
    if new.planes not in FORMAT.planes:
        raise UsageError(
            f"{new.name} is for numbers without colours, but a .ppm file has three", "a .pgm file"
        )
    return raw_beside(new)


def encode(raw: Region, path: str, planes: int) -> None:
    """Writes the planes of `raw` as a file of kind P6, in big endian."""
    rows = raw.rows // planes
    largest = 255 if raw.dtype == "uint8" else 65535
    with open(path, "wb") as out:
        out.write(b"P6\n%d %d\n%d\n" % (raw.columns, rows, largest))
        for panel in panels(raw.path, planes, rows, raw.columns, raw.dtype):
            out.write(panel.astype(panel.dtype.newbyteorder(">"), copy=False).data)
