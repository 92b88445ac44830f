"""The .bin format: rows and columns as little-endian int32, then float64 row by row."""

from __future__ import annotations

import struct

from tilewise.errors import UsageError
from tilewise.files.checks import require_rows, require_size
from tilewise.files.headed import create_headed
from tilewise.files.region import Region, Source
from tilewise.files.regular import open_regular
from tilewise.units import shape_text

MEMBER = ""
NUMBERS = ("float64",)
_HEAD = struct.Struct("<ii")


def inspect(path: str, name: str, member: str) -> Source:
    """The matrix at `path`; UsageError when its size is not the one that its extents promise."""
    file, size = open_regular(path, name)
    with file:
        head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise UsageError(f"{name} has {size} bytes, but a .bin file begins with two int32: rows and columns")
    rows, columns = _HEAD.unpack(head)
    require_size(name, size, _HEAD.size, rows, columns, "float64")
    return Source(
        path=path,
        name=name,
        offset=_HEAD.size,
        rows=rows,
        columns=columns,
        dtype="float64",
        file_bytes=size,
        format="bin",
    )


def create(
    path: str, name: str, member: str, shape: tuple[int, int], dtype: str, order: str, header: bool = False
) -> Region:
    """Writes the two extents and gives the file its size."""
    require_rows(order, name, "a .bin file")
    if max(shape) >= 1 << 31:
        raise UsageError(f"{name} cannot hold {shape_text(*shape)}: a .bin file says its extents in 32 bits")
    return create_headed(path, name, _HEAD.pack(*shape), shape, "float64")
