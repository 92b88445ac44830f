"""The .npz format: stored arrays are read in place, compressed ones decoded; one array is written, stored."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import zipfile
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, BinaryIO

from tilewise.base.errors import UsageError
from tilewise.files.checks import (
    byte_order,
    missing,
    number_type,
    numbers_bytes,
    pick,
    printable,
)
from tilewise.files.dtypes import ALL
from tilewise.files.formats import Format, split_name
from tilewise.files.formats.npy import header_bytes, read_header
from tilewise.files.headed import raw_beside
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular
from tilewise.files.slices import ArrayPart, Selection, copy_out, dense_steps, part_of, where

if TYPE_CHECKING:
    from tilewise.files import Content

FORMAT = Format(numbers=ALL, member="array", sliced=True, stacked=True)
_DEFAULT = "arr_0"  # as numpy.savez calls an array without a name
_LOCAL_HEADER = 30  # bytes before the name in the header that precedes each entry
_CHUNK = 4 << 20
_LISTED = 1000  # entries that are looked into to find the matrices


def inspect(path: str, name: str, member: str, selection: Selection | None = None) -> Source:
    """The array called `member` in the archive at `path`, or its only matrix."""
    file, size = open_regular(path, name)
    with file:
        if size == 0:
            raise UsageError(f"{name} is empty, but a .npz file was expected")
        with zipfile.ZipFile(file) as archive:
            entries = {_array_name(entry): entry for entry in archive.infolist() if not entry.is_dir()}
            if member and member not in entries:
                raise missing(name, "array", member, sorted(entries))
            chosen = member or pick(name, path, "array", _matrices(archive, entries, name))
            return _source(path, name, chosen, archive, entries[chosen], file, size, selection)


def contents(path: str, name: str) -> list[Content]:
    """List the arrays whose header can be read."""
    from tilewise.files import content

    with zipfile.ZipFile(path) as archive:
        found = []
        for entry in archive.infolist()[:_LISTED]:
            with archive.open(entry) as stream, contextlib.suppress(UsageError):
                shape, _, dtype = read_header(stream, name)
                layout = "in one piece" if entry.compress_type == zipfile.ZIP_STORED else "compressed"
                found.append(content(_array_name(entry), shape, dtype, layout))
        return found


def decode(source: Source, out: BinaryIO) -> None:
    """Unpacks the numbers, in `source.order`, a few MiB at a time; or copies a slice with gaps."""
    import numpy

    part = source.part
    assert part is not None
    with open(source.path, "rb") as file, zipfile.ZipFile(file) as archive:
        entries = {_array_name(entry): entry for entry in archive.infolist()}
        entry = entries[source.member]
        with archive.open(entry) as stream:
            _, _, dtype = read_header(stream, source.name)
            if entry.compress_type == zipfile.ZIP_STORED:
                offset = _data_offset(file, entry, source.name) + stream.tell()
                copy_out(part, source.path, offset, dtype, out)
                return
            native = numpy.dtype(source.dtype).newbyteorder("<")
            before = part.first * native.itemsize
            wanted_bytes = source.all_bytes
            behind = math.prod(part.shape) * native.itemsize - before - wanted_bytes
            for wanted, left in ((False, before), (True, wanted_bytes), (False, behind)):
                for chunk in _chunks(stream, left, source.name):
                    if wanted:
                        out.write(numpy.frombuffer(chunk, dtype).astype(native, copy=False).data)
            if stream.read(1):  # reading to the end also checks the archive's checksum
                raise UsageError(f"{source.name} holds more numbers than its header declares")


def create(new: New) -> Region:
    """Makes the raw file that numbers go to before the archive, which has their checksum, is written."""
    return raw_beside(new)


def encode(raw: Region, path: str, planes: int, extents: tuple[int, ...] = ()) -> None:
    """Writes an archive with one array, which is stored as it is."""
    name = split_name(raw.name)[1] or _DEFAULT
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        # Its date is the first that archives know, so that the same numbers make the same file.
        entry = zipfile.ZipInfo(f"{name}.npy")
        with archive.open(entry, "w", force_zip64=True) as out, open(raw.path, "rb") as numbers:
            out.write(header_bytes(extents or (raw.rows, raw.columns), raw.dtype, "C"))
            shutil.copyfileobj(numbers, out, _CHUNK)


def _in_sequence(part: ArrayPart) -> bool:
    """True where the slices of a stack lie one behind the other."""
    slices = part.slices
    return slices is None or slices.steps == dense_steps(slices.extents, part.rows * part.columns)


def _chunks(stream: IO[bytes], left: int, name: str) -> Iterator[bytes]:
    while left > 0:
        chunk = _read_exactly(stream, min(left, _CHUNK), name)
        left -= len(chunk)
        yield chunk


def _source(
    path: str,
    name: str,
    member: str,
    archive: zipfile.ZipFile,
    entry: zipfile.ZipInfo,
    file: BinaryIO,
    size: int,
    selection: Selection | None,
) -> Source:
    if entry.flag_bits & 1:
        raise UsageError(f"{name} is encrypted, which is not supported")
    stored = entry.compress_type == zipfile.ZIP_STORED
    with archive.open(entry) as stream:
        shape, fortran, dtype = read_header(stream, name)
        head = stream.tell()
    number = number_type(dtype, name)
    how = f"numpy.savez({os.path.basename(path)!r}, a=a.reshape(…))"
    part = part_of(shape, name, selection, fortran, how)
    promised = head + numbers_bytes(1, math.prod(shape), number, name, shape)
    if promised != entry.file_size:
        raise UsageError(
            f"{name} holds {entry.file_size} bytes of {printable(member)}, but its header promises {promised}"
        )
    offset = 0
    if stored:
        offset = _data_offset(file, entry, name) + head
        if entry.compress_size != entry.file_size or offset - head + entry.file_size > size:
            raise UsageError(f"{name} has {size} bytes, fewer than its table of contents declares")
    elif not (part.in_one_piece and _in_sequence(part)):
        raise UsageError(
            f"{name} is a slice whose rows lie apart, in a compressed array",
            "save it with numpy.savez, without compression",
        )
    why = "" if stored else f"the array {printable(member)} is compressed"
    return Source(
        path=path,
        name=name,
        dtype=number,
        file_bytes=size,
        format="npz",
        member=member,
        **where(part, offset, number, byte_order(dtype), why),
    )


def _data_offset(file: BinaryIO, entry: zipfile.ZipInfo, name: str) -> int:
    """Find the bytes of a stored entry: its own header says where, the table of contents does not."""
    file.seek(entry.header_offset)
    header = file.read(_LOCAL_HEADER)
    if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04" or header[8:10] != b"\0\0":
        raise UsageError(f"{name} has a broken entry at byte {entry.header_offset}")
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    return entry.header_offset + _LOCAL_HEADER + lengths


def _matrices(archive: zipfile.ZipFile, entries: dict[str, zipfile.ZipInfo], name: str) -> list[str]:
    """Names of the 2-D arrays; where there is a single entry it is taken, and told what is wrong with it."""
    if len(entries) == 1:
        return list(entries)
    found = []
    for member, entry in sorted(entries.items())[:_LISTED]:
        try:
            with archive.open(entry) as stream:
                shape, _, dtype = read_header(stream, name)
            number_type(dtype, name)
        except UsageError:
            continue
        if len(shape) == 2:
            found.append(member)
    return found


def _array_name(entry: zipfile.ZipInfo) -> str:
    return entry.filename.removesuffix(".npy")


def _read_exactly(stream: IO[bytes], count: int, name: str) -> bytes:
    parts = []
    while count > 0:
        part = stream.read(count)
        if not part:
            raise UsageError(f"{name} is truncated: its compressed numbers end too early")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
