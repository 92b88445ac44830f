"""The Zarr format: a folder with a file for each chunk; plain chunks are read and written in place.

shape (4, 6), chunks of (3, 4): a chunk is stored whole        [:, 5] of three dimensions: a tile has gaps
    c.0.0  ▇▇▇▇   c.0.1  ▇▇··                                     c.0.0.0  ·· ▇▇▇ ·· ▇▇▇
    c.1.0  ▇▇▇▇   c.1.1  ▇▇··      · nobody reads
           ····          ····

Design: docs/design/formats.md.
"""

from __future__ import annotations

import base64
import contextlib
import math
import os
import stat
import struct
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.programs import lacking, optional
from tilewise.base.units import bytes_text, plural
from tilewise.files.checks import fill_values, missing, not_applied, numbers_bytes, pick, printable
from tilewise.files.dtypes import ALL, ITEMSIZE
from tilewise.files.formats import Format
from tilewise.files.formats.zarr_metadata import FILE, Stored, ZarrNode, read_node, steps, stored
from tilewise.files.formats.zarr_new import (
    check_folder,
    claim_of,
    complete,
    create_tiles,
    old_entries,
    place,
    rectangles,
)
from tilewise.files.region import Source, Tile
from tilewise.files.regular import cannot_read, require_regular
from tilewise.files.slices import ArrayPart, Selection, part_of, where, write_blocks

if TYPE_CHECKING:
    from tilewise.files import Content

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

TILES_MAX = 100_000  # of an input; more are copied into one file first
_LISTED = 10_000  # folders that are looked at to find the arrays
_CHUNK_MAX = 1 << 31  # bytes; it is unpacked as a whole in the memory of the front
_SHARD_MAX = 256 << 20  # bytes; of a larger one only the chunks that are read


