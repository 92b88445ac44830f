"""Makes a file that is a header and then the numbers, as most binary formats are."""

from __future__ import annotations

import os

from tilewise.files.dtypes import ITEMSIZE
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
    size = len(head) + shape[0] * shape[1] * ITEMSIZE[dtype]
    with open(path, "r+b", buffering=0) as file:
        file.write(head)
        os.ftruncate(file.fileno(), size)
    return Region(
        path=path,
        name=name,
        offset=len(head),
        rows=shape[0],
        columns=shape[1],
        dtype=dtype,
        order=order,
        byte_order=byte_order,
        file_bytes=size,
    )
