"""The memory of `jacobi` and of `tall` on a rank, stage by stage; the largest stage is what a rank needs."""

from __future__ import annotations

from tilewise.launch.job import Variant
from tilewise.operations.svd.options import Svd
from tilewise.operations.svd.shape import Shape, sizes
from tilewise.planning.grid import part

_SQUARES = 6  # of a pair: its cosines, three of the solver and LAPACK's two
SHARING_NODES, SHARED_COLUMNS = 4, 512  # from which all ranks reduce AᵀA
_WINDOWS = 4  # blocks that neighbours can put into one rank's window


def jacobi_window(shape: Shape, variant: Variant, options: Svd) -> int:
    """Bytes that neighbours can put blocks into, on each rank."""
    if variant.exchange != "one_sided_lock":
        return 0
    n = shape.least
    h = n if variant.start == "qr" or is_tall(shape.most, shape.least, variant) else shape.most
    widest = part(n, variant.blocks, variant.remainder)
    return shape.number * _WINDOWS * widest * (h + (0 if options.values_only else n))


def is_tall(most: int, least: int, variant: Variant) -> bool:
    """True if the ranks factor their rows before anything else; the sides of A are so long."""
    high = 100 * most >= sizes().tall_percent * least
    return variant.ranks > 1 and high and variant.start != "none"


