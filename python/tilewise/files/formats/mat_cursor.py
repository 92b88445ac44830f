"""Reads the bytes of one element of a MATLAB file, packed or not, from its begin to its end."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.files.dtypes import ITEMSIZE

STORED = {  # numbers by their types in tags
    1: "int8",
    2: "uint8",
    3: "int16",
    4: "uint16",
    5: "int32",
    6: "uint32",
    7: "float32",
    9: "float64",
    12: "int64",
    13: "uint64",
}
_LONGEST = 4096  # bytes of a name or of extents
_CHUNK = 4 << 20
_UNPACKED = 1 << 16  # bytes of what is packed that are read at once


class Numbers(msgspec.Struct, frozen=True):
    """Numbers of the type `dtype`, from byte `offset` of an element on."""

    dtype: str
    offset: int


class Cursor:
    """Stands `at` a byte of an element, and goes forward only; whatever is wrong is a UsageError.

    The element has `length` bytes from byte `begin` of `file` on; what they are unpacked to may be longer.
    """

    def __init__(self, file: BinaryIO, begin: int, length: int, packed: bool, mark: str, name: str) -> None:
        file.seek(begin)
        self.at = 0
        self._file = file
        self._left = length
        self._unpacker = zlib.decompressobj() if packed else None
        self._mark = mark
        self._name = name

    def read(self, count: int) -> bytes:
        """The next `count` bytes."""
        found = b"".join(self._chunks(count))
        if len(found) < count:
            raise UsageError(f"{self._name} is truncated: a variable ends too early")
        return found

    def skip(self, to: int) -> None:
        """Goes on to the byte `to`."""
        if self._unpacker is None and to - self.at <= self._left:
            self._file.seek(to - self.at, 1)
            self._left -= to - self.at
            self.at = to
        while self.at < to:
            self.read(min(_CHUNK, to - self.at))

    def rest(self) -> None:
        """Unpacks the rest, so that its checksum is checked."""
        while self._unpacker is not None and next(self._chunks(_CHUNK), b""):
            pass

    def tag(self) -> tuple[int, int]:
        """Type and bytes of what follows; small numbers lie in the tag itself."""
        (word,) = struct.unpack(f"{self._mark}I", self.read(4))
        if word >> 16:
            return word & 0xFFFF, word >> 16
        return word, struct.unpack(f"{self._mark}I", self.read(4))[0]

    def small(self) -> bytes:
        """What the next tag announces, where that is short; the cursor stands behind it."""
        _, count = self.tag()
        if count > _LONGEST:
            raise UsageError(f"{self._name} is broken: a header of {count} bytes")
        data = self.read(count)
        self.skip(padded(self.at))
        return data

    def numbers(self, count: int) -> Numbers:
        """The `count` numbers that the next tag announces; the cursor stands before them."""
        kind, size = self.tag()
        dtype = STORED.get(kind, "")
        if not dtype or size != count * ITEMSIZE[dtype]:
            raise UsageError(f"{self._name} is broken: {size} bytes of type {kind} for {count} numbers")
        return Numbers(dtype, self.at)

    def _chunks(self, count: int) -> Iterator[bytes]:
        """At most `count` bytes, as they come; fewer where the element ends."""
        while count > 0:
            if self._unpacker is None:
                chunk = self._file.read(min(count, self._left))
                self._left -= len(chunk)
            else:
                chunk = self._unpacked(self._unpacker, count)
            if not chunk:
                return
            count -= len(chunk)
            self.at += len(chunk)
            yield chunk

    def _unpacked(self, unpacker: zlib._Decompress, most: int) -> bytes:
        while not unpacker.eof:
            packed = unpacker.unconsumed_tail
            if not packed:
                packed = self._file.read(min(_UNPACKED, self._left))
                self._left -= len(packed)
            if found := unpacker.decompress(packed, most):
                return found
            if not packed:
                return b""
        return b""


def padded(count: int) -> int:
    """All parts of an element begin at multiples of 8 bytes."""
    return -(-count // 8) * 8
