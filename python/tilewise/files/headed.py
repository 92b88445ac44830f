"""Makes a file that is a header and then the numbers, as most formats are."""

from __future__ import annotations

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
    with open(path, "r+b", buffering=0) as file:
        file.write(head)
    return Region(path=path, name=name, offset=len(head), rows=shape[0], columns=shape[1], dtype=dtype)
