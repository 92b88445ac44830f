"""Makes a file that is a header and then the numbers, as most formats are."""

from __future__ import annotations

import errno
import os

import msgspec

from tilewise.files.region import Region


def create_headed(
    path: str,
    name: str,
    head: bytes,
    shape: tuple[int, int],
    dtype: str,
    *,
    order: str = "C",
    byte_order: str = "little",
) -> Region:
    """Writes `head` into the empty file at `path` and gives the file its full size; where the numbers go."""
    region = write_head(path, name, head, shape, dtype)
    size = region.offset + region.bytes
    os.truncate(path, size)
    return msgspec.structs.replace(region, order=order, byte_order=byte_order, file_bytes=size)


def write_head(path: str, name: str, head: bytes, shape: tuple[int, int], dtype: str) -> Region:
    """Writes `head` into the empty file at `path`, which grows with its numbers; where these go."""
    put_head(path, head)
    return Region(path=path, name=name, offset=len(head), rows=shape[0], columns=shape[1], dtype=dtype)


def put_head(path: str, head: bytes) -> None:
    """Writes `head` over the first bytes of the file at `path`, all of it, and reads it back; OSError."""
    with open(path, "r+b", buffering=0) as file:
        rest = memoryview(head)
        while rest:
            count = file.write(rest)
            if not count:
                raise OSError(errno.EIO, "nothing was written", path)
            rest = rest[count:]
    with open(path, "rb", buffering=0) as file:
        found = b""
        while len(found) < len(head) and (more := file.read(len(head) - len(found))):
            found += more
    if found != head:
        raise OSError(errno.EIO, "its header was not kept by the file system", path)
