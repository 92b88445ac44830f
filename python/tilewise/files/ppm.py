"""The .ppm images: read as .pgm ones are; written with colours, from planes that are packed at the end."""

from __future__ import annotations

from tilewise.errors import UsageError
from tilewise.files.checks import require_positive, require_rows
from tilewise.files.colours import panels
from tilewise.files.pgm import decode, inspect
from tilewise.files.region import Region
from tilewise.files.unpacked import raw_beside

__all__ = ["MEMBER", "NUMBERS", "PLANES", "create", "decode", "encode", "inspect"]

MEMBER = ""
NUMBERS = ("uint8", "uint16")
PLANES = (3,)


def create(
    path: str,
    name: str,
    member: str,
    shape: tuple[int, int],
    dtype: str,
    order: str,
    header: bool = False,
    planes: int = 1,
) -> Region:
    """Makes the raw file beside `path` that the planes go to before they are packed."""
    require_rows(order, name, "an image")
    require_positive(*shape, name, "an image")
    if planes not in PLANES:
        raise UsageError(
            f"{name} is to hold numbers without colours, but a .ppm file has three", "a .pgm file"
        )
    return raw_beside(path, name, shape, dtype)


def encode(raw: Region, path: str, name: str, member: str, planes: int = 3) -> None:
    """Writes the planes of `raw` as a file of kind P6, in big endian."""
    rows = raw.rows // planes
    largest = 255 if raw.dtype == "uint8" else 65535
    with open(path, "wb") as out:
        out.write(b"P6\n%d %d\n%d\n" % (raw.columns, rows, largest))
        for panel in panels(raw.path, planes, rows, raw.columns, raw.dtype):
            out.write(panel.astype(panel.dtype.newbyteorder(">"), copy=False).data)
