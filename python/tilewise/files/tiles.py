"""The .tiles format: a folder with a manifest and one .npy file for each rectangle of the matrix."""

from __future__ import annotations

import contextlib
import os
import re
import stat

from tilewise.errors import UsageError
from tilewise.files import manifest, npy
from tilewise.files.checks import printable
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.manifest import Manifest, Piece
from tilewise.files.region import Region, Source, Tile
from tilewise.files.regular import cannot_read
from tilewise.units import shape_text

MEMBER = ""
NUMBERS = tuple(ITEMSIZE)
_OURS = re.compile(r"tile-(?:[0-9A-Za-z_-]+-)?[0-9]{6,}\.npy|\.manifest\.json\.[0-9A-Za-z_-]+\.part")

Rectangle = tuple[tuple[int, int], tuple[int, int]]


def inspect(path: str, name: str, member: str) -> Source:
    """The matrix whose tiles lie in the folder at `path`; each file must have the promised header."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise cannot_read(error, path, name) from None
    if not stat.S_ISDIR(mode):
        raise UsageError(f"{name} is a file, but a folder of tiles was expected")
    found = manifest.read(path, name)
    tiles, byte_orders = [], set()
    for piece in found.tiles:
        tile = npy.inspect(os.path.join(path, piece.file), f"{name}/{printable(piece.file)}")
        promised = (piece.rows[1] - piece.rows[0], piece.columns[1] - piece.columns[0])
        if (tile.rows, tile.columns) != promised or tile.dtype != found.dtype:
            raise UsageError(
                f"{tile.name} holds {shape_text(tile.rows, tile.columns)} {tile.dtype}, but the manifest "
                f"promises {shape_text(*promised)} {found.dtype}"
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
        rows=found.shape[0],
        columns=found.shape[1],
        dtype=found.dtype,
        byte_order=byte_orders.pop() if byte_orders else "little",
        tiles=tiles,
        format="tiles",
    )


def check_folder_target(path: str, name: str, force: bool) -> None:
    """Raises UsageError unless a folder of tiles may be written at `path`, where something lies already.

    Only a folder that carries our manifest may be replaced, and nothing else than tiles may lie in it: so
    that no mistake in a name can cost a file that is not ours.
    """
    if not os.path.isdir(path):
        raise UsageError(f"the output {name} exists and is no folder, but a folder of tiles was expected")
    if not force:
        raise UsageError(f"the output {name} exists already", "--force replaces it")
    old = manifest.read(path, f"the output {name}")
    known = {manifest.FILE, *(piece.file for piece in old.tiles)}
    foreign = sorted(file for file in os.listdir(path) if file not in known and not _OURS.fullmatch(file))
    if foreign:
        raise UsageError(
            f"the output {name} holds {printable(foreign[0])}, which is no tile of it; it is not replaced"
        )


def create_tiles(
    folder: str, name: str, shape: tuple[int, int], dtype: str, rectangles: list[Rectangle], identity: str
) -> Region:
    """Makes a file with header and full size for each rectangle, in `folder`, which is made where missing.

    The new files have names of their own, so that an old matrix in the folder stays whole. Raises OSError
    when one cannot be made; nothing is left behind then.
    """
    manifest.require_cover(shape, rectangles, name)
    tiles: list[Tile] = []
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder)
    try:
        for index, (rows, columns) in enumerate(rectangles):
            path = os.path.join(folder, f"tile-{identity}-{index:06d}.npy")
            with open(path, "xb"):
                tiles.append(Tile(path=path, offset=0, rows=rows, columns=columns))
            extents = (rows[1] - rows[0], columns[1] - columns[0])
            made = npy.create(path, name, "", extents, dtype, "C")
            tiles[-1] = Tile(path=path, offset=made.offset, rows=rows, columns=columns)
    except BaseException:
        _remove([tile.path for tile in tiles], folder)
        raise
    return Region(path=folder, name=name, rows=shape[0], columns=shape[1], dtype=dtype, tiles=tiles)


def commit_tiles(region: Region, identity: str, sync: bool = False) -> None:
    """Makes the tiles of `region` the folder's matrix by renaming its manifest; then old tiles go."""
    folder = region.path
    old: list[Piece] = []
    if os.path.lexists(os.path.join(folder, manifest.FILE)):
        old = manifest.read(folder, region.name).tiles
    pieces = [Piece(os.path.basename(tile.path), tile.rows, tile.columns) for tile in region.tiles]
    shape = (region.rows, region.columns)
    manifest.write(folder, Manifest(manifest.VERSION, shape, region.dtype, pieces), identity, sync)
    new = {piece.file for piece in pieces}
    for piece in old:
        if piece.file not in new:
            with contextlib.suppress(OSError):  # the new matrix is complete; a tile too much harms nobody
                os.unlink(os.path.join(folder, piece.file))


def discard_tiles(region: Region) -> str:
    """Removes the files of `region`; returns the path of one that is still there, else an empty string."""
    return _remove([tile.path for tile in region.tiles], region.path)


def _remove(paths: list[str], folder: str) -> str:
    left = ""
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError:
            left = path
    with contextlib.suppress(OSError):  # stays where it was there before, with tiles in it
        os.rmdir(folder)
    return left
