"""The memory that decompositions need: matrices, factors, panels, what LAPACK keeps, and the proof."""

from __future__ import annotations

import msgspec

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.launch.job import Variant
from tilewise.plan import need
from tilewise.plan.grid import part
from tilewise.plan.need import Need
from tilewise.plan.svd_wanted import OVERSAMPLE, Wanted

DOUBLE = 8
PANEL = 64 << 20  # bytes of A that `randomized` has in memory at once, all ranks of a node, at most
PANEL_MIN = 1 << 20  # and that it wants at least, a rank
PROOF = 16  # probes


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Rows and columns of A as stored, and how many components are wanted."""

    rows: int
    columns: int
    components: int

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

    def sampled(self, wanted: Wanted) -> int:
        """Columns of the sketch of `randomized`."""
        over = OVERSAMPLE if wanted.oversample is None else wanted.oversample
        return min(self.least, self.components + over)


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
) -> tuple[int, Need]:
    """Bytes of A in panels (of `randomized`, else 0), and what the decomposition takes.

    `room`: bytes that the ranks of a node may take together. `again`: A is kept, because what is done in
    memory is repeated.
    """
    fixed = need.FIXED + need.staging(variant) + need.whole_lines(source)
    on_node = -(-variant.ranks // nodes)
    panels = 0
    if variant.algorithm == "randomized":
        sketch = _sketch(shape, dtype, source, variant, wanted)
        least = on_node * max(PANEL_MIN, variant.threads * _view(shape, source)[1] * DOUBLE)
        panels = max(least, min(PANEL, room - on_node * (sketch + fixed)))
        rank = sketch + fixed + -(-panels // on_node)
        leader = rank
    elif variant.algorithm == "local":
        leader = rank = _local(shape, dtype, again) + fixed
    else:
        rank = _jacobi(shape, variant, wanted, again, leader=False) + fixed
        leader = _jacobi(shape, variant, wanted, again, leader=True) + fixed
    serial = _local(shape, "float64", again=True) if verify == "serial" else 0
    return panels, Need(
        rank=leader + serial,
        node=leader + serial + (on_node - 1) * rank,
        shared=0,
        blocks=leader - fixed,
        buffers=0,
    )


def full_bytes(shape: Shape) -> int:
    """What a full decomposition takes on one rank."""
    one = Variant(
        algorithm="jacobi", exchange="none", read="", write="", grid=(1, 1), ranks=1, threads=1, blocks=2
    )
    return _jacobi(shape, one, Wanted(), again=False, leader=True) + need.FIXED


def _jacobi(shape: Shape, variant: Variant, wanted: Wanted, again: bool, leader: bool) -> int:
    """Bytes of one rank in the stage that takes most; A is m×n, m ≥ n, and what is swept has h rows.

    Start: the share of A as it was read (of a tall one its rows are factored, too); rank 0 gathers what is
    swept, with X, V and what LAPACK needs. Sweeps: reflectors, the blocks of X and V, as many that arrive,
    and for a pair of w columns its Gram matrix, rotations and product. Finish: reflectors, blocks, and the
    rank's part of the factors, as it is dealt out and as it is written. (Measured: 0.5 to 0.9 of this.)
    """
    m, n, ranks = shape.most, shape.least, variant.ranks
    tall = ranks > 1 and 2 * m >= 3 * n  # only triangles meet
    h = n if tall else m
    widest = part(n, variant.blocks, variant.remainder)
    own = min(n, (-(-variant.blocks // (2 * ranks)) * 2 - 1) * (n // variant.blocks + 1) + widest)
    pair = min(n, 2 * widest)
    share = -(-m * n // ranks)
    reflectors = 0 if wanted.values_only else (h + n) * n
    blocks = own * (h + (0 if wanted.values_only else n))
    start = (1 + tall) * share + (2 * h * n + 7 * n * n // 2 if leader else 0)
    sweeps = (1 + tall) * share + reflectors + (2 if ranks > 1 else 1) * blocks + pair * (4 * pair + h)
    finish = reflectors + blocks
    if not wanted.values_only:
        finish += (2 + tall) * own * (m + n) + 2 * tall * share
    return DOUBLE * (max(start, sweeps, finish) + again * share)


def _local(shape: Shape, dtype: str, again: bool) -> int:
    """A, both factors, what gesdd keeps, and the factors once more as they are written, row by row."""
    m, n = shape.most, shape.least
    return ITEMSIZE[dtype] * ((3 + again) * m * n + 7 * n * n)


def _sketch(shape: Shape, dtype: str, source: Region, variant: Variant, wanted: Wanted) -> int:
    """Of `randomized`, on each rank: its rows of the sketch, whole vectors of the other kind, small squares.

    As `cpp/tilewise/svd/randomized.hpp` says: with panels along the longer side where A is one binary file,
    else of rows as they are stored; each thread adds up vectors of its own.
    """
    sampled, item = shape.sampled(wanted), ITEMSIZE[dtype]
    height, width = _view(shape, source)
    rows = -(-height // variant.ranks)
    sketch = rows * item * 5 // 4 + width * ((DOUBLE + item) * (1 + variant.threads) + DOUBLE // 4)
    return sampled * sketch + 8 * DOUBLE * sampled * sampled


def _view(shape: Shape, source: Region) -> tuple[int, int]:
    """Extents along and across panels."""
    one_file = not source.tiles and not source.generator and source.encoding == "binary"
    return (shape.most, shape.least) if one_file else (source.rows, source.columns)
