"""What sweeps cost: points that are computed or memory that they pass through, and halos that travel.

With `depth` d a pass over memory sweeps d times, and a halo of d · radius cells travels before it: a d-th of
the messages and of the traffic, for cells at the rims that are computed twice. Of a field larger than memory
each pass goes from file to file, tile by tile, and each tile reads its rims as well.
"""

from __future__ import annotations

import math

from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Source
from tilewise.files.target import Target
from tilewise.launch import job
from tilewise.operations.stencil.traffic import Traffic, traffic
from tilewise.operations.stencil.weights import Weights
from tilewise.planning import proof
from tilewise.planning.cost import Cost, Longest, Part, Take
from tilewise.planning.file_cost import Use, at, reading, verifying, writing
from tilewise.planning.grid import part
from tilewise.planning.plan import Plan

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
    halo = Traffic(0, 0, 0, 0)
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
            halo = halo._replace(messages=halo.cells, most_messages=halo.most_cells)
    times = passes * sweeps.planes
    moving = use.sent(times * halo.most_cells * item, times * halo.most_messages)
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
        exchanged=times * halo.cells * item if fixed else None,
        flops=float(source.rows) * source.columns * sweeps.steps * told_operations(sweeps) if fixed else None,
    )


def _copies(field: float, use: Use) -> Take:
    """Copies of one field to the other, in two ways, for the roofline."""
    return use.shared_out("copy", 2 * 2 * min(field, float(use.ranks * _COPIED)))


def has_corners(sweeps: job.Stencil) -> bool:
    """Whether a weight off the cross is not 0."""
    return not Weights("", sweeps.radius, tuple(sweeps.weights)).is_star


def told_operations(sweeps: job.Stencil) -> float:
    """Operations on a point as records count them: a multiplication and an addition for each weight."""
    side = 2 * sweeps.radius + 1
    return 2.0 * (side * side if has_corners(sweeps) else 2 * side - 1) - 1


def operations(sweeps: job.Stencil) -> float:
    """Those of the kernel, which first adds up what has the same weight (`Sweeper::flops_per_point`)."""
    r, side = sweeps.radius, 2 * sweeps.radius + 1
    rows = [sweeps.weights[at * side : (at + 1) * side] for at in range(side)]
    if rows != rows[::-1] or any(row != row[::-1] for row in rows):
        return told_operations(sweeps)
    if has_corners(sweeps):
        return 2 * (r + 1) ** 2 - 1 + r + r * (r + 1)
    return 6 * r + 1


def _compute(plan: Plan, sweeps: job.Stencil, use: Use, times: int) -> list[Part]:
    """Of the rank with most: points, with the rims that deep halos compute twice; or two fields a pass."""
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


def _verify(plan: Plan, target: Target | None, sweeps: job.Stencil, use: Use) -> list[Part]:
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
