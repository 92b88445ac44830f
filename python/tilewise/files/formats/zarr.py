"""The Zarr format: a folder with a file for each chunk; plain chunks are read and written in place."""

from __future__ import annotations

import base64
import contextlib
import math
import struct
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import bytes_text, plural
from tilewise.files.checks import not_applied, numbers_bytes, printable
from tilewise.files.dtypes import ALL, ITEMSIZE
from tilewise.files.formats import Format
from tilewise.files.formats import zarr_chunks as chunks
from tilewise.files.formats.zarr_metadata import Stored
from tilewise.files.formats.zarr_new import (
    check_folder,
    claim_of,
    complete,
    create_tiles,
    old_entries,
    place,
    rectangles,
)
from tilewise.files.formats.zarr_store import arrays, choose, folder_of, root
from tilewise.files.region import Source, Tile
from tilewise.files.slices import part_of, where, write_blocks
from tilewise.files.stacks import Selection

if TYPE_CHECKING:
    from tilewise.files.contents import Content

__all__ = [
    "FORMAT",
    "check_folder",
    "claim_of",
    "complete",
    "contents",
    "create_tiles",
    "decode",
    "inspect",
    "old_entries",
    "place",
    "rectangles",
]
FORMAT = Format(
    numbers=ALL, member="array", orders=("C", "F"), folder=True, whole=True, sliced=True, reproducible=False
)

_CHUNK_MAX = 1 << 31  # bytes; it is unpacked as a whole in the memory of the front
_SHARD_MAX = 256 << 20  # bytes; of a larger one only the chunks that are read


def inspect(path: str, name: str, member: str, selection: Selection | None = None) -> Source:
    """The array called `member`, or the only 2-D one; each of its plain chunks must have the right size."""
    member, stored = choose(path, name, member)
    if not stored.dtype:
        raise UsageError(f"{name} holds {stored.kind}, but numbers were expected: {', '.join(ITEMSIZE)}")
    matrix = part_of(stored.shape, name, selection)
    numbers_bytes(1, math.prod(stored.shape), stored.dtype, name)
    packed, count = stored.packed, chunks.count_of(stored, matrix)
    if not packed and count > chunks.TILES_MAX:
        packed = f"in {plural(count, 'chunk')}"
    if not packed and matrix.slices is not None:
        packed = "a stack in chunks"
    why = f"{printable(member or name)} is {packed}" if packed else ""
    source = Source(
        path=path,
        name=name,
        dtype=stored.dtype,
        format="zarr",
        member=member,
        **where(matrix, 0, stored.dtype, "little", why),
        warnings=not_applied(_attributes(stored)),
    )
    if packed:
        return source
    tiles = chunks.tiles_of(stored, matrix, folder_of(path, member), name)
    return msgspec.structs.replace(
        source,
        byte_order=stored.byte_order,
        order=chunks.order_of(stored, matrix),
        tiles=tiles,
        fill=stored.fill.hex(),
        file_bytes=stored.chunk_bytes,
        encoded=False,
        notes=(*(matrix.notes if matrix.is_list else ()), *_missing(tiles)),
    )


def decode(source: Source, out: BinaryIO) -> None:
    """Reads blocks of at most 32 MiB, cut where the chunks are, by zarr-python."""
    try:
        import zarr  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise UsageError(
            f"{source.name}: {source.notes[-1]}, which takes zarr-python, and that is not installed",
            "pip install 'tilewise[zarr]'",
        ) from None
    array: Any = zarr.open_array(folder_of(source.path, source.member), mode="r")
    assert source.part is not None
    shard, chunk = array.shards or array.chunks, array.chunks
    item = ITEMSIZE[source.dtype]
    if (size := math.prod(chunk) * item) > _CHUNK_MAX:
        raise UsageError(
            f"{source.name} is packed in chunks of {bytes_text(size)}, which is too large to unpack"
        )
    cut = shard if math.prod(shard) * item <= _SHARD_MAX else chunk
    write_blocks(source.part, cut, source.dtype, out, lambda selection: array[selection])


def contents(path: str, name: str) -> list[Content]:
    """All arrays of a group, in the order of their names; none of a store that is an array itself."""
    from tilewise.files.contents import Content

    if root(path, name).array:
        return []
    return [
        Content(
            member,
            array.shape,
            array.dtype or array.kind,
            f"in chunks of {'×'.join(map(str, array.chunks))}" + (array.packed and f", {array.packed}"),
            bool(array.dtype) and len(array.shape) == 2,
        )
        for member, array in arrays(path, name)
    ]


def _missing(tiles: list[Tile]) -> tuple[str, ...]:
    count = sum(not tile.path and 0 not in tile.shape for tile in tiles)
    if not count:
        return ()
    return (f"{count} of {plural(len(tiles), 'chunk')} were never written, and hold the fill value",)


def _attributes(stored: Stored) -> dict[str, Any]:
    """The attributes; a fill value that xarray has put into letters is a number again."""
    attributes = dict(stored.attributes) if isinstance(stored.attributes, dict) else {}
    fill = attributes.get("_FillValue")
    if stored.dtype.startswith("float") and isinstance(fill, str):
        try:
            attributes["_FillValue"] = float(fill)  # NaN
        except ValueError:
            with contextlib.suppress(ValueError, struct.error):
                (attributes["_FillValue"],) = struct.unpack("<d", base64.b64decode(fill))
    return attributes
