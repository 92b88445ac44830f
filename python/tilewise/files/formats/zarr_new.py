"""New Zarr arrays, of version 3: made in a hidden folder, which gets its name when all is in it.

A.zarr:/g/x where there is no A.zarr        where there is a group A.zarr/g
.A.zarr.….part/zarr.json  g/zarr.json       A.zarr/g/.x.….part/zarr.json
               g/x/zarr.json                                   c.0.0  c.0.1  …
               g/x/c.0.0  c.0.1  …
"""

from __future__ import annotations

import math
import os
import re
import stat
from typing import TYPE_CHECKING, Any

import msgspec

from tilewise.base.claim import Claim
from tilewise.base.errors import UsageError
from tilewise.base.owner import part_path
from tilewise.base.staging import ASIDE, sync_path
from tilewise.files.checks import printable
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import split_name
from tilewise.files.formats.zarr_metadata import FILE, read_node, steps
from tilewise.files.headed import put_head
from tilewise.files.region import Rectangle, Region, Tile

if TYPE_CHECKING:
    from tilewise.files.target import Target

_MARK = "tilewise"  # the attribute by which our arrays are known
_VERSION = 1
BYTES = 8 << 20  # of a chunk
_FILES = 1 << 14  # from so many on, chunks are larger
_CHUNK = re.compile(r"c(\.[0-9]+){2}")


def place(path: str, name: str, member: str) -> Target:
    """Find what will get its name for the array `member` of the store at `path`: the first missing folder.

    Raises UsageError where something else than a group of version 3 lies on the way.
    """
    from tilewise.files.target import Target
    from tilewise.files.target import check_folder as check_parent

    here, said = path, f"the output {name}"
    for step in steps(member, said):
        if step.startswith("__") or not step.strip(".") or step == FILE:
            raise UsageError(f"{said} has the name {printable(step)}, which no Zarr array has")
        if not os.path.lexists(here):
            break
        node = read_node(here, said) if os.path.isdir(here) else None
        if node is None or node.array or node.version != 3:
            what = (
                "no Zarr group" if node is None else "an array" if node.array else "a group of Zarr version 2"
            )
            raise UsageError(
                f"{said} cannot be added: {here} is {what}, but a group of version 3 was expected",
                "another name",
            )
        here = os.path.join(here, step)
    check_parent(os.path.dirname(here), said)
    mode = stat.S_IMODE(os.stat(here).st_mode) if os.path.exists(here) else None
    return Target(here, name, mode, member)


def check_folder(path: str, name: str, force: bool) -> None:
    """Raises UsageError unless the array at `path`, where something lies already, may be replaced.

    Only an array that tilewise has written may be, and nothing else than chunks may lie in it: so that no
    mistake in a name can cost a file that is not ours.
    """
    said = f"the output {name}"
    if not os.path.isdir(path):
        raise UsageError(f"{said} exists and is not a folder, but a Zarr store is a folder")
    node = read_node(path, said)
    if node is not None and not node.array:
        base, member = split_name(name)
        inner = "/".join([*steps(member, said), "matrix"])
        raise UsageError(f"{said} is a group, which may hold other arrays", f"-o {base}:/{inner}")
    if not force:
        raise UsageError(f"{said} exists already", "--force replaces it")
    old_entries(path, name)


def old_entries(path: str, name: str) -> list[str]:
    """Names of the files of the array at `path`, all of them ours; UsageError where one is not."""
    said = f"the output {name}"
    node = read_node(path, said)
    mark = node.fields.get("attributes") if node is not None and node.array and node.version == 3 else None
    if not isinstance(mark, dict) or _MARK not in mark:
        raise UsageError(f"{said} is not an array by tilewise, so it is not replaced", "another name")
    found = sorted(os.listdir(path))
    for entry in found:
        if not (entry == FILE or _CHUNK.fullmatch(entry)) or os.path.isdir(os.path.join(path, entry)):
            raise UsageError(
                f"{said} holds {printable(entry)}, which is not part of it; it is not replaced",
                "another name, or move that file away",
            )
    return found


