"""Reads MATLAB files of the versions 5 to 7: a header of 128 bytes, then an element for each variable.

    ┌ tag ┬ flags ┬ extents ┬ name ┬ tag ┬ real parts ┬ tag ┬ imaginary parts ┐

The whole element may be packed by zlib. Columns lie one after the other. Numbers may be
stored in a smaller type than theirs, where that holds them all.
"""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.files.checks import numbers_bytes, printable
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats.mat_cursor import Cursor, Numbers, padded
from tilewise.files.formats.mat_variables import Variable, choose, numbers_of
from tilewise.files.region import Source
from tilewise.files.slices import Part, part_of, where
from tilewise.files.stacks import Selection, write_slices

if TYPE_CHECKING:
    import numpy

HEAD = 128  # bytes before the first variable
MATRIX, _PACKED = 14, 15  # types of elements
NUMBERED = (
    *("", "cell", "struct", "object", "char", "sparse", "double", "single", "int8", "uint8", "int16"),
    *("uint16", "int32", "uint32", "int64", "uint64", "function", "opaque"),
)
COMPLEX, _LOGICAL = 0x08, 0x02  # flags
_MOST = 100_000  # variables
_BLOCK = 1 << 18  # numbers


class Inside(msgspec.Struct, frozen=True):
    """Where the element of a variable lies in the file; its real parts, and its imaginary ones where known.

    Those of what is packed are found when it is unpacked.
    """

    begin: int
    length: int
    packed: bool
    mark: str
    is_complex: bool = False
    pieces: tuple[Numbers, ...] = ()

    def cursor(self, file: BinaryIO, name: str) -> Cursor:
        return Cursor(file, self.begin, self.length, self.packed, self.mark, name)

    def stored(self, piece: Numbers) -> numpy.dtype[Any]:
        import numpy

        found: numpy.dtype[Any] = numpy.dtype(piece.dtype)
        return found.newbyteorder("<" if self.mark == "<" else ">")


def inspect(
    path: str, name: str, member: str, file: BinaryIO, size: int, selection: Selection | None
) -> Source:
    """The variable called `member`, or the only matrix."""
    found = choose(variables(file, size, name), name, path, member)
    inside: Inside = found.inside
    part = part_of(found.shape, name, selection, fortran=True)
    if inside.packed and (part.slices is not None or not part.in_one_piece):
        what = "a stack" if part.slices is not None else "a slice whose columns lie apart,"
        raise UsageError(
            f"{name} is {what} in a compressed variable",
            "save it with -v6 in MATLAB, without compression",
        )
    offset = inside.begin + inside.pieces[0].offset
    why = found.layout and f"the variable {printable(found.name)} is {found.layout}"
    order = "big" if inside.mark == ">" and ITEMSIZE[found.dtype] > 1 else "little"
    return Source(
        path=path,
        name=name,
        dtype=found.dtype,
        file_bytes=size,
        format="mat",
        member=found.name,
        **where(part, offset, found.dtype, order, why),
    )


def variables(file: BinaryIO, size: int, name: str) -> list[Variable]:
    """All variables with a name; UsageError where the file is broken. Numbers are not read."""
    file.seek(0)
    mark = {b"IM": "<", b"MI": ">"}.get(file.read(HEAD)[126:], "")
    if not mark:
        raise UsageError(f"{name} is broken: its header does not say its byte order")
    found: list[Variable] = []
    at = HEAD
    while at < size:
        file.seek(at)
        tag = file.read(8)
        kind, length = struct.unpack(f"{mark}II", tag) if len(tag) == 8 else (0, 0)
        if kind not in (MATRIX, _PACKED) or len(found) > _MOST:
            raise UsageError(f"{name} is broken: there is no variable at byte {at}")
        begin, at = at + 8, at + 8 + length
        if at > size:
            raise UsageError(f"{name} has {size} bytes, but a variable ends at byte {at}: it is truncated")
        found.append(_variable(file, Inside(begin, length, kind == _PACKED, mark), name))
    return [each for each in found if each.name]  # MATLAB keeps notes of its own under none


def decode(source: Source, out: BinaryIO) -> None:
    """Writes the numbers column by column."""
    with open(source.path, "rb") as file:
        found = choose(variables(file, source.file_bytes, source.name), source.name, "", source.member)
    part, inside = source.part, found.inside
    assert part is not None
    if found.shape != part.shape:
        raise UsageError(f"{source.name} changed while it was read")
    if (slices := part.slices) is not None:
        arrays = _arrays(source, part, inside)
        item = ITEMSIZE[source.dtype]

        def read(chosen: tuple[int | slice, ...]) -> Any:
            return _joined([array[chosen] for array in arrays], source.dtype)

        write_slices(read, part.shape, part.index, slices, item, out)
        return
    blocks = _forward(source, part, inside) if part.in_one_piece else _anywhere(source, part, inside)
    for block in blocks:
        out.write(block.data)


