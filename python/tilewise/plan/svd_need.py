"""The memory that decompositions need: matrices, factors, panels, what LAPACK keeps, and the proof."""

from __future__ import annotations

import msgspec

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.launch.job import Variant
from tilewise.plan import need
from tilewise.plan.grid import part
from tilewise.plan.need import Need
from tilewise.plan.svd_panels import basis_of, proof_need, sketch_need
from tilewise.plan.svd_shape import Shape, panels_of_input
from tilewise.plan.svd_wanted import Wanted

DOUBLE = 8
PANEL = 64 << 20  # bytes of A in panels at once, all ranks of a node, at most
PANEL_MIN = 1 << 20  # and that `randomized` wants at least, a rank
TALL = (
    1.5  # rows for each column from which ranks factor their rows first: `tall` in cpp/tilewise/svd/start.cpp
)
_CHUNK = 4  # rows for each column that are factored at once: `chunk_factor` there
_SOLVED_ROWS = (
    2048  # of columns that are multiplied at once: `panel_rows` in cpp/tilewise/kernel/jacobi_pair.cpp
)
_WINDOWS = 4  # blocks that neighbours can put into one rank's window


def svd_need(
    shape: Shape,
    source: Region,
    dtype: str,
    variant: Variant,
    wanted: Wanted,
    verify: str,
    room: int,
    nodes: int,
    again: bool,
) -> tuple[int, int, Need]:
    """Bytes of A in panels, columns of the space of `randomized`, and what the decomposition takes.

    `room`: bytes that the ranks of a node may take together. `again`: A is kept, because what is done in
    memory is repeated.
    """
    fixed = need.FIXED + need.staging(variant) + need.whole_lines(source)
    on_node = -(-variant.ranks // nodes)
    panels, basis, window = PANEL, 0, 0
    if variant.algorithm == "randomized":
        width = panels_of_input(source, dtype, variant, 1, PANEL).width
        least = on_node * max(PANEL_MIN, variant.threads * width * DOUBLE)
        sketch = 0
        for basis in basis_of(shape.sampled(wanted)):  # the first that fits, or the smallest
            sketch = sketch_need(shape, dtype, source, variant, wanted, PANEL // on_node, basis)
            if least + on_node * (sketch + fixed) <= room:
                break
        panels = max(least, min(PANEL, room - on_node * (sketch + fixed)))
        panels -= panels % on_node
        leader = rank = sketch + panels // on_node
    elif variant.algorithm == "local":
        leader = rank = _local(shape, dtype, again)
    else:
        window = _window(shape, variant, wanted)
        rank = _jacobi(shape, variant, wanted, again, leader=False)
        leader = _jacobi(shape, variant, wanted, again, leader=True)
    proof = 0
    if verify == "fast":
        proof = proof_need(shape, dtype, source, variant, wanted.values_only, -(-panels // on_node))
    serial = _local(shape, "float64", again=True) if verify == "serial" else 0
    leader = max(leader, proof) + serial
    return (
        panels,
        basis,
        Need(
            rank=leader + fixed,
            node=leader + (on_node - 1) * max(rank, proof) + on_node * fixed,
            shared=on_node * window if on_node > 1 else 0,
            blocks=leader,
            buffers=0,
        ),
    )


def most_components(
    shape: Shape,
    source: Region,
    dtype: str,
    variant: Variant,
    wanted: Wanted,
    verify: str,
    room: int,
    nodes: int,
) -> Shape:
    """`shape` with as many components as `randomized` can have in `room` bytes of a node; one at least."""
    low, high = 1, shape.least + 1
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        tried = msgspec.structs.replace(shape, components=middle)
        _, _, required = svd_need(tried, source, dtype, variant, wanted, verify, room, nodes, again=False)
        low, high = (middle, high) if required.node <= room else (low, middle)
    most = shape.least if high > shape.least else low
    return msgspec.structs.replace(shape, components=most)


def full_bytes(shape: Shape) -> int:
    """What a full decomposition takes on one rank."""
    one = Variant(
        algorithm="jacobi", exchange="none", read="", write="", grid=(1, 1), ranks=1, threads=1, blocks=2
    )
    return _jacobi(shape, one, Wanted(), again=False, leader=True) + need.FIXED


def _window(shape: Shape, variant: Variant, wanted: Wanted) -> int:
    """Bytes that neighbours can put blocks into, on each rank."""
    if variant.exchange != "one_sided_lock":
        return 0
    n = shape.least
    h = n if _is_tall(shape, variant) else shape.most
    widest = part(n, variant.blocks, variant.remainder)
    return DOUBLE * _WINDOWS * widest * (h + (0 if wanted.values_only else n))


def _is_tall(shape: Shape, variant: Variant) -> bool:
    return variant.ranks > 1 and shape.most >= TALL * shape.least


def _jacobi(shape: Shape, variant: Variant, wanted: Wanted, again: bool, leader: bool) -> int:
    """Bytes of one rank in the stage that takes most; A is m×n, m ≥ n, and what is swept has h rows.

    Start: the share of A as it was read; rank 0 gathers what is swept, with X, V and what LAPACK needs. With
    `eigen` X has h rows, with `qr`, which `eigen` may fall back to, n rows and reflectors beside them.
    Sweeps: reflectors, blocks of X and V, of which two arrive, a window, and what solves pairs. Finish: the
    columns that are kept, sorted, turned back, dealt out, and as they are written. Of a tall A the rows of a
    rank are factored first, and that is kept until the end.
    """
    m, n, k, ranks = shape.most, shape.least, shape.components, variant.ranks
    tall = _is_tall(shape, variant)
    h, vectors = (n if tall else m), not wanted.values_only
    share, high = -(-m * n // ranks), -(-m // ranks)
    widest = part(n, variant.blocks, variant.remainder)
    positions = -(-variant.blocks // (2 * ranks))
    arriving = 2 if ranks > 1 else 0
    own = min(n, 2 * positions * (n // variant.blocks + 1) + widest)
    kept = min(own, k)

    chunk = max(n, min(-(-high // variant.threads), _CHUNK * n))
    stack = min(high, n * -(-high // chunk))
    rows = (share + stack * n + 2 * n * n) if tall else 0  # as they are factored, and two triangles
    start = (share + (rows if tall else 0)) if tall or ranks > 1 else 0
    if leader:
        # As it is gathered and turned; then with two copies, or one and X and V and what LAPACK needs.
        start = max(start, (rows if tall else 0) + 2 * h * n + max(h * n, 4 * n * n if tall else 3 * n * n))
    most = start

    lasting = rows if vectors else 0
    for x_rows in {h, n}:
        reflectors = (h + n) * n if vectors and x_rows == n else 0
        column = x_rows + n * vectors
        blocks = (2 * positions + arriving) * widest * column
        window = _window(shape, variant, wanted) // DOUBLE
        solvers = variant.threads if positions >= variant.threads else 1
        pair = min(n, 2 * widest)
        solving = solvers * pair * (6 * pair + min(x_rows, _SOLVED_ROWS))
        filled = lasting + reflectors + 2 * own * column
        swept = lasting + reflectors + blocks + window + solving
        sorted_ = lasting + reflectors + blocks + window + kept * column
        turned = lasting + reflectors + arriving * widest * column + window
        turned += kept * (column + (h + 2 * n) * vectors)
        most = max(most, filled, swept, sorted_, turned)
    if vectors:
        most = max(most, lasting + _dealt(shape, wanted, variant, kept, tall, chunk, stack, leader))
    return DOUBLE * (most + again * share)


def _dealt(
    shape: Shape,
    wanted: Wanted,
    variant: Variant,
    kept: int,
    tall: bool,
    chunk: int,
    stack: int,
    leader: bool,
) -> int:
    """Numbers of the finish once a rank has its columns of U and V, of which it sends what is others'."""
    m, n, k, ranks = shape.most, shape.least, shape.components, variant.ranks
    share, high = -(-m * k // ranks), -(-m // ranks)
    window = _window(shape, variant, wanted) // DOUBLE
    written = share + -(-n * k // ranks) + share * wanted.scaled
    if not tall:
        letters = kept * m if ranks > 1 else 0
        completed = 2 * m * k if leader else 0  # of a matrix without full rank, rank 0 finds the rest of U
        return window + kept * (m + n) + share + written + max(letters, completed)
    product = 3 * n * k + stack * k + min(high, variant.threads * chunk) * k
    return window + 2 * kept * n + product + share + written


def _local(shape: Shape, dtype: str, again: bool) -> int:
    """A, both factors, what gesdd keeps, and the factors once more as they are written, row by row."""
    m, n = shape.most, shape.least
    return ITEMSIZE[dtype] * ((3 + again) * m * n + 7 * n * n)