def rectangles(shape: tuple[int, int], dtype: str) -> list[Rectangle]:
    """Cut a new matrix into chunks that are all alike, up to the last ones, whatever the ranks."""
    item = ITEMSIZE[dtype]
    most = max(BYTES, math.prod(shape) * item // _FILES) // item
    wide = _even(shape[1], max(math.isqrt(most), most // max(1, shape[0])))
    high = _even(shape[0], most // wide)
    cut = [
        ((row, min(row + high, shape[0])), (column, min(column + wide, shape[1])))
        for row in range(0, shape[0], high)
        for column in range(0, shape[1], wide)
    ]
    return cut or [((0, shape[0]), (0, shape[1]))]


def _even(extent: int, most: int) -> int:
    """The extent of as few equal parts as there can be with `most` at most."""
    return max(1, -(-extent // max(1, -(-extent // most))))


def claim_of(target: Target, cut: list[Rectangle], identity: str) -> Claim:
    """Claim what `create_tiles` and `complete` will make, for whoever clears up after a death meanwhile."""
    part = part_path(target.path, identity)
    *groups, array = _folders(target, part)
    made = [os.path.join(array, file) for file in (*_keys(cut), FILE)]
    for folder in reversed(groups):
        made += [os.path.join(folder, FILE)]
    return Claim(target.path, target.name, undo=[*made, *reversed([*groups, array])], aside=part + ASIDE)


def create_tiles(
    target: Target, shape: tuple[int, int], dtype: str, order: str, cut: list[Rectangle], identity: str
) -> Region:
    """Makes the hidden folder with a file for each chunk, of its full size; it has no metadata yet.

    Raises OSError when one cannot be made; what there is by then is the caller's to remove.
    """
    part = part_path(target.path, identity)
    folders = _folders(target, part)
    for folder in folders:
        os.mkdir(folder)
    high, wide = _extents(cut)
    size = high * wide * ITEMSIZE[dtype]
    tiles = []
    paths = iter(_keys(cut))
    for rows, columns in cut:
        path = ""
        if rows[0] < rows[1] and columns[0] < columns[1]:
            path = os.path.join(folders[-1], next(paths))
            with open(path, "xb") as file:
                file.truncate(size)
        strides = (wide, 1) if order == "C" else (1, high)
        tiles.append(Tile(path=path, offset=0, rows=rows, columns=columns, strides=strides))
    return Region(
        path=folders[-1],
        name=target.name,
        rows=shape[0],
        columns=shape[1],
        dtype=dtype,
        order=order,
        tiles=tiles,
        file_bytes=size,
    )


def complete(target: Target, region: Region, part: str, sync: bool) -> None:
    """Writes the metadata of the array whose chunks are in `part`, and of new groups; OSError."""
    *groups, array = _folders(target, part)
    for folder in groups:
        _put(folder, {"zarr_format": 3, "node_type": "group", "attributes": {}})
    high, wide = _extents([(tile.rows, tile.columns) for tile in region.tiles])
    endian = {"configuration": {"endian": "little"}} if ITEMSIZE[region.dtype] > 1 else {}
    turned = {"name": "transpose", "configuration": {"order": [1, 0]}}
    metadata = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [region.rows, region.columns],
        "data_type": region.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [high, wide]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": [0.0, 0.0] if region.dtype.startswith("complex") else 0,
        "codecs": [*([turned] if region.order == "F" else []), {"name": "bytes", **endian}],
        "attributes": {_MARK: _VERSION},
    }
    _put(array, metadata)
    if sync:
        for folder in (*groups, array):
            sync_path(os.path.join(folder, FILE))
            sync_path(folder)


def _put(folder: str, metadata: dict[str, Any]) -> None:
    path = os.path.join(folder, FILE)
    with open(path, "xb"):
        pass
    put_head(path, msgspec.json.format(msgspec.json.encode(metadata), indent=2) + b"\n")


def _folders(target: Target, part: str) -> list[str]:
    """The folders that are made: `part`, for now, and all in it down to the array."""
    from tilewise.files.target import base_of

    array = os.path.join(os.path.realpath(base_of(target)), *steps(target.member, target.name))
    inner = os.path.relpath(array, target.path)
    folders = [part]
    for step in [] if inner == "." else inner.split(os.sep):
        folders.append(os.path.join(folders[-1], step))
    return folders


def _extents(cut: list[Rectangle]) -> tuple[int, int]:
    """Rows and columns of a chunk: those of the first one."""
    rows, columns = cut[0]
    return max(1, rows[1] - rows[0]), max(1, columns[1] - columns[0])


def _keys(cut: list[Rectangle]) -> list[str]:
    """The names of the chunks' files."""
    high, wide = _extents(cut)
    return [
        f"c.{rows[0] // high}.{columns[0] // wide}"
        for rows, columns in cut
        if rows[0] < rows[1] and columns[0] < columns[1]
    ]
