"""The .raw format: numbers and nothing else, so that the user says the shape behind the name."""

from __future__ import annotations

import math
import re
from typing import BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import parse_extents
from tilewise.files.checks import numbers_bytes, require_room
from tilewise.files.dtypes import ALL, parse_dtype
from tilewise.files.formats import Format
from tilewise.files.headed import create_headed
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular
from tilewise.files.slices import Selection, copy_out, part_of, where

FORMAT = Format(numbers=ALL, member="shape", orders=("C", "F"), headed=False, sliced=True, stacked=True)
_FORM = "4096x4096:float64[:F][:offset in bytes], where >float64 means big endian, F column by column"


class Said(msgspec.Struct, frozen=True):
    """The layout behind the name of a file; `order` and `offset` (bytes) are None where nothing is said."""

    shape: tuple[int, ...]
    dtype: str
    byte_order: str
    order: str | None
    offset: int | None


def inspect(path: str, name: str, member: str, selection: Selection | None = None) -> Source:
    """The numbers at `path` as `member` describes them, or a slice of these.

    Without an offset the file must hold exactly these numbers, with one others may follow.
    """
    file, size = open_regular(path, name)
    file.close()
    if not member:
        raise UsageError(
            f"{name} has no header with its shape",
            f"{name}:ROWSxCOLUMNS:float64, for example {name}:4096x4096:float64",
        )
    said = parse_member(member, name)
    found = part_of(said.shape, name, selection, said.order == "F")
    count = math.prod(said.shape)
    numbers = numbers_bytes(1, count, said.dtype, name)
    if said.offset is None and size != numbers:
        raise UsageError(
            f"{name} has {size} bytes, but {_text(said.shape)} {said.dtype} are {numbers}; "
            "if the numbers do not begin at byte 0, add their offset as the last field"
        )
    require_room(name, size, said.offset or 0, 1, count, said.dtype)
    return Source(
        path=path,
        name=name,
        dtype=said.dtype,
        file_bytes=size,
        format="raw",
        member=member,
        **where(found, said.offset or 0, said.dtype, said.byte_order),
    )


def decode(source: Source, out: BinaryIO) -> None:
    """Copies slices whose rows do not lie in one piece."""
    import numpy

    assert source.part is not None
    said = parse_member(source.member, source.name)
    stored = numpy.dtype(said.dtype).newbyteorder("<" if said.byte_order == "little" else ">")
    copy_out(source.part, source.path, said.offset or 0, stored, out)


def create(new: New) -> Region:
    """Gives the file its size; a `member` must say what is written anyway."""
    if new.member:
        said = parse_member(new.member, new.name)
        # What the name leaves open may be anything.
        asked = Said(new.array_shape, new.dtype, "little", said.order and new.order, said.offset and 0)
        if said != asked:
            raise UsageError(
                f"{new.name} names a different layout than the result has: "
                f"{_text(new.array_shape)} {new.dtype}, little endian, "
                f"{'row by row' if new.order == 'C' else 'column by column'}"
            )
    return create_headed(new, b"")


def written_warnings(name: str, shape: tuple[int, ...], dtype: str, order: str) -> tuple[str, ...]:
    """The name that a file in F order must be read by: without it, its numbers come out in other places."""
    if order == "C":
        return ()
    from tilewise.files.formats import split_name

    said = f"{split_name(name)[0]}:{'x'.join(map(str, shape))}:{dtype}:F"
    return (f"it is stored column by column: read it as {said}",)


def order_of_member(member: str, name: str) -> str | None:
    """The order of storage that the name of a new file asks for, if it does; UsageError for a wrong one."""
    return parse_member(member, name).order if member else None


def parse_member(member: str, name: str) -> Said:
    """Parse `shape[:dtype[:order][:offset]]`."""
    fields = member.split(":")
    shape = parse_extents(fields[0], f"{name}: the shape")
    kind = fields[1] if len(fields) > 1 else "float64"
    dtype = parse_dtype(kind[1:] if kind[:1] in ("<", ">") else kind, f"{name}: the type")
    rest = fields[2:]
    order = rest.pop(0) if rest and rest[0] in ("C", "F") else None
    if len(rest) > 1:
        raise UsageError(f"{name} has too many fields; the form is {_FORM}")
    if rest and not re.fullmatch(r"[0-9]{1,18}", rest[0]):
        raise UsageError(
            f"{name}: the offset is a whole number of bytes, not {rest[0]!r}; the form is {_FORM}"
        )
    offset = int(rest[0]) if rest else None
    return Said(shape, dtype, "big" if kind.startswith(">") else "little", order, offset)


def _text(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))
