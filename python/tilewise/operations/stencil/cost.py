"""The cost of sweeps: memory; points that are computed or memory that they pass through; halos that travel.

With `depth` d a pass over memory sweeps d times, and a halo of d · radius cells travels before it: a d-th of
the messages and of the traffic, for cells at the rims that are computed twice. Of a field larger than memory
each pass goes from file to file, tile by tile, and each tile reads its rims as well.

Messages and bytes are counted as the worker counts them: those that ranks receive. A part's margin goes
`reach` cells beyond it on every side, over as many parts as that takes, and around where the boundary is
periodic. What lies in one part in both directions is one message; what is the part's own is none.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Source
from tilewise.files.target import Target
from tilewise.launch import job
from tilewise.launch.constants import constants
from tilewise.launch.job import Variant
from tilewise.operations.stencil.cut import Cut
from tilewise.operations.stencil.weights import Weights
from tilewise.planning import need, proof
from tilewise.planning.cost import Cost, Longest, Part, Take, Traffic, Use, at, reading, verifying, writing
from tilewise.planning.grid import cuts, part
from tilewise.planning.need import Files, Need
from tilewise.planning.plan import Plan
from tilewise.planning.proof import patches

_COPIED = 256 << 20  # bytes that a rank copies at most


def cost_of(plan: Plan, target: Target | None) -> Cost:
    """The cost of the sweeps that `plan` is of."""
    sweeps, variant, source = plan.job.stencil, plan.job.variant, plan.job.inputs[0]
    assert sweeps is not None
    use = Use(variant, plan.spread)
    item = ITEMSIZE[plan.job.dtype]
    extents = source.rows // sweeps.planes, source.columns
    passes = -(-sweeps.steps // max(1, variant.depth)) if sweeps.steps else 0
    rows = part(extents[0], variant.grid[0], variant.remainder)
    whole = variant.grid[1] == 1
    inputs = reading(source, variant.read, use, rows=rows, whole_rows=whole, fresh=False)
    output = writing(plan, target, use, rows=rows, whole_rows=whole)
    tiled = variant.tile != (0, 0)
    if not tiled:  # both fields are touched before anything is read
        inputs += use.new_pages(2.0 * source.rows / sweeps.planes * source.columns * item)
    halo = Traffic()
    if not tiled and variant.exchange not in ("none", "shared"):
        halo = traffic(
            extents,
            variant.grid,
            variant.depth * sweeps.radius,
            periodic=sweeps.boundary == "periodic",
            corners=variant.depth > 1 or has_corners(sweeps),
            remainder=variant.remainder,
        )
        if variant.halo == "elementwise":
            halo = halo._replace(messages=halo.numbers, most_messages=halo.most)
    times = passes * sweeps.planes
    moving = use.sent(times * halo.most * item, times * halo.most_messages)
    more = passes if tiled else 1
    overlapped = variant.exchange == "overlap"
    fixed = sweeps.until_change == 0 and not sweeps.snapshot_every
    return Cost(
        phases={
            "input": inputs * more,
            "compute": _compute(plan, sweeps, use, times),
            "exchange": [] if overlapped else moving,
            "output": output * (more + len(plan.snapshots)),
            "verify": _verify(plan, target, sweeps, use),
        },
        behind={"exchange": moving} if overlapped else {},
        apart=[] if tiled else [_copies(source.rows / sweeps.planes * source.columns * item, use)],
        ranks=use.ranks_and_nodes,
        sure=sweeps.until_change == 0,
        messages=times * halo.messages if fixed else None,
        exchanged=times * halo.numbers * item if fixed else None,
        flops=float(source.rows) * source.columns * sweeps.steps * told_operations(sweeps) if fixed else None,
    )


def _copies(field: float, use: Use) -> Take:
    """Copies of one field to the other, in two ways, for the roofline."""
    return use.shared_out("copy", 2 * 2 * min(field, float(use.ranks * _COPIED)))


def has_corners(sweeps: job.StencilJob) -> bool:
    """True if a weight off the cross is not 0."""
    return not Weights("", sweeps.radius, tuple(sweeps.weights)).is_star


def told_operations(sweeps: job.StencilJob) -> float:
    """Operations on a point as records count them: a multiplication and an addition for each weight."""
    side = 2 * sweeps.radius + 1
    return 2.0 * (side * side if has_corners(sweeps) else 2 * side - 1) - 1


def operations(sweeps: job.StencilJob) -> float:
    """Operations of the kernel, which first adds up what has the same weight (`Sweeper::flops_per_point`)."""
    r, side = sweeps.radius, 2 * sweeps.radius + 1
    rows = [sweeps.weights[at * side : (at + 1) * side] for at in range(side)]
    if rows != rows[::-1] or any(row != row[::-1] for row in rows):
        return told_operations(sweeps)
    if has_corners(sweeps):
        return 2 * (r + 1) ** 2 - 1 + r + r * (r + 1)
    return 6 * r + 1


def _compute(plan: Plan, sweeps: job.StencilJob, use: Use, times: int) -> list[Part]:
    """Points of the rank with most, with the rims that deep halos compute twice; or two fields a pass."""
    variant, source = plan.job.variant, plan.job.inputs[0]
    item, cores = ITEMSIZE[plan.job.dtype], use.on_node * use.threads
    rows, columns = (
        part(extent, count, variant.remainder)
        for extent, count in zip((source.rows // sweeps.planes, source.columns), variant.grid, strict=True)
    )
    rim = (variant.depth - 1) * sweeps.radius
    high = rows + (rim if variant.grid[0] > 1 else 0)
    wide = columns + (rim if variant.grid[1] > 1 else 0)
    points = float(high) * wide * sweeps.steps * sweeps.planes
    term = "plain" if variant.kernel == "plain" else "sweep"
    per_second = 1.0 if plan.job.dtype == "float64" else 0.5  # float32: twice as many in a register
    work = Take(term, points * operations(sweeps) * per_second / use.threads, cores)
    moved = Take("copy", 2.0 * rows * columns * item * times / use.threads, cores)
    return [Longest((work, moved))]


def _verify(plan: Plan, target: Target | None, sweeps: job.StencilJob, use: Use) -> list[Part]:
    """Patches that the plain kernel sweeps again, or everything on rank 0; both files are read for it."""
    verify, source = plan.job.verify, plan.job.inputs[0]
    planes = source.planes if isinstance(source, Source) else 1
    points = float(source.rows) * source.columns * sweeps.steps
    if verify == "serial":
        return [
            Take("plain", points * told_operations(sweeps)),
            *verifying([source], source.bytes, target, use),
        ]
    if verify != "fast":
        return []
    rule = proof.patches()
    patch, most = rule.patch_side, sweeps.steps * sweeps.radius
    always = sum(
        min(points / planes, ((patch + g * most) ** 3 - patch**3) / (3 * g * sweeps.radius)) for g in (1, 2)
    )
    again = points if points <= rule.points_swept_again else max(rule.share * points, always * planes)
    again = again if math.isfinite(again) else points
    return [
        use.by_ranks("plain", again * told_operations(sweeps)),
        use.by_ranks(at("read", source.path), 2.0 * min(source.bytes, again / max(1, sweeps.steps) * 8)),
    ]


STRIP = 8 << 10  # bytes of a row in a strip, at most
LINE, PAGE = 64, 4096
REQUEST = 256  # bytes of a message under way: its handle, and what MPI keeps for it
_AT_ONCE = ("nonblocking", "overlap")  # exchanges that have all messages under way together


class StencilSizes(msgspec.Struct, frozen=True):
    """The worker's."""

    proof_band_bytes: int  # of a file that is read again


