"""The memory of what reads A in panels: `randomized`, and the proof by random vectors."""

from __future__ import annotations

import sys

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.launch.job import Variant
from tilewise.operations.svd.options import Svd
from tilewise.operations.svd.shape import Panels, Shape, panels_of_factor, panels_of_input
from tilewise.operations.svd.sizes import sizes

DOUBLE = 8
SUMMED = 128 << 20  # bytes of sums over the ranks that MPI may keep a second time, at most
LINE = 64  # bytes to whose multiples a row of the sketch is padded
SQUARES = 14  # of sampled × sampled numbers: triangles, their merges, and what LAPACK keeps


def basis_of(block: int) -> tuple[int, int]:
    """Columns that the space of `randomized` may have, with blocks of so many: what is usual, and the fewest.

    The usual is so many blocks as long as its eigenvalue problem stays small: `usual_basis` in
    cpp/tilewise/svd/randomized_basis.hpp.
    """
    size = sizes()
    fewest = size.least_basis_blocks * block
    return max(fewest, min(size.basis_blocks * block, size.basis_columns)), fewest


def sketch_need(
    shape: Shape, dtype: str, source: Region, variant: Variant, options: Svd, room: int, basis: int
) -> int:
    """Bytes of `randomized` on each rank, all but the panels, which have `room`.

    With panels of width W, l vectors (L with padding), as `cpp/tilewise/svd/algorithms.hpp` says:
    Q takes W·L, and each of the threads that add up vectors of their own W·L, W·l in float64, and a panel's
    products. A block alone is read while the rank's rows of A·Q are kept, and is then held four times; one
    that joins a space of `basis` columns is held beside that, which takes half as much again where its Ritz
    vectors take its place, and seven squares of numbers. At the end there is a part of Vᵀ, to be written.
    """
    sampled, item, size = shape.sampled(options), ITEMSIZE[dtype], sizes()
    padded, panels = _sketched(shape, dtype, source, variant, options, room)
    width, rows = panels.width, -(-panels.height // variant.ranks)
    whole = width * sampled * DOUBLE
    messages = min(whole, SUMMED) if variant.ranks > 1 else 0
    lanes = panels.lanes * ((width + panels.rows) * padded * item + whole)
    chunk = max(size.least_chunk_rows, size.chunk_factor * sampled)
    sample = sampled * (rows + rows // size.chunk_factor + min(rows, variant.threads * chunk)) * item
    factored = sampled * (width + width // 2 + min(width, variant.threads * chunk)) * DOUBLE
    vectors = 0 if options.values_only else width * shape.components * item
    turned, scaled = (
        -(-extent * shape.components // variant.ranks) for extent in (shape.columns, shape.rows)
    )
    written = 0 if options.values_only else vectors + (turned + scaled * options.scaled) * item
    alone = max(
        whole + sample + max(lanes + messages, 3 * whole), 3 * whole + factored, sample + written + whole
    )
    space = 0
    if options.power is None or options.power > size.warm_readings:
        held = min(basis, width)
        space = held * width * DOUBLE + 7 * held * held * DOUBLE
        space += max(lanes + messages + whole, 2 * whole + factored, held // 2 * width * DOUBLE + whole)
    return width * padded * item + max(alone, space) + SQUARES * DOUBLE * sampled * sampled


def panel_bytes(shape: Shape, dtype: str, source: Region, variant: Variant, options: Svd, room: int) -> int:
    """Bytes of A that a rank has at a time, as they were read and as they are used, within `room`."""
    panels = _sketched(shape, dtype, source, variant, options, room)[1]
    converts = source.dtype != dtype or source.byte_order != sys.byteorder
    row = panels.lanes * panels.width * (ITEMSIZE[dtype] + converts * ITEMSIZE[source.dtype])
    return max(row, min(room, panels.rows * row))


def _sketched(
    shape: Shape, dtype: str, source: Region, variant: Variant, options: Svd, room: int
) -> tuple[int, Panels]:
    """Columns of the sketch with padding, and the panels of A that are multiplied with it."""
    item = ITEMSIZE[dtype]
    padded = -(-shape.sampled(options) * item // LINE) * LINE // item
    return padded, panels_of_input(source, dtype, variant, padded, room)


def proof_need(
    shape: Shape, dtype: str, source: Region, variant: Variant, values_only: bool, room: int
) -> int:
    """Bytes of `fast` on each rank, after all else is gone; the panels of each matrix have `room`.

    Across the panels of A there are vectors in float64 (or complex128) and in A's type. A thread has a
    panel of A, the same rows of U or of Vᵀ, and products of both with the vectors; before that panels of
    the other factor, and its products. What has K numbers a vector is small.
    """
    probes = sizes().probes
    item, vectors, number = ITEMSIZE[dtype], 2 * probes, shape.number
    a = panels_of_input(source, dtype, variant, vectors, room)
    held = a.width * (item + ITEMSIZE[source.dtype])
    if values_only:
        return a.lanes * a.rows * held
    k = shape.components
    stored = number + (item if item != number else 0)  # of a number of U or Vᵀ, as read and as used
    other = panels_of_factor(a.width, k, a.height == shape.rows, dtype, variant, vectors, room)
    along = a.rows * (held + k * stored + vectors * (number + item) + probes * number)
    across = other.rows * (k * stored + 2 * vectors * number)
    small = vectors * k * number
    passed = probes * a.width * number
    messages = passed + min(passed, SUMMED) if variant.ranks > 1 else 0
    return (
        a.lanes * (along + small)
        + other.lanes * (across + small)
        + a.width * vectors * (number + item)
        + messages
        + 5 * small
    )
