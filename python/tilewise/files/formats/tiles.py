"""The .tiles format: a folder with a manifest and one .npy file for each rectangle of the matrix.

The manifest says which file holds which rectangle; together they cover the matrix exactly once.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import re
import stat
from typing import TYPE_CHECKING

import msgspec

from tilewise.base.claim import Claim
from tilewise.base.errors import UsageError
from tilewise.base.owner import hidden, part_path
from tilewise.base.undecodable import UNDECODABLE
from tilewise.base.units import shape_text
from tilewise.files.checks import MANIFEST, is_plain, numbers_bytes, printable
from tilewise.files.dtypes import ALL, ITEMSIZE
from tilewise.files.formats import Format, npy
from tilewise.files.headed import put_head
from tilewise.files.region import New, Rectangle, Region, Source, Tile
from tilewise.files.regular import cannot_read, open_regular

if TYPE_CHECKING:
    from tilewise.files.target import Target

FORMAT = Format(numbers=ALL, folder=True, reproducible=False)
_TILE = re.compile(r"tile-(?:([0-9A-Za-z_]+)-)?[0-9]{6,}\.npy")
_OURS = re.compile(rf"{_TILE.pattern}|\.manifest\.json\.[0-9A-Za-z_-]+\.part")
_VERSION = 1
_MANIFEST_MAX = 64 << 20  # bytes


class TileFile(msgspec.Struct, forbid_unknown_fields=True):
    """A tile: its file's name in the folder, its rows [begin, end) and its columns [begin, end)."""

    file: str
    rows: tuple[int, int]
    columns: tuple[int, int]


class Tiling(msgspec.Struct, forbid_unknown_fields=True):
    """The content of `manifest.json`."""

    tilewise: int
    shape: tuple[int, int]
    dtype: str
    tiles: list[TileFile]


def inspect(path: str, name: str, member: str) -> Source:
    """Find the matrix whose tiles lie in the folder at `path`; each file must have the promised header."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise cannot_read(error, path, name) from None
    if not stat.S_ISDIR(mode):
        raise UsageError(f"{name} is a file, but a folder of tiles was expected")
    listing = _read(path, name)
    tiles, byte_orders = [], set()
    for piece in listing.tiles:
        tile = npy.inspect(os.path.join(path, piece.file), f"{name}/{printable(piece.file)}")
        promised = (piece.rows[1] - piece.rows[0], piece.columns[1] - piece.columns[0])
        if (tile.rows, tile.columns) != promised or tile.dtype != listing.dtype:
            raise UsageError(
                f"{tile.name} holds {shape_text(tile.rows, tile.columns)} {tile.dtype}, but the manifest "
                f"promises {shape_text(*promised)} {listing.dtype}"
            )
        if tile.order != "C":
            raise UsageError(f"{tile.name} is stored column by column, but tiles are stored row by row")
        byte_orders.add(tile.byte_order)
        tiles.append(Tile(path=tile.path, offset=tile.offset, rows=piece.rows, columns=piece.columns))
    if len(byte_orders) > 1:
        raise UsageError(f"{name} has tiles in big and in little endian, but one byte order was expected")
    return Source(
        path=path,
        name=name,
        rows=listing.shape[0],
        columns=listing.shape[1],
        dtype=listing.dtype,
        byte_order=byte_orders.pop() if byte_orders else "little",
        tiles=tiles,
        format="tiles",
    )


def check_folder(path: str, name: str, force: bool) -> None:
    """Raises UsageError unless a folder of tiles may be written at `path`, where something lies already.

    Only a folder that carries our manifest may be replaced, and nothing else than tiles may lie in it: so
    that no mistake in a name can cost a file that is not ours.
    """
    if not os.path.isdir(path):
        raise UsageError(f"the output {name} exists and is not a folder, but a folder of tiles was expected")
    if not force:
        raise UsageError(f"the output {name} exists already", "--force replaces it")
    old = _read(path, f"the output {name}")
    known = {MANIFEST, *(piece.file for piece in old.tiles)}
    foreign = sorted(file for file in os.listdir(path) if file not in known and not _OURS.fullmatch(file))
    if foreign:
        raise UsageError(
            f"the output {name} holds {printable(foreign[0])}, which is not a tile of it; it is not replaced"
        )


def claim_of(target: Target, cut: list[Rectangle], identity: str) -> Claim:
    """Claim what `create_tiles` will make, for whoever clears up after a death in the midst of it."""
    folder = target.path
    part = _waiting(folder, identity)
    new = [os.path.join(folder, _tile_name(identity, index)) for index in range(len(cut))]
    at = os.path.join(folder, MANIFEST)
    return Claim(at, target.name, undo=[*new, part], beside=[part], empty=folder)


def create_tiles(
    target: Target, shape: tuple[int, int], dtype: str, order: str, cut: list[Rectangle], identity: str
) -> Region:
    """Make a file with header and full size for each rectangle of `cut`, in a folder that may be new.

    The new files have names of their own, so that an old matrix in the folder stays whole; the manifest that
    lists them waits under the name of a part. Raises OSError when one cannot be made; what there is by then
    is the caller's to remove.
    """
    folder, name = target.path, target.name
    require_cover(shape, cut, name)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
    pieces = [
        TileFile(_tile_name(identity, index), rows, columns) for index, (rows, columns) in enumerate(cut)
    ]
    _write(folder, Tiling(_VERSION, shape, dtype, pieces), identity)
    tiles: list[Tile] = []
    for piece in pieces:
        path = os.path.join(folder, piece.file)
        with open(path, "xb"):
            pass
        extents = (piece.rows[1] - piece.rows[0], piece.columns[1] - piece.columns[0])
        made = npy.create(New(path=path, name=name, shape=extents, dtype=dtype))
        tiles.append(Tile(path=path, offset=made.offset, rows=piece.rows, columns=piece.columns))
    return Region(
        path=folder, name=name, rows=shape[0], columns=shape[1], dtype=dtype, order=order, tiles=tiles
    )


def replaced(region: Region) -> list[str]:
    """List the paths of the tiles that go when `region` is the matrix: the old ones, and strays.

    What a job has made that still runs is its own: its manifest waits beside the tiles. Raises OSError, and
    UsageError for a manifest that is not ours.
    """
    folder = region.path
    old = _in_manifest(folder, region.name)
    entries = os.listdir(folder)
    waiting = {found.owner.token for entry in entries if (found := hidden(entry))}
    new = {os.path.basename(tile.path) for tile in region.tiles}
    gone = [
        entry
        for entry in sorted(set(entries) - new)
        if entry in old or ((match := _TILE.fullmatch(entry)) and match[1] not in waiting)
    ]
    return [os.path.join(folder, entry) for entry in gone]


def sweep(folder: str, own_disk: bool = False) -> None:
    """Remove tiles that dead jobs have left in `folder`: they belong to no matrix. What fails stays."""
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            found = hidden(entry)
            path = os.path.join(folder, entry)
            if found is None or path != _waiting(folder, found.owner.identity):
                continue
            owner = found.owner
            if not owner.is_dead(path, own_disk):
                continue
            named = _in_manifest(folder, folder)  # it may have died just behind the giving of the name
            for tile in os.listdir(folder):
                if (ours := _TILE.fullmatch(tile)) and ours[1] == owner.token and tile not in named:
                    os.unlink(os.path.join(folder, tile))
            os.unlink(path)
            with contextlib.suppress(OSError):  # there is something in it
                os.rmdir(folder)


def _in_manifest(folder: str, name: str) -> set[str]:
    """Names of the files of the matrix that the folder holds now."""
    if not os.path.lexists(os.path.join(folder, MANIFEST)):
        return set()
    return {piece.file for piece in _read(folder, f"the output {name}").tiles}


def _tile_name(identity: str, index: int) -> str:
    return f"tile-{_token(identity)}-{index:06d}.npy"


def _token(identity: str) -> str:
    """The end of an identity, by which a job's tiles are known."""
    return identity.rpartition("-")[2]


