"""The .raw format: numbers and nothing else, so that the user says the shape behind the name."""

from __future__ import annotations

import os
import re

from tilewise.errors import UsageError
from tilewise.files.checks import numbers_bytes, require_room
from tilewise.files.dtypes import ITEMSIZE, parse_dtype
from tilewise.files.region import Region, Source
from tilewise.files.regular import open_regular
from tilewise.units import parse_shape, shape_text

MEMBER = "shape"
NUMBERS = tuple(ITEMSIZE)
_FORM = "4096x4096:float64[:offset in bytes], where >float64 means big endian"


def inspect(path: str, name: str, member: str) -> Source:
    """The numbers at `path` as `member` describes them.

    Without an offset the file must hold exactly these numbers, with one others may follow.
    """
    file, size = open_regular(path, name)
    file.close()
    if not member:
        raise UsageError(
            f"{name} has no header that says its shape",
            f"{name}:ROWSxCOLUMNS:float64, for example {name}:4096x4096:float64",
        )
    rows, columns, dtype, order, offset = parse_member(member, name)
    numbers = numbers_bytes(rows, columns, dtype, name)
    if offset is None and size != numbers:
        raise UsageError(
            f"{name} has {size} bytes, but {shape_text(rows, columns)} {dtype} are {numbers}; numbers that "
            "begin elsewhere than at byte 0 need their offset as a last field"
        )
    require_room(name, size, offset or 0, rows, columns, dtype)
    return Source(
        path=path,
        name=name,
        offset=offset or 0,
        rows=rows,
        columns=columns,
        dtype=dtype,
        byte_order=order,
        file_bytes=size,
        format="raw",
        member=member,
    )


def create(
    path: str, name: str, member: str, shape: tuple[int, int], dtype: str, order: str, header: bool = False
) -> Region:
    """Gives the file its size; a `member` must say what is written anyway."""
    if member:
        rows, columns, said, byte_order, offset = parse_member(member, name)
        if ((rows, columns), said, byte_order, offset or 0) != (shape, dtype, "little", 0):
            raise UsageError(
                f"{name} asks for other numbers than the result has: {shape_text(*shape)} {dtype}, "
                "little endian"
            )
    size = shape[0] * shape[1] * ITEMSIZE[dtype]
    os.truncate(path, size)
    return Region(
        path=path, name=name, rows=shape[0], columns=shape[1], dtype=dtype, order=order, file_bytes=size
    )


def parse_member(member: str, name: str) -> tuple[int, int, str, str, int | None]:
    """Rows, columns, dtype, byte order and offset that `shape[:dtype[:offset]]` says."""
    fields = member.split(":")
    if len(fields) > 3:
        raise UsageError(f"{name} has too many fields; the form is {_FORM}")
    rows, columns = parse_shape(fields[0], f"{name}: the shape")
    kind = fields[1] if len(fields) > 1 else "float64"
    dtype = parse_dtype(kind[1:] if kind[:1] in ("<", ">") else kind, f"{name}: the type")
    offset = None
    if len(fields) == 3:
        if not re.fullmatch(r"[0-9]{1,18}", fields[2]):
            raise UsageError(f"{name}: the offset is a whole number of bytes, not {fields[2]!r}")
        offset = int(fields[2])
    return rows, columns, dtype, "big" if kind.startswith(">") else "little", offset