def stencil_need(
    cut: Cut,
    dtype: str,
    variant: Variant,
    verify: str,
    steps: int,
    files: Files,
    on_node: int | None = None,
    again: int = 0,
    planes: int = 1,
    at_once: int = 1,
) -> Need:
    """Memory of sweeps: two fields, halos as sent and as received, what the kernel keeps, and the I/O.

    Planes are swept one after the other. `again`: bytes of a number of the input where it is kept because
    sweeps are repeated, else 0. `at_once`: sweeps that the kernel does together with a tile. A proof sweeps
    again with the plain kernel: `fast` over patches and what they depend on, or a whole plane on one rank
    where that is little work; `serial` over all, on rank 0.
    """
    rule = patches()
    item = ITEMSIZE[dtype]
    if variant.tile == (0, 0):
        fields, beside = field_bytes(cut, dtype, variant), _beside_block(cut, dtype, variant, files, again)
    else:
        fields, beside = _tile_bytes(cut, dtype, variant, files, at_once)
    whole = cut.rows * cut.columns * max(1, steps) <= rule.points_swept_again
    patch = [
        extent if whole else min(extent, rule.patch_side + 2 * steps * cut.radius)
        for extent in (cut.rows, cut.columns)
    ]
    bands = 2 * constants("stencil", StencilSizes).proof_band_bytes
    proof = 2 * patch[0] * patch[1] * item + bands if verify == "fast" else 0
    lines = files.lines(variant) + (0 if verify == "off" else files.read_again())
    buffers = beside + lines
    serial = 4 * cut.rows * cut.columns * item if verify == "serial" else 0
    rank = fields + buffers + need.FIXED + need.staging(variant)
    most = variant.ranks if on_node is None else on_node
    proving = min(most, planes) if whole else most
    return Need(
        rank=rank + proof + serial,
        node=most * rank + proving * proof + serial,
        shared=variant.ranks * fields if variant.exchange == "shared" else 0,
        blocks=fields,
        buffers=buffers,
    )


