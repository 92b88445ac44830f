"""The raw file beside a part file: where the numbers go of a format that packs them at the end."""

from __future__ import annotations

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region

ENDING = ".raw"


def raw_beside(path: str, name: str, shape: tuple[int, int], dtype: str) -> Region:
    """Makes it for the part file `path`, of full size; raises OSError."""
    size = shape[0] * shape[1] * ITEMSIZE[dtype]
    with open(path + ENDING, "xb") as file:
        file.truncate(size)
    return Region(
        path=path + ENDING, name=name, rows=shape[0], columns=shape[1], dtype=dtype, file_bytes=size
    )