def _read(folder: str, name: str) -> Tiling:
    """Read the manifest in `folder`; UsageError unless it is ours and its tiles cover the matrix once."""
    path = os.path.join(folder, MANIFEST)
    if not os.path.lexists(path):
        raise UsageError(f"{name} is a folder without a {MANIFEST}, but a folder of tiles was expected")
    file, size = open_regular(path, f"{name}/{MANIFEST}")
    with file:
        if size > _MANIFEST_MAX:
            raise UsageError(f"{name}/{MANIFEST} has {size} bytes, too large for a manifest")
        text = file.read(size)
    try:
        manifest = msgspec.json.decode(text, type=Tiling)
    except UNDECODABLE as error:
        raise UsageError(f"{name}/{MANIFEST} is not a manifest of tiles: {printable(str(error))}") from None
    if manifest.tilewise != _VERSION:
        raise UsageError(f"{name}/{MANIFEST} is of version {manifest.tilewise}, but {_VERSION} was expected")
    if manifest.dtype not in ITEMSIZE:
        raise UsageError(
            f"{name}/{MANIFEST} says the type {printable(manifest.dtype)}; "
            f"expected one of {', '.join(ITEMSIZE)}"
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


def _waiting(folder: str, identity: str) -> str:
    """The path of a manifest that waits for its name; until then it says whose the new tiles are."""
    return part_path(os.path.join(folder, MANIFEST), identity)


def _write(folder: str, manifest: Tiling, identity: str) -> None:
    """Write the manifest that the folder will have, under the name of a part; OSError."""
    path = _waiting(folder, identity)
    with open(path, "xb"):
        pass
    put_head(path, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")


def _require_plain(piece: TileFile, name: str) -> None:
    """Raises UsageError for a name that would lead out of the folder, or is the manifest's own."""
    if not is_plain(piece.file):
        raise UsageError(
            f"{name}/{MANIFEST} names {printable(repr(piece.file))}, "
            "but a file in its own folder was expected"
        )


def _text(rows: tuple[int, int], columns: tuple[int, int]) -> str:
    return f"rows {rows[0]} to {rows[1]} and columns {columns[0]} to {columns[1]}"