def _turned(files: Files) -> bool:
    """True if blocks change their order of storage on the way out."""
    return files.source.order != files.order


def field_bytes(cut: Cut, dtype: str, variant: Variant) -> int:
    """Bytes of the two fields that the rank with most sweeps between: its block, a margin, and padding.

    [ margin ·············· ]   depth · radius cells on every side, where there are neighbours or the
    [ · block of numbers  · ]   other side is one; rows, or columns of a matrix that is stored by columns,
    [ ····················· ]   end at cache lines, never a power of two apart
    """
    item, margin = ITEMSIZE[dtype], variant.depth * cut.radius
    rows, columns = _block(cut, variant)
    pitch = columns + 2 * margin + 6 * (LINE // item)
    return 2 * ((rows + 2 * margin) * pitch * item + PAGE)


def _block(cut: Cut, variant: Variant) -> tuple[int, int]:
    """Rows and columns of the largest block as it lies in memory, where stored columns are rows."""
    rows = part(cut.rows, variant.grid[0], variant.remainder)
    columns = part(cut.columns, variant.grid[1], variant.remainder)
    return (rows, columns) if cut.by_rows else (columns, rows)


def _beside_block(cut: Cut, dtype: str, variant: Variant, files: Files, again: int) -> int:
    """Bytes beside the fields of a block: halos, what the kernel keeps, the input again, the block turned."""
    rows, columns = _block(cut, variant)
    kept = rows * columns * (again + _turned(files) * ITEMSIZE[dtype])
    scratch = _scratch((rows, columns), cut.radius, variant.depth, ITEMSIZE[dtype], variant)
    return _halos(cut, dtype, variant) + scratch + kept


def _tile_bytes(cut: Cut, dtype: str, variant: Variant, files: Files, at_once: int) -> tuple[int, int]:
    """Bytes of the two fields around the largest tile, and beside them.

    The latter: rows that the next tile needs too, what the kernel keeps, the tile turned.
    """
    item, reach = ITEMSIZE[dtype], variant.depth * cut.radius
    extents, tile = (pair if cut.by_rows else pair[::-1] for pair in ((cut.rows, cut.columns), variant.tile))
    rows, columns = (
        size + 2 * reach if cut.periodic else min(size + 2 * reach, extent)
        for size, extent in zip(tile, extents, strict=True)
    )
    fields = 2 * (rows * (columns + 6 * (LINE // item)) * item + PAGE)
    kept = min(2 * reach, rows) * columns * item if tile[0] < extents[0] else 0
    turned = tile[0] * tile[1] * item if _turned(files) else 0
    scratch = _scratch((rows, columns), cut.radius, min(variant.depth, at_once), item, variant)
    return fields, kept + turned + scratch


def _halos(cut: Cut, dtype: str, variant: Variant) -> int:
    """Bytes of halos beside the fields, as sent and as received."""
    rows, columns = _block(cut, variant)
    margin = variant.depth * cut.radius
    cells = 2 * 2 * margin * (rows + columns + 2 * margin)
    if variant.halo == "packed" and variant.exchange not in ("none", "shared"):
        return cells * ITEMSIZE[dtype]
    return cells * REQUEST if variant.halo == "elementwise" and variant.exchange in _AT_ONCE else 0


def _scratch(block: tuple[int, int], radius: int, depth: int, item: int, variant: Variant) -> int:
    """Bytes that the kernel keeps for `depth` sweeps of a block, as it lies in memory.

    Fast: a few rows of a strip of columns for each sweep, a thread. Plain: two fields for each of `threads`
    bands of rows, with the rows around a band that its first sweep computes; none for one sweep a pass.
    """
    (rows, columns), reach = block, depth * radius
    if variant.kernel != "plain":
        row = min(columns + 2 * reach, max(STRIP // item, 4 * reach)) * item + 8 * LINE
        return variant.threads * (1 + 2 * max(8, 2 * radius + 4) + 4 * reach) * row
    if depth == 1:
        return 0
    around = 2 * (depth - 1) * radius
    bands = max(1, min(variant.threads, rows))
    band = min(-(-rows // bands) + around, rows + 2 * reach)
    return bands * 2 * (band * (columns + around) * item + PAGE)


class Stretch(NamedTuple):
    """Cells of a margin along one direction that are those of one part, which may be the `own`."""

    cells: int
    own: bool


def traffic(
    extents: tuple[int, int],
    grid: tuple[int, int],
    reach: int,
    *,
    periodic: bool,
    corners: bool,
    remainder: str = "spread",
) -> Traffic:
    """Traffic of one exchange of margins of `reach` cells; takes as long as the grid has rows and columns."""
    down, across = (
        [
            (end - begin, margin(parts, place, reach, extent, periodic))
            for place, (begin, end) in enumerate(parts)
        ]
        for extent, parts in (
            (extent, cuts(extent, count, remainder)) for extent, count in zip(extents, grid, strict=True)
        )
    )
    messages = cells = 0
    for one, other in ((down, across), (across, down)):
        foreign = [stretch.cells for _, margins in one for stretch in margins if not stretch.own]
        messages += len(foreign) * len(other)
        cells += sum(foreign) * sum(size for size, _ in other)
    if corners:
        of_rows, of_columns = ([s for _, margins in each for s in margins] for each in (down, across))
        own_rows, own_columns = ([s for s in each if s.own] for each in (of_rows, of_columns))
        messages += len(of_rows) * len(of_columns) - len(own_rows) * len(own_columns)
        cells += _cells(of_rows) * _cells(of_columns) - _cells(own_rows) * _cells(own_columns)
    # Some rank has the most neighbours in both directions, or nearly so.
    (rows, above), (columns, beside) = (
        (max((size for size, _ in each), default=0), max((_foreign(m) for _, m in each), default=(0, 0)))
        for each in (down, across)
    )
    meet = (above[1] * beside[1], above[0] * beside[0]) if corners else (0, 0)
    return Traffic(
        messages,
        cells,
        above[1] + beside[1] + meet[0],
        above[0] * columns + beside[0] * rows + meet[1],
    )


def margin(
    parts: list[tuple[int, int]], place: int, reach: int, extent: int, periodic: bool
) -> list[Stretch]:
    """Cells that lie `reach` before and behind part `place`, part by part."""
    begin, end = parts[place]
    found: list[Stretch] = []
    for first, last in ((begin - reach, begin), (end, end + reach)):
        at = first
        while at < last:
            if not 0 <= at < extent and not periodic:
                at = 0 if at < 0 < last else last
                continue
            inside = at % extent
            owner = next(i for i, (_, stop) in enumerate(parts) if inside < stop)
            length = min(last - at, parts[owner][1] - inside)
            found.append(Stretch(length, owner == place))
            at += length
    return found


def _foreign(stretches: list[Stretch]) -> tuple[int, int]:
    """Cells of others, and in how many stretches."""
    foreign = [stretch for stretch in stretches if not stretch.own]
    return _cells(foreign), len(foreign)


def _cells(stretches: list[Stretch]) -> int:
    return sum(stretch.cells for stretch in stretches)
