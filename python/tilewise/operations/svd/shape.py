"""The extents of a decomposition, and how A is cut where it is read in panels."""

from __future__ import annotations

import msgspec

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.folder import Piece
from tilewise.files.region import Region
from tilewise.launch.job import Variant
from tilewise.operations.svd.options import OVERSAMPLE, Svd
from tilewise.operations.svd.sizes import sizes


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Rows and columns of A as stored, how many components are options, and bytes of a number in memory."""

    rows: int
    columns: int
    components: int
    number: int = 8  # float64; 16 for complex numbers

    @property
    def least(self) -> int:
        """Singular values that there are."""
        return min(self.rows, self.columns)

    @property
    def most(self) -> int:
        """The longer side."""
        return max(self.rows, self.columns)

    @property
    def work(self) -> float:
        """Multiply-adds of a full decomposition, all but a small factor."""
        return float(self.rows) * self.columns * self.least

    def sampled(self, options: Svd) -> int:
        """Columns of the sketch of `randomized`."""
        over = OVERSAMPLE if options.oversample is None else options.oversample
        return min(self.least, self.components + over)


def with_components(pieces: list[Piece], components: int) -> list[Piece]:
    """The files of a decomposition with so many components."""
    shapes = [
        (piece.shape[0], components) if piece.file in ("U.npy", "US.npy") else (components, *piece.shape[1:])
        for piece in pieces
    ]
    return [msgspec.structs.replace(piece, shape=shape) for piece, shape in zip(pieces, shapes, strict=True)]


class Panels(msgspec.Struct, frozen=True, kw_only=True):
    """Panels of `rows` × `width` numbers that `lanes` threads of a rank have at a time, each its own."""

    height: int
    width: int
    lanes: int
    rows: int


def panels_of_input(source: Region, dtype: str, variant: Variant, vectors: int, room: int) -> Panels:
    """How a rank reads A where it multiplies with `vectors` vectors, with `room` bytes of it at most.

    Where A is one binary file that each rank reads for itself, across what is longer; else rows as stored.
    """
    rows, columns = source.shape if source.order == "C" else source.shape[::-1]
    plain = not source.tiles and not source.generator and source.encoding == "binary"
    together = not plain or variant.read not in ("mapped", "positioned")
    if not together and rows < columns and rows <= sizes().most_pieces:
        return _cut((columns, rows), True, source.dtype, dtype, variant, vectors, room, False)
    return _cut((rows, columns), False, source.dtype, dtype, variant, vectors, room, together)


def panels_of_factor(
    length: int, count: int, by_columns: bool, stored: str, variant: Variant, vectors: int, room: int
) -> Panels:
    """The same for U (`length` rows of `count` numbers) or Vᵀ (columns), read as float64 or complex128."""
    dtype = "complex128" if stored.startswith("complex") else "float64"
    return _cut((length, count), by_columns, stored, dtype, variant, vectors, room, False)


def _cut(
    extents: tuple[int, int],
    by_columns: bool,
    stored: str,
    dtype: str,
    variant: Variant,
    vectors: int,
    room: int,
    together: bool,
) -> Panels:
    height, width = extents
    item, size = ITEMSIZE[dtype], sizes()
    lanes = 1 if together or width * vectors * item > size.lane_vector_bytes else variant.threads
    wanted = size.shared_panel_bytes if together or lanes < variant.threads else size.lane_panel_bytes
    row = max(width, vectors) * item
    rows = max(wanted // row, size.piece_bytes // ITEMSIZE[stored] if by_columns else size.least_panel_rows)
    rows = min(rows, room // (lanes * row), height)
    return Panels(height=height, width=width, lanes=lanes, rows=max(1, rows))