def inspect(path: str, name: str, member: str, selection: Selection | None = None) -> Source:
    """Find the array called `member`, or the only matrix; plain chunks must have their full size."""
    member, array = _choose(path, name, member)
    if not array.dtype:
        raise UsageError(f"{name} holds {array.kind}, but numbers were expected: {', '.join(ITEMSIZE)}")
    part = part_of(array.shape, name, selection)
    numbers_bytes(1, math.prod(array.shape), array.dtype, name)
    high, wide = part.of_matrix(array.chunks)
    count = -(-part.rows // max(1, high)) * -(-part.columns // max(1, wide))
    packed = array.packed
    if not packed and count > TILES_MAX:
        packed = f"in {plural(count, 'chunk')}"
    if not packed and part.slices is not None:
        packed = "a stack in chunks"
    why = f"{printable(member or name)} is {packed}" if packed else ""
    source = Source(
        path=path,
        name=name,
        dtype=array.dtype,
        format="zarr",
        member=member,
        **where(part, 0, array.dtype, "little", why),
        warnings=(*not_applied(_attributes(array)), *(lacking("zarr", "zarr") if packed else ())),
        fills=fill_values(_attributes(array), array.dtype),
    )
    if packed:
        return source
    tiles = _tiles(array, part, _folder(path, member), name)
    strides = [stride for stride, fixed in zip(array.strides, part.index, strict=True) if fixed is None]
    notes = part.notes if part.is_list else ()
    if unwritten := sum(not tile.path and 0 not in tile.shape for tile in tiles):
        said = f"{unwritten} of {plural(len(tiles), 'chunk')} were never written, and hold the fill value"
        notes = (*notes, said)
    return msgspec.structs.replace(
        source,
        byte_order=array.byte_order,
        order="F" if len(strides) == 2 and strides[0] < strides[1] else "C",
        tiles=tiles,
        fill=array.fill.hex(),
        file_bytes=array.chunk_bytes,
        encoded=False,
        notes=notes,
    )


def decode(source: Source, out: BinaryIO) -> None:
    """Write the matrix by zarr-python, in blocks of at most 32 MiB that are cut where the chunks are."""
    zarr = optional("zarr", "zarr", f"{source.name}: {source.notes[-1]}, and that")
    array: Any = zarr.open_array(_folder(source.path, source.member), mode="r")
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
    """List the arrays of a group, in the order of their names; none of a store that is an array itself."""
    from tilewise.files import Content

    if _root(path, name).array:
        return []
    return [
        Content(
            member,
            array.shape,
            array.dtype or array.kind,
            f"in chunks of {'×'.join(map(str, array.chunks))}" + (array.packed and f", {array.packed}"),
            bool(array.dtype) and len(array.shape) == 2,
        )
        for member, array in _arrays(path, name)
    ]


def _root(path: str, name: str) -> ZarrNode:
    """The array or group at `path`; UsageError where there is none."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise cannot_read(error, path, name) from None
    if not stat.S_ISDIR(mode):
        advice = ""
        if stat.S_ISREG(mode):
            with open(path, "rb") as file:
                advice = f"unzip {name} -d FOLDER.zarr" if file.read(4) == b"PK\3\4" else ""
        raise UsageError(f"{name} is a file, but a Zarr store is a folder", advice)
    node = read_node(path, name)
    if node is None:
        raise UsageError(f"{name} is a folder without {FILE}, .zarray or .zgroup, so it is no Zarr store")
    return node


def _choose(path: str, name: str, member: str) -> tuple[str, Stored]:
    """Pick the array called `member`, or the only matrix; the store itself has an empty name."""
    node = _root(path, name)
    parts = steps(member, name)
    if not parts and node.array:
        return "", stored(node, name)
    if not parts:
        inside = _arrays(path, name)
        matrices = [each for each, array in inside if array.dtype and len(array.shape) == 2]
        only = matrices if matrices or len(inside) != 1 else [inside[0][0]]
        parts = steps(pick(name, path, "array", only), name)
    found = read_node(os.path.join(path, *parts), name)
    if found is None or not found.array:
        raise missing(name, "array", member, [each for each, _ in _arrays(path, name)])
    return "/" + "/".join(parts), stored(found, name)


def _arrays(path: str, name: str) -> list[tuple[str, Stored]]:
    """List all arrays below the group at `path`, sorted by name; links to folders are not followed."""
    found, waiting, seen = [], [""], 0
    while waiting and seen < _LISTED:
        here = waiting.pop()
        seen += 1
        node = read_node(path + here, name + here)
        if node is not None and node.array:
            found.append((here or "/", stored(node, name + here)))
        elif node is not None:
            with os.scandir(path + here) as entries:
                waiting += [
                    f"{here}/{entry.name}"
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
                ]
    return sorted(found, key=lambda each: each[0])


def _folder(path: str, member: str) -> str:
    return os.path.join(path, member.lstrip("/"))


def _tiles(array: Stored, part: ArrayPart, folder: str, name: str) -> list[Tile]:
    """A tile for each chunk that has numbers of the matrix; those without a file have no path.

    Raises UsageError for a chunk that is no file of the right size.
    """
    if part.rows * part.columns == 0:
        return [Tile(path="", offset=0, rows=(0, part.rows), columns=(0, part.columns))]
    high, wide = part.of_matrix(array.chunks)
    dimensions = list(zip(part.index, array.chunks, array.strides, strict=True))
    first = sum(fixed % chunk * stride for fixed, chunk, stride in dimensions if fixed is not None)
    offset = first * (array.chunk_bytes // math.prod(array.chunks))
    down, *across = (stride for fixed, _, stride in dimensions if fixed is None)
    tiles = []
    for i, row in enumerate(range(0, part.rows, high)):
        for j, column in enumerate(range(0, part.columns, wide)):
            of_matrix = iter((i, j))
            key = array.key(
                tuple(next(of_matrix) if fixed is None else fixed // chunk for fixed, chunk, _ in dimensions)
            )
            tiles.append(
                Tile(
                    path=_chunk(os.path.join(folder, key), f"{name}: its chunk {key}", array.chunk_bytes),
                    offset=offset,
                    rows=(row, min(row + high, part.rows)),
                    columns=(column, min(column + wide, part.columns)),
                    strides=(down, across[0] if across else 1),
                )
            )
    return tiles


def _chunk(path: str, what: str, size: int) -> str:
    """The path of a chunk's file, empty where there is none; UsageError for one of another size."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise cannot_read(error, path, what) from None
    require_regular(status.st_mode, what)
    if status.st_size != size:
        raise UsageError(f"{what} has {status.st_size} bytes where {size} were expected")
    return path


def _attributes(array: Stored) -> dict[str, Any]:
    """The attributes; a fill value that xarray has put into letters is a number again."""
    attributes = dict(array.attributes) if isinstance(array.attributes, dict) else {}
    fill = attributes.get("_FillValue")
    if array.dtype.startswith("float") and isinstance(fill, str):
        try:
            attributes["_FillValue"] = float(fill)  # NaN
        except ValueError:
            with contextlib.suppress(ValueError, struct.error):
                (attributes["_FillValue"],) = struct.unpack("<d", base64.b64decode(fill))
    return attributes