def _forward(source: Source, part: Part, inside: Inside) -> Iterator[Any]:
    """Numbers that lie in one piece, in blocks; the rest of what is packed is unpacked too, to check it."""
    import numpy

    count, left = math.prod(part.shape), part.rows * part.columns
    with contextlib.ExitStack() as stack:
        readers = []
        for number in range(1 + inside.is_complex):
            cursor = inside.cursor(stack.enter_context(open(source.path, "rb")), source.name)
            piece = inside.pieces[0]
            cursor.skip(piece.offset)
            if number:
                cursor.skip(padded(cursor.at + count * ITEMSIZE[piece.dtype]))
                piece = cursor.numbers(count)
            stored = inside.stored(piece)
            cursor.skip(cursor.at + part.first * stored.itemsize)
            readers.append((cursor, stored))
        while left:
            wanted = min(left, _BLOCK)
            left -= wanted
            pieces = [numpy.frombuffer(cursor.read(wanted * s.itemsize), s) for cursor, s in readers]
            yield _joined(pieces, source.dtype)
        readers[-1][0].rest()


def _anywhere(source: Source, part: Part, inside: Inside) -> Iterator[Any]:
    """Columns that lie apart in a file that is not packed, a few at a time."""
    import numpy

    views = [each[part.selection].reshape(part.rows, part.columns) for each in _arrays(source, part, inside)]
    wide = max(1, _BLOCK // max(1, part.rows))
    for first in range(0, part.columns, wide):
        columns = slice(first, first + wide)
        yield numpy.ascontiguousarray(_joined([view[:, columns].T for view in views], source.dtype))


def _arrays(source: Source, part: Part, inside: Inside) -> list[Any]:
    """Real and, where there are, imaginary parts as they lie in a file that is not packed."""
    import numpy

    offsets = [inside.begin + piece.offset for piece in inside.pieces]
    return [
        numpy.memmap(source.path, inside.stored(piece), "r", offset, part.shape, "F")
        for piece, offset in zip(inside.pieces, offsets, strict=True)
    ]


def _joined(pieces: list[Any], dtype: str) -> Any:
    """Real and, where there are, imaginary parts as numbers of `dtype`, little-endian."""
    import numpy

    numbers = pieces[0].astype(numpy.dtype(dtype).newbyteorder("<"))
    if len(pieces) > 1:
        numbers.imag = pieces[1]
    return numbers


def _variable(file: BinaryIO, inside: Inside, name: str) -> Variable:
    """What the header of an element says."""
    cursor = inside.cursor(file, name)
    if inside.packed and cursor.tag()[0] != MATRIX:
        raise UsageError(f"{name} is broken: no variable is packed at byte {inside.begin}")
    flags = cursor.small()
    if len(flags) != 8:
        raise UsageError(f"{name} is broken: the variable at byte {inside.begin} has no flags")
    word = int.from_bytes(flags[:4], "little" if inside.mark == "<" else "big")
    number, bits = word & 0xFF, word >> 8
    kind = NUMBERED[number] if 0 < number < len(NUMBERED) else f"number {number}"
    extents = b"" if kind == "opaque" else cursor.small()
    shape = struct.unpack(f"{inside.mark}{len(extents) // 4}i", extents[: len(extents) // 4 * 4])
    called = cursor.small().decode(errors="replace")
    if kind == "uint8" and bits & _LOGICAL:
        kind = "logical"
    is_complex = bool(bits & COMPLEX)
    dtype = numbers_of(kind, is_complex)
    if dtype:
        count = _count(shape, dtype, name)
        is_complex = is_complex and count > 0
        pieces = _pieces(cursor, inside, is_complex, count, dtype)
        inside = msgspec.structs.replace(inside, is_complex=is_complex, pieces=pieces)
    return Variable(
        name=called, kind=kind, dtype=dtype, shape=shape, layout=_layout(inside, dtype), inside=inside
    )


def _count(shape: tuple[int, ...], dtype: str, name: str) -> int:
    if len(shape) < 2 or min(shape) < 0:
        raise UsageError(f"{name} declares the shape {shape[:8]}, which no array can have")
    count = math.prod(shape)
    numbers_bytes(1, count, dtype, name)
    return count


def _pieces(cursor: Cursor, inside: Inside, is_complex: bool, count: int, dtype: str) -> tuple[Numbers, ...]:
    if count == 0:
        return (Numbers(dtype, cursor.at),)
    pieces = [cursor.numbers(count)]
    if inside.packed:
        return tuple(pieces)
    cursor.skip(cursor.at + count * ITEMSIZE[pieces[0].dtype])
    if is_complex:
        cursor.skip(padded(cursor.at))
        pieces.append(cursor.numbers(count))
        cursor.skip(cursor.at + count * ITEMSIZE[pieces[1].dtype])
    return tuple(pieces)


def _layout(inside: Inside, dtype: str) -> str:
    """Why the numbers cannot be read where they lie; empty where they can."""
    if inside.packed:
        return "compressed"
    if len(inside.pieces) > 1:
        return "stored with its imaginary parts behind the real ones"
    if inside.pieces and inside.pieces[0].dtype != dtype:
        return f"stored as {inside.pieces[0].dtype}"
    return ""
