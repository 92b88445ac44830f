"""The manifest of a .tiles folder: which file holds which rectangle, and whether they tile the matrix."""

from __future__ import annotations

import bisect
import os

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.owner import part_path
from tilewise.base.undecodable import UNDECODABLE
from tilewise.base.units import shape_text
from tilewise.files.checks import MANIFEST, is_plain, numbers_bytes, printable
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.headed import put_head
from tilewise.files.regular import open_regular

FILE = MANIFEST
VERSION = 1
_BYTES_MAX = 64 << 20


class Piece(msgspec.Struct, forbid_unknown_fields=True):
    """One tile: its file's name in the folder, its rows [begin, end) and its columns [begin, end)."""

    file: str
    rows: tuple[int, int]
    columns: tuple[int, int]


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """What `manifest.json` says."""

    tilewise: int
    shape: tuple[int, int]
    dtype: str
    tiles: list[Piece]


def read(folder: str, name: str) -> Manifest:
    """The manifest in `folder`; UsageError unless it is ours and its tiles cover the matrix exactly once."""
    path = os.path.join(folder, FILE)
    if not os.path.lexists(path):
        raise UsageError(f"{name} is a folder without a {FILE}, but a folder of tiles was expected")
    file, size = open_regular(path, f"{name}/{FILE}")
    with file:
        if size > _BYTES_MAX:
            raise UsageError(f"{name}/{FILE} has {size} bytes, too large for a manifest")
        text = file.read(size)
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
    except UNDECODABLE as error:
        raise UsageError(f"{name}/{FILE} is not a manifest of tiles: {printable(str(error))}") from None
    if manifest.tilewise != VERSION:
        raise UsageError(f"{name}/{FILE} is of version {manifest.tilewise}, but {VERSION} was expected")
    if manifest.dtype not in ITEMSIZE:
        raise UsageError(
            f"{name}/{FILE} says the type {printable(manifest.dtype)}; expected one of {', '.join(ITEMSIZE)}"
        )
    numbers_bytes(*manifest.shape, manifest.dtype, name)
    for piece in manifest.tiles:
        _require_plain(piece, name)
    require_cover(manifest.shape, [(piece.rows, piece.columns) for piece in manifest.tiles], name)
    return manifest


def require_cover(
    shape: tuple[int, int], rectangles: list[tuple[tuple[int, int], tuple[int, int]]], name: str
) -> None:
    """Raises UsageError unless the rectangles cover the matrix once; n·log n for n tiles.

    A sweep over the rows keeps the columns that are covered just now in a sorted list; a tile that begins
    must lie between its neighbours there. Without overlaps, equal areas mean that nothing is missing.
    """
    events = []
    area = 0
    for rows, columns in rectangles:
        for (begin, end), extent in ((rows, shape[0]), (columns, shape[1])):
            if not 0 <= begin <= end <= extent:
                raise UsageError(
                    f"{name}: a tile with {_text(rows, columns)} is outside the "
                    f"matrix of {shape_text(*shape)}"
                )
        if rows[0] < rows[1] and columns[0] < columns[1]:
            area += (rows[1] - rows[0]) * (columns[1] - columns[0])
            # At the same row what ends goes first.
            events += [(rows[0], 1, columns), (rows[1], 0, columns)]
    events.sort()
    active: list[tuple[int, int]] = []
    for row, begins, columns in events:
        at = bisect.bisect_left(active, columns)
        if not begins:
            del active[at]
            continue
        left_end = active[at - 1][1] if at else 0
        right_begin = active[at][0] if at < len(active) else columns[1]
        if left_end > columns[0] or right_begin < columns[1]:
            raise UsageError(f"{name}: tiles overlap in row {row}, at columns {columns[0]} to {columns[1]}")
        active.insert(at, columns)
    if area != shape[0] * shape[1]:
        raise UsageError(
            f"{name}: its tiles hold {area} numbers, but {shape_text(*shape)} are {shape[0] * shape[1]}: "
            "tiles are missing"
        )


def part_of(folder: str, identity: str) -> str:
    """The path of a manifest that waits for its name; until then it says whose the new tiles are."""
    return part_path(os.path.join(folder, FILE), identity)


def write(folder: str, manifest: Manifest, identity: str) -> None:
    """Writes the manifest that the folder will have, under the name of a part; OSError."""
    path = part_of(folder, identity)
    with open(path, "xb"):
        pass
    put_head(path, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")


def _require_plain(piece: Piece, name: str) -> None:
    """Raises UsageError for a name that would lead out of the folder, or is the manifest's own."""
    if not is_plain(piece.file):
        raise UsageError(
            f"{name}/{FILE} names {printable(repr(piece.file))}, but a file in its own folder was expected"
        )


def _text(rows: tuple[int, int], columns: tuple[int, int]) -> str:
    return f"rows {rows[0]} to {rows[1]} and columns {columns[0]} to {columns[1]}"
