"""The memory of `tall`: panels of rows, a chain of triangles for each lane, and R's decomposition."""

from __future__ import annotations

from tilewise.launch.job import Variant
from tilewise.operations.svd.options import Svd
from tilewise.operations.svd.shape import Shape
from tilewise.operations.svd.sizes import sizes

R_SQUARES = 11  # of n×n numbers that rank 0 has for R, its decomposition, and what LAPACK keeps


def step_bytes(shape: Shape, variant: Variant, room: int) -> int:
    """Bytes of A, as it is computed with, that a rank has at a time: as many as pay, or as there is room for.

    `room` is that of a rank beside what is fixed; each number is there twice. Fewer rows mean fewer lanes,
    which need room themselves; one has the rows of a triangle at least.
    """
    size, n = sizes(), shape.least
    row = n * shape.number
    wanted = variant.threads * max(size.tall_panel_factor * n, size.tall_panel_bytes // row)
    lanes = _lanes(shape, variant, wanted)
    while lanes > 1 and _rows_beside(shape, lanes, room) < lanes * n:
        lanes -= 1
    rows = max(n, min(wanted, _rows_beside(shape, lanes, room)))
    if _lanes(shape, variant, rows) > lanes:
        rows = (lanes + 1) * n - 1
    return row * rows


def _rows_beside(shape: Shape, lanes: int, room: int) -> int:
    """Rows of a step that there is room for beside so many lanes; 0 where these alone are too much."""
    n, k = shape.least, shape.components
    chains = _chains(shape, lanes, True)
    between = chains + (2 * lanes + 2 + R_SQUARES) * n * n + (3 + lanes) * n * k
    left = room // shape.number - chains - n * n
    return max(0, left // (2 * n)) if shape.number * between <= room else 0


def _lanes(shape: Shape, variant: Variant, rows: int) -> int:
    """Threads of a rank that have rows of their own in each step, of so many rows: as the worker does."""
    most = shape.most // variant.ranks // (sizes().tall_lane_factor * shape.least)
    return max(1, min(variant.threads, most, rows // shape.least))


def tall_stages(shape: Shape, variant: Variant, options: Svd, step: int, leader: bool) -> list[int]:
    """Bytes of a rank, with `step` bytes of A at a time: while it reads, and between the readings.

    What cpp/tilewise/svd/algorithms.hpp says, in numbers of which n² make a triangle.
    """
    n, k, ranks = shape.least, shape.components, variant.ranks
    rows, vectors = step // (n * shape.number), not options.values_only
    lanes, mine = _lanes(shape, variant, rows), -(-shape.most // ranks)
    panels = 2 * min(mine, max(lanes * n, rows)) * n
    chains = _chains(shape, lanes, vectors)
    met = min(mine, lanes * n)  # rows of the triangles
    combined = 2 * met * n + (2 * n * n if ranks > 1 else 0)
    kept = n * n * leader * vectors
    decomposed = combined + R_SQUARES * n * n * leader
    handed = combined + (3 * n * k + met * k) * vectors + kept
    written = 2 * n * k * leader * vectors + kept
    stages = (panels + chains + kept, chains + max(decomposed, handed), written)
    return [shape.number * stage for stage in stages]


def _chains(shape: Shape, lanes: int, vectors: bool) -> int:
    """Numbers of the lanes: head, triangle, reflectors, a packed triangle, and two blocks on the way back."""
    n, k = shape.least, shape.components
    packed = n * (n + 1) // 2
    return lanes * (3 * n * n + packed + 2 * n * k * vectors) + n * k * vectors