def shares_eigen(shape: Shape, variant: Variant, on_node: int) -> bool:
    """True if all ranks reduce AᵀA to three diagonals, not rank 0 with all cores of its node.

    They read AᵀA whole, where rank 0 reads half, and wait for a message for each column: that pays on
    `SHARING_NODES` nodes or more, and `SHARED_COLUMNS` or more.
    """
    nodes = -(-variant.ranks // on_node)
    return variant.start == "eigen" and nodes >= SHARING_NODES and shape.least >= SHARED_COLUMNS


def jacobi_stages(
    shape: Shape, variant: Variant, options: Svd, again: bool, leader: bool, on_node: int
) -> list[int]:
    """Bytes of a rank in each stage, of rank 0 where `leader`; A is m×n, m ≥ n, what is swept has h rows.

    Start: each rank gets its columns of A; then with `eigen` rank 0 has AᵀA and what LAPACK needs, or each
    rank its columns of that, and each rank its columns of X and V beside A's; with `qr` its columns of both
    factors and of X; with `none` its columns of A twice, as they are read and as they are swept. Sweeps:
    reflectors, blocks of X and V, of which some arrive, a window, and what solves pairs. Finish: the columns
    that are kept, sorted, and turned back. Of a tall A the rows of a rank are factored first, and that is
    kept until the end.
    """
    size = sizes()
    m, n, ranks = shape.most, shape.least, variant.ranks
    tall, vectors, qr = (
        is_tall(shape.most, shape.least, variant),
        not options.values_only,
        variant.start == "qr",
    )
    h = n if tall else m
    x_rows = n if qr else h
    column = x_rows + n * vectors
    share, high = -(-m * n // ranks), -(-m // ranks)
    even = -(-n // ranks)  # columns of A
    widest = part(n, variant.blocks, variant.remainder)
    positions = -(-variant.blocks // (2 * ranks))
    own = min(n, 2 * positions * widest)
    kept = min(own, shape.components)
    chunk = max(n, min(-(-high // variant.threads), size.chunk_factor * n))
    stack = min(high, n * -(-high // chunk))

    factored, reading = 0, [share + _moved(m * even, ranks), 2 * share]
    if tall:  # R, or two triangles that were merged, lie beside a rank's rows and their factors
        factored = share + stack * n + (1 if leader else 2) * n * n
        reading = [2 * share + stack * n, factored + (2 * n * n if leader else 2 * n * even)]
    if qr:
        made = _factored_columns(h, n, even, own, leader, ranks)
    elif variant.start == "none":
        made = [h * even + h * own + h * (even + own) * (ranks > 1)]
    elif shares_eigen(shape, variant, on_node):
        made = _shared_eigenvectors(h, n, even, own)
    else:
        made = _eigenvectors(h, n, even, own, leader, ranks)
    lasting = (factored if vectors else 0) + ((h + n) * even if vectors and qr else 0)
    filled = own * (max(2 * n, column) if qr else column + max(x_rows, n * vectors))

    blocks = 2 * positions * widest * column
    # A rank at an end of the line sends one block and gets one, any other two.
    arriving = (0 if ranks == 1 else 1 if ranks == 2 or leader else 2) * widest * column
    window = jacobi_window(shape, variant, options) // shape.number
    solvers = variant.threads if positions >= variant.threads else 1
    pair = min(n, 2 * widest)
    solving = 0 if variant.inner == "rotations" else pair * (_SQUARES * pair + min(x_rows, size.rotated_rows))
    swept = blocks + arriving + window + solvers * solving
    turned = (
        kept * (column + (h * vectors if x_rows < h else 0))
        + size.applied_reflectors * (2 * h + kept) * vectors * qr
    )
    stages = [lasting + stage for stage in (filled, swept, blocks + kept * column, turned)]
    stages += [*reading, *(factored + stage for stage in made)]
    if vectors and tall:
        stages += _given_tall(shape, options, variant, kept, chunk, stack, lasting)
    elif vectors:
        stages += _given(shape, options, variant, kept)
    return [shape.number * (stage + again * share) for stage in stages]


def _moved(numbers: int, ranks: int) -> int:
    """Numbers held during an all-to-all of so many numbers, from all ranks alike."""
    return numbers + 2 * numbers * (ranks - 1) // ranks


def _eigenvectors(h: int, n: int, even: int, own: int, leader: bool, ranks: int) -> list[int]:
    """Numbers beside A's columns: AᵀA, reflectors of its reduction, LAPACK's vectors, V, and X."""
    size = sizes()
    panel = size.gram_panel_columns * (h + 2 * n * leader)
    applied = size.applied_reflectors * (2 * n + own)

    def dealt(columns: int) -> int:
        return n * n + n * n * (ranks - 1) // ranks + n * columns if leader else 2 * n * columns

    return [
        h * even + stage
        for stage in (
            n * n * leader + panel,
            dealt(even),
            n * even + 2 * n * n * leader,
            n * even + dealt(own),
            n * even + 2 * n * own + applied,
            n * own + h * own + panel,
        )
    ]


def _shared_eigenvectors(h: int, n: int, even: int, own: int) -> list[int]:
    """Numbers beside A's columns: AᵀA, which its reflectors take the place of, and a panel of it; columns of
    the vectors of halves, of what is made of them, and of both together; V, and X."""
    size = sizes()
    panel = size.gram_panel_columns * h
    reduced = size.reduced_columns * (4 * n + 2 * even)
    leaf = 3 * size.shared_leaf**2
    return [
        h * even + stage
        for stage in (
            n * even + panel + size.gram_panel_columns * even,
            n * even + reduced,
            n * even + n * even // 2 + 2 * n * own + size.gram_panel_columns * n + leaf,
            n * even + 2 * n * own + size.applied_reflectors * (3 * n + own),
            n * own + h * own + panel,
        )
    ]


def _factored_columns(h: int, n: int, even: int, own: int, leader: bool, ranks: int) -> list[int]:
    """A's columns as they are factored; R as it becomes Rᵀ; both factors, and L.

    Beside a panel, pivots take signs, a sketch of a rank's columns, and on rank 0 that of all, to factor it.
    """
    size = sizes()
    sketched = size.sketch_rows
    panel = (size.factored_columns + sketched) * h + 2 * sketched * n * leader
    panel += (size.applied_reflectors + sketched) * even
    moved = max(_moved(n * even, ranks), 2 * n * even)
    return [2 * h * even + panel, h * even + moved + panel, (h + n) * even + moved * own // even + panel]


def _given(shape: Shape, options: Svd, variant: Variant, kept: int) -> list[int]:
    """Numbers when columns of U and V become the parts that ranks write: one factor after the other.

    For a rank-deficient matrix, the missing columns of U are built from Householder reflectors of the others.
    """
    m, n, k, ranks = shape.most, shape.least, shape.components, variant.ranks
    factors = [n, m]
    if shape.rows < shape.columns:
        factors.reverse()
    first, second = factors
    share, other = (-(-extent * k // ranks) for extent in (first, second))

    def letters(extent: int) -> int:
        return -(-extent * (kept * (ranks - 1) + k - kept) // ranks) if ranks > 1 else 0

    return [
        n * kept + 2 * m * kept + sizes().applied_reflectors * (2 * m + kept),
        (first + second) * kept + share + letters(first),
        second * kept + share + other + letters(second),
        share + other + max(other, other * options.scaled),
    ]


def _given_tall(
    shape: Shape, options: Svd, variant: Variant, kept: int, chunk: int, stack: int, lasting: int
) -> list[int]:
    """Numbers held where U of the triangle is handed down to the ranks, whose rows are multiplied by it."""
    m, n, k, ranks = shape.most, shape.least, shape.components, variant.ranks
    flipped = shape.rows < shape.columns
    high = -(-m // ranks)
    rows, other = high * k, -(-n * k // ranks)
    return [
        lasting + n * (2 * kept + k),
        lasting + n * (kept + 3 * k) + stack * k,
        high * n + n * kept + stack * k + min(high, variant.threads * chunk) * k,
        high * n + n * kept + rows,
        2 * (rows + other) if flipped else rows + n * kept + 2 * other,
        rows + other + options.scaled * (other if flipped else rows),
    ]


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
