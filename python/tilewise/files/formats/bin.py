"""The .bin format: rows and columns as little-endian int32, then float64 row by row."""

from __future__ import annotations

import struct

from tilewise.base.errors import UsageError
from tilewise.base.units import shape_text
from tilewise.files.checks import require_size
from tilewise.files.formats import Format
from tilewise.files.headed import create_headed
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular

FORMAT = Format(numbers=("float64",))
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


def create(new: New) -> Region:
    """Writes the two extents and gives the file its size."""
    if max(new.shape) >= 1 << 31:
        raise UsageError(
            f"{new.name} cannot hold {shape_text(*new.shape)}: a .bin file stores its extents in 32 bits"
        )
    return create_headed(new, _HEAD.pack(*new.shape))
