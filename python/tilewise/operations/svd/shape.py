"""The extents of a decomposition, the worker's sizes, and the cut of A where it is read in panels."""

from __future__ import annotations

import msgspec

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.launch.constants import constants
from tilewise.launch.job import Variant
from tilewise.operations.svd.options import OVERSAMPLE, Svd


class SvdSizes(msgspec.Struct, frozen=True):
    """Constants of the worker: of what is factored, of panels of A, of the space of `randomized`."""

    tall_percent: int  # rows, in percent of the columns, from which ranks factor their rows first
    chunk_factor: int  # rows for each column that are factored at once
    least_chunk_rows: int  # and the fewest of them in the space of `randomized`
    rotated_rows: int  # of a pair of blocks, that are multiplied at once
    factored_columns: int  # of a panel of the QR
    reduced_columns: int  # of a panel that all ranks reduce to three diagonals
    shared_leaf: int  # rows that one rank decomposes, where all decompose a tridiagonal matrix
    applied_reflectors: int  # at once
    band_width: int  # of two_stage: diagonals above the main one
    slab_columns: int  # of U or V that a thread makes at a time
    sweeps_in_block: int  # of bulge chasing, whose reflectors are applied at once
    sketch_oversampling: int  # rows of a sketch beyond the columns that are chosen by it
    gram_panel_columns: int  # of A, that all ranks multiply with at once
    lane_panel_bytes: int  # of a panel that a thread has for itself
    shared_panel_bytes: int  # of one that all threads share
    lane_vector_bytes: int  # that each thread may have beside its panel
    least_panel_rows: int
    piece_bytes: int  # of a panel of columns, that lie together
    most_pieces: int  # of a panel of columns
    basis_blocks: int  # of the space, as long as it has no more columns than
    basis_columns: int
    least_basis_blocks: int
    warm_readings: int  # up to which a block is all that is kept
    tall_panel_factor: int  # of a panel of `tall`: rows for each column
    tall_panel_bytes: int  # and bytes of it, at least
    tall_lane_factor: int  # rows of a rank for each column, in each lane, from which there are several
    probes: int  # random vectors of the proof, and as many of signs

    @property
    def sketch_rows(self) -> int:
        """Rows of a sketch by which the columns of a panel are chosen."""
        return self.factored_columns + self.sketch_oversampling


def sizes() -> SvdSizes:
    """Constants of the worker that jobs will be given to."""
    return constants("svd", SvdSizes)


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
    together = not source.in_one_piece or variant.read not in ("mapped", "positioned")
    if not together and rows < columns and rows <= sizes().most_pieces:
        return _cut((columns, rows), True, source.dtype, dtype, variant, vectors, room, False)
    return _cut((rows, columns), False, source.dtype, dtype, variant, vectors, room, together)


def panels_of_factor(
    length: int, count: int, by_columns: bool, stored: str, variant: Variant, vectors: int, room: int
) -> Panels:
    """Panels of U (`length` rows of `count` numbers) or Vᵀ (columns), read as float64 or complex128."""
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
