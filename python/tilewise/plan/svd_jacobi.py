"""The memory of `jacobi` on a rank, stage by stage: start, sweeps, finish, and the factors dealt out."""

from __future__ import annotations

from tilewise.launch.job import Variant
from tilewise.plan.grid import part
from tilewise.plan.svd_shape import Shape
from tilewise.plan.svd_wanted import Wanted

DOUBLE = 8
TALL = (
    1.5  # rows for each column from which ranks factor their rows first: `tall` in cpp/tilewise/svd/start.cpp
)
_CHUNK = 4  # rows for each column that are factored at once: `chunk_factor` there
_SOLVED_ROWS = (
    2048  # of columns that are multiplied at once: `panel_rows` in cpp/tilewise/kernel/jacobi_pair.cpp
)
_SQUARES = 6  # of a pair: its cosines, three of the solver and LAPACK's two
_APPLIED = 128  # reflectors that are applied at once: `block` in cpp/tilewise/kernel/svd_reflectors.cpp
_WINDOWS = 4  # blocks that neighbours can put into one rank's window


def jacobi_window(shape: Shape, variant: Variant, wanted: Wanted) -> int:
    """Bytes that neighbours can put blocks into, on each rank."""
    if variant.exchange != "one_sided_lock":
        return 0
    n = shape.least
    h = n if variant.start == "qr" or is_tall(shape, variant) else shape.most
    widest = part(n, variant.blocks, variant.remainder)
    return DOUBLE * _WINDOWS * widest * (h + (0 if wanted.values_only else n))


def is_tall(shape: Shape, variant: Variant) -> bool:
    """Whether the ranks factor their rows before anything else."""
    return variant.ranks > 1 and shape.most >= TALL * shape.least


def jacobi_stages(shape: Shape, variant: Variant, wanted: Wanted, again: bool, leader: bool) -> list[int]:
    """Bytes of a rank in each stage, of rank 0 where `leader`; A is m×n, m ≥ n, what is swept has h rows.

    Start: rank 0 gathers A, and turns it; then with `eigen` beside it AᵀA and what LAPACK needs, or X; with
    `qr` reflectors, X and V. Deal: X, or V, once more. Sweeps: reflectors, blocks of X and V, of which some
    arrive, a window, and what solves pairs. Finish: the columns that are kept, sorted, and turned back. Of a
    tall A the rows of a rank are factored first, and that is kept until the end.
    """
    m, n, ranks = shape.most, shape.least, variant.ranks
    tall, vectors, qr = is_tall(shape, variant), not wanted.values_only, variant.start == "qr"
    h = n if tall else m
    x_rows = n if qr else h
    column = x_rows + n * vectors
    share, high = -(-m * n // ranks), -(-m // ranks)
    widest = part(n, variant.blocks, variant.remainder)
    positions = -(-variant.blocks // (2 * ranks))
    own = min(n, 2 * positions * widest)
    kept = min(own, shape.components)
    chunk = max(n, min(-(-high // variant.threads), _CHUNK * n))
    stack = min(high, n * -(-high // chunk))

    made = h * n + (2 + vectors) * n * n if qr else max(3 * n * n, n * n + h * n)
    reflectors = (h + n) * n if vectors and qr else 0
    filled = own * (column + max(x_rows, n * vectors))
    if (
        tall
    ):  # R, or two triangles that were merged, lie beside a rank's rows and what they were factored into
        factored = share + stack * n + (1 if leader else 2) * n * n
        reading, begun = 2 * share + stack * n, factored + made * leader
    else:
        factored, reading, begun = 0, share, (m * n + made) * leader
    lasting = (factored if vectors else 0) + reflectors
    dealt = 2 * n * x_rows + n * n * vectors if leader else filled

    blocks = 2 * positions * widest * column
    # A rank at an end of the line sends one block and gets one, any other two.
    arriving = (0 if ranks == 1 else 1 if ranks == 2 or leader else 2) * widest * column
    window = jacobi_window(shape, variant, wanted) // DOUBLE
    solvers = variant.threads if positions >= variant.threads else 1
    pair = min(n, 2 * widest)
    solving = 0 if variant.inner == "rotations" else pair * (_SQUARES * pair + min(x_rows, _SOLVED_ROWS))
    swept = blocks + arriving + window + solvers * solving
    turned = kept * (column + (h * vectors if x_rows < h else 0) + _APPLIED * vectors * qr)
    stages = [lasting + stage for stage in (dealt, filled, swept, blocks + kept * column, turned)]
    stages += [reading, begun]
    if vectors and tall:
        stages += _given_tall(shape, wanted, variant, kept, chunk, stack, lasting)
    elif vectors:
        stages += _given(shape, wanted, variant, kept, leader)
    return [DOUBLE * (stage + again * share) for stage in stages]


def _given(shape: Shape, wanted: Wanted, variant: Variant, kept: int, leader: bool) -> list[int]:
    """Numbers when columns of U and V become the parts that ranks write: one factor after the other.

    Of a matrix without full rank rank 0 finds the rest of U, which it gathers first.
    """
    m, n, k, ranks = shape.most, shape.least, shape.components, variant.ranks
    completed = k if leader else kept
    factors = [(n, kept), (m, completed)]
    if shape.rows < shape.columns:
        factors.reverse()
    (first, has_first), (second, has_second) = factors
    share, other = (-(-extent * k // ranks) for extent in (first, second))

    def letters(extent: int, has: int) -> int:
        return -(-extent * (has * (ranks - 1) + k - has) // ranks) if ranks > 1 else 0

    return [
        n * kept + 2 * m * completed,
        first * has_first + second * has_second + share + letters(first, has_first),
        second * has_second + share + other + letters(second, has_second),
        share + other + max(other, other * wanted.scaled),
    ]


def _given_tall(
    shape: Shape, wanted: Wanted, variant: Variant, kept: int, chunk: int, stack: int, lasting: int
) -> list[int]:
    """The same where U of the triangle is handed down to the ranks, whose rows are multiplied by it."""
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
        rows + other + wanted.scaled * (other if flipped else rows),
    ]
