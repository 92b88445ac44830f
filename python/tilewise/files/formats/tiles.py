"""The .tiles format: a folder with a manifest and one .npy file for each rectangle of the matrix."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from typing import TYPE_CHECKING

from tilewise.base.claim import Claim
from tilewise.base.errors import UsageError
from tilewise.base.owner import hidden
from tilewise.base.units import shape_text
from tilewise.files.checks import printable
from tilewise.files.dtypes import ALL
from tilewise.files.formats import Format, npy
from tilewise.files.formats import tiles_manifest as manifest
from tilewise.files.formats.tiles_manifest import Manifest, Piece
from tilewise.files.region import New, Rectangle, Region, Source, Tile
from tilewise.files.regular import cannot_read

if TYPE_CHECKING:
    from tilewise.files.target import Target

FORMAT = Format(numbers=ALL, folder=True, reproducible=False)
_TILE = re.compile(r"tile-(?:([0-9A-Za-z_]+)-)?[0-9]{6,}\.npy")
_OURS = re.compile(rf"{_TILE.pattern}|\.manifest\.json\.[0-9A-Za-z_-]+\.part")


def inspect(path: str, name: str, member: str) -> Source:
    """The matrix whose tiles lie in the folder at `path`; each file must have the promised header."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise cannot_read(error, path, name) from None
    if not stat.S_ISDIR(mode):
        raise UsageError(f"{name} is a file, but a folder of tiles was expected")
    listing = manifest.read(path, name)
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
    old = manifest.read(path, f"the output {name}")
    known = {manifest.FILE, *(piece.file for piece in old.tiles)}
    foreign = sorted(file for file in os.listdir(path) if file not in known and not _OURS.fullmatch(file))
    if foreign:
        raise UsageError(
            f"the output {name} holds {printable(foreign[0])}, which is not a tile of it; it is not replaced"
        )


def claim_of(target: Target, cut: list[Rectangle], identity: str) -> Claim:
    """What `create_tiles` will make, for whoever clears up after a death in the midst of it."""
    folder = target.path
    part = manifest.part_of(folder, identity)
    new = [os.path.join(folder, _tile_name(identity, index)) for index in range(len(cut))]
    at = os.path.join(folder, manifest.FILE)
    return Claim(at, target.name, undo=[*new, part], beside=[part], empty=folder)


def create_tiles(
    target: Target, shape: tuple[int, int], dtype: str, order: str, cut: list[Rectangle], identity: str
) -> Region:
    """Makes a file with header and full size for each rectangle of `cut`, in a folder that may be new.

    The new files have names of their own, so that an old matrix in the folder stays whole; the manifest that
    lists them waits under the name of a part. Raises OSError when one cannot be made; what there is by then
    is the caller's to remove.
    """
    folder, name = target.path, target.name
    manifest.require_cover(shape, cut, name)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
    pieces = [Piece(_tile_name(identity, index), rows, columns) for index, (rows, columns) in enumerate(cut)]
    manifest.write(folder, Manifest(manifest.VERSION, shape, dtype, pieces), identity)
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
    """Paths of the tiles that go when `region` has become the folder's matrix: the old ones, and strays.

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
    """Removes tiles that dead jobs have left in `folder`: they belong to no matrix. What fails stays."""
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            found = hidden(entry)
            path = os.path.join(folder, entry)
            if found is None or path != manifest.part_of(folder, found.owner.identity):
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
    if not os.path.lexists(os.path.join(folder, manifest.FILE)):
        return set()
    return {piece.file for piece in manifest.read(folder, f"the output {name}").tiles}


def _tile_name(identity: str, index: int) -> str:
    return f"tile-{_token(identity)}-{index:06d}.npy"


def _token(identity: str) -> str:
    """The end of an identity, by which a job's tiles are known."""
    return identity.rpartition("-")[2]
