"""The memory that decompositions need: matrices, factors, panels, what LAPACK keeps, and the proof."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tilewise.files.region import Region
from tilewise.launch.job import Variant
from tilewise.operations.svd.jacobi import jacobi_stages, jacobi_window
from tilewise.operations.svd.options import Svd
from tilewise.operations.svd.panels import basis_of, panel_bytes, proof_need, sketch_need
from tilewise.operations.svd.shape import Shape, panels_of_input
from tilewise.operations.svd.sizes import sizes
from tilewise.operations.svd.tall import step_bytes, tall_stages
from tilewise.planning import need
from tilewise.planning.need import Need

DOUBLE = 8
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
    """What a full decomposition takes on one rank."""
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
