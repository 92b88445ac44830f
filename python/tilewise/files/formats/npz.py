"""The .npz format: arrays that are stored are read in place, compressed ones are decoded."""

from __future__ import annotations

import contextlib
import os
import zipfile
from typing import IO, TYPE_CHECKING, BinaryIO

from tilewise.base.errors import UsageError
from tilewise.files.checks import (
    byte_order,
    missing,
    number_type,
    numbers_bytes,
    pick,
    printable,
    two_dimensions,
)
from tilewise.files.formats import Format
from tilewise.files.formats.npy import read_header
from tilewise.files.region import Source
from tilewise.files.regular import open_regular

if TYPE_CHECKING:
    from tilewise.files.contents import Content

FORMAT = Format(member="array")
_LOCAL_HEADER = 30  # bytes before the name in the header that precedes each entry
_CHUNK = 4 << 20
_LISTED = 1000  # entries that are looked into to find the matrices


def inspect(path: str, name: str, member: str) -> Source:
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
            return _source(path, name, chosen, archive, entries[chosen], file, size)


def contents(path: str, name: str) -> list[Content]:
    """All arrays whose header can be read."""
    from tilewise.files.contents import content

    with zipfile.ZipFile(path) as archive:
        found = []
        for entry in archive.infolist()[:_LISTED]:
            with archive.open(entry) as stream, contextlib.suppress(UsageError):
                shape, _, dtype = read_header(stream, name)
                layout = "in one piece" if entry.compress_type == zipfile.ZIP_STORED else "compressed"
                found.append(content(_array_name(entry), shape, dtype, layout))
        return found


def decode(source: Source, out: BinaryIO) -> None:
    """Unpacks the numbers, in `source.order`, a few MiB at a time."""
    import numpy

    with zipfile.ZipFile(source.path) as archive:
        entries = {_array_name(entry): entry for entry in archive.infolist()}
        with archive.open(entries[source.member]) as stream:
            _, _, dtype = read_header(stream, source.name)
            native = numpy.dtype(source.dtype).newbyteorder("<")
            left = source.bytes
            while left > 0:
                chunk = _read_exactly(stream, min(left, _CHUNK), source.name)
                left -= len(chunk)
                out.write(numpy.frombuffer(chunk, dtype).astype(native, copy=False).data)
            if stream.read(1):  # reading to the end also checks the archive's checksum
                raise UsageError(f"{source.name} holds more numbers than its header says")


def _source(
    path: str,
    name: str,
    member: str,
    archive: zipfile.ZipFile,
    entry: zipfile.ZipInfo,
    file: BinaryIO,
    size: int,
) -> Source:
    if entry.flag_bits & 1:
        raise UsageError(f"{name} is encrypted, which is not supported")
    stored = entry.compress_type == zipfile.ZIP_STORED
    with archive.open(entry) as stream:
        shape, fortran, dtype = read_header(stream, name)
        head = stream.tell()
    number = number_type(dtype, name)
    rows, columns = two_dimensions(shape, name, f"numpy.savez({os.path.basename(path)!r}, a=a.reshape(…))")
    promised = head + numbers_bytes(rows, columns, number, name)
    if promised != entry.file_size:
        raise UsageError(
            f"{name} holds {entry.file_size} bytes of {printable(member)}, but its header promises {promised}"
        )
    offset = 0
    if stored:
        offset = _data_offset(file, entry, name) + head
        if entry.compress_size != entry.file_size or offset - head + entry.file_size > size:
            raise UsageError(f"{name} has {size} bytes, fewer than its table of contents promises")
    return Source(
        path=path,
        name=name,
        offset=offset,
        rows=rows,
        columns=columns,
        dtype=number,
        byte_order=byte_order(dtype) if stored else "little",
        order="F" if fortran else "C",
        file_bytes=size,
        format="npz",
        member=member,
        encoded=not stored,
        notes=() if stored else (f"the array {printable(member)} is compressed",),
    )


def _data_offset(file: BinaryIO, entry: zipfile.ZipInfo, name: str) -> int:
    """Where the bytes of a stored entry begin: its own header says so, the table of contents does not."""
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
