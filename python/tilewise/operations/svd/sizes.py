"""The worker's sizes that the memory of a decomposition follows from."""

from __future__ import annotations

import msgspec

from tilewise.launch.constants import constants


class Sizes(msgspec.Struct, frozen=True):
    """Of what is factored, of panels of A, and of the space of `randomized`."""

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


def sizes() -> Sizes:
    """Those of the worker that jobs will be given to."""
    return constants("svd", Sizes)
