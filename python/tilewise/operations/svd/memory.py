"""The memory of decompositions: matrices, factors, panels of A, what LAPACK keeps, and the proof.

`Shape` (in `shape.py`) has the extents that everything follows from; the stages of `jacobi` and `tall` stand
in `stages.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

import msgspec

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.launch.job import Variant
from tilewise.operations.svd.options import Svd
from tilewise.operations.svd.shape import Panels, Shape, panels_of_factor, panels_of_input, sizes
from tilewise.operations.svd.stages import jacobi_stages, jacobi_window, step_bytes, tall_stages
from tilewise.planning import need
from tilewise.planning.need import Need

_ALL = Svd(a="", output="")  # no flags: all components, with vectors
PANEL = 64 << 20  # bytes of A in panels at once, all ranks of a node, at most
PANEL_MIN = 1 << 20  # and that `randomized` wants at least, a rank


def svd_need(
    shape: Shape,
    source: Region,
    dtype: str,
    variant: Variant,
    options: Svd,
    verify: str,
    room: int,
    on_node: int,
    again: bool,
) -> tuple[int, int, Need]:
    """Bytes of A in panels, columns of the space of `randomized`, and what the decomposition takes.

    `room`: bytes that the ranks of a node may take together. `again`: A is kept, because what is done in
    memory is repeated. Of `jacobi` with the start and the blocks of `variant`, whether asked for or not.
    """
    fixed = need.FIXED + need.staging(variant) + need.whole_lines(source)
    panels, basis, window = PANEL, 0, 0
    if variant.algorithm == "randomized":
        width = panels_of_input(source, dtype, variant, 1, PANEL).width
        least = on_node * max(PANEL_MIN, variant.threads * width * DOUBLE)
        sketch = 0
        for basis in basis_of(shape.sampled(options)):  # the first that fits, or the smallest
            sketch = sketch_need(shape, dtype, source, variant, options, PANEL // on_node, basis)
            if least + on_node * (sketch + fixed) <= room:
                break
        panels = max(least, min(PANEL, room - on_node * (sketch + fixed)))
        panels -= panels % on_node
        leader = others = [sketch + panel_bytes(shape, dtype, source, variant, options, panels // on_node)]
    elif variant.algorithm == "local":
        leader = others = [_local(shape, source, options, again)]
    elif variant.algorithm == "tall":
        step = step_bytes(shape, variant, room // on_node - fixed)
        panels = on_node * step
        leader, others = (tall_stages(shape, variant, options, step, first) for first in (True, False))
    elif variant.algorithm == "two_stage":
        leader, others = [two_stage_bytes(shape, source, options, again, variant.threads * on_node)], [0]
    else:
        window = jacobi_window(shape, variant, options)
        leader, others = (
            jacobi_stages(shape, variant, options, again, leader=first, on_node=on_node)
            for first in (True, False)
        )
    stages = list(zip(leader, others, strict=True))
    if verify == "fast":
        proof = proof_need(shape, dtype, source, variant, options.values_only, -(-panels // on_node))
        stages.append((proof, proof))
    serial = _local(shape, source, _ALL, again=True) if verify == "serial" else 0
    rank = max(map(max, stages)) + serial
    return (
        panels,
        basis,
        Need(
            rank=rank + fixed,
            node=_fullest(stages, on_node, variant.ranks) + serial + on_node * fixed,
            shared=on_node * window if on_node > 1 else 0,
            blocks=rank,
            buffers=0,
        ),
    )


def _fullest(stages: Iterable[tuple[int, int]], on_node: int, ranks: int) -> int:
    """Bytes on the node that has most in a stage: that of rank 0, or one of others."""
    most = max(leader + (on_node - 1) * other for leader, other in stages)
    return max(most, *(on_node * other for _, other in stages)) if ranks > on_node else most


def most_components(
    shape: Shape,
    source: Region,
    dtype: str,
    variant: Variant,
    options: Svd,
    verify: str,
    room: int,
    on_node: int,
) -> Shape:
    """`shape` with as many components as `randomized` can have in `room` bytes of a node; one at least."""
    low, high = 1, shape.least + 1
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        tried = msgspec.structs.replace(shape, components=middle)
        _, _, required = svd_need(tried, source, dtype, variant, options, verify, room, on_node, again=False)
        low, high = (middle, high) if required.node <= room else (low, middle)
    most = shape.least if high > shape.least else low
    return msgspec.structs.replace(shape, components=most)


def full_bytes(shape: Shape) -> int:
    """Bytes of a full decomposition on one rank."""
    one = Variant(
        algorithm="jacobi",
        exchange="none",
        read="",
        write="",
        grid=(1, 1),
        ranks=1,
        threads=1,
        blocks=4,
        start="qr",
    )
    return max(jacobi_stages(shape, one, _ALL, again=False, leader=True, on_node=1)) + need.FIXED


def two_stage_bytes(shape: Shape, source: Region, options: Svd, again: bool, threads: int) -> int:
    """A as it is turned; A, reflectors of both stages, both factors and a square more; what is written."""
    m, n, k, size = shape.most, shape.least, shape.components, sizes()
    read = m * n * (2 if (source.order == "F") != (shape.rows > shape.columns) else 1)
    width = min(size.band_width, n)
    kept = m * n + 4 * n * width + (n * n + 2 * n * width if 3 * m >= 5 * n else 0)
    band = kept + (4 * m + 6 * n) * width
    if options.values_only:
        return DOUBLE * (max(read, band) + again * m * n)
    kept += n * n
    slabs = threads * (m + n) * (size.slab_columns + width)
    divided = kept + 3 * n * n + slabs
    copies = 0 if m == n == k and shape.rows <= shape.columns else (m + n) * k
    blocks = n * n * size.sweeps_in_block // (2 * width) + n * size.sweeps_in_block
    turned = kept + 2 * n * n + copies + blocks + slabs
    written = (m + n) * k + shape.rows * k * options.scaled
    return DOUBLE * (max(read, band + n * width, divided, turned, written) + again * m * n)


def _local(shape: Shape, source: Region, options: Svd, again: bool) -> int:
    """A as it is turned, or A, both factors and what gesdd keeps; then the factors as they are written."""
    m, n = shape.most, shape.least
    read = m * n * (2 if source.order == "F" else 1)
    scaled = shape.rows * shape.components * options.scaled
    factors = 0 if options.values_only else m * n + n * n
    squares = 0 if options.values_only else 4 if 6 * m + 6 >= 11 * n else 3  # as gesdd asks for
    if shape.number > DOUBLE and squares:
        squares = 5  # with the reals beside them
    most = max(read, m * n + factors + squares * n * n, factors + scaled)
    return shape.number * (most + again * m * n)


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
