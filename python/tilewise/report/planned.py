"""Shows a plan: what would be done, why, and what memory it needs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from tilewise.files.region import Region, Source
from tilewise.launch.job import Stencil, Svd
from tilewise.plan.plan import Plan
from tilewise.units import bytes_text, plural, shape_text


def planned(plan: Plan, target: str, disks: Sequence[str] = ()) -> Table:
    """The table of `plan`, whose result would go to `target`; `disks` say what it needs of which."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for label, text in _rows(plan, target, disks):
        # Text, because a path may look like rich's markup.
        table.add_row(label, Text(text, "yellow" if label == "warning" else ""))
    return table


def _rows(plan: Plan, target: str, disks: Sequence[str]) -> list[tuple[str, str]]:
    variant = plan.job.variant
    rows = [("command", plan.job.command)]
    rows += [("input", _input(region)) for region in plan.job.inputs]
    shape = (plan.shape[0] // plan.planes, plan.shape[1])
    colours = f" × {plan.planes} planes" if plan.planes > 1 else ""
    if plan.pieces:
        files = [f"{piece.file} {'×'.join(map(str, piece.shape))}" for piece in plan.pieces]
        rows.append(("result", f"{target}/: {', '.join(files)}, {plan.dtype}"))
    else:
        rows.append(("result", f"{target}: {shape_text(*shape)}{colours} {plan.dtype}"))
    rows.append(("ranks", f"{plural(variant.ranks, 'rank')} × {plural(variant.threads, 'thread')}"))
    layers = f", {variant.copies} copies" if variant.copies > 1 else ""
    if plan.job.command == "generate":
        rows += [("grid", shape_text(*variant.grid)), ("io", variant.write)]
    elif plan.job.command == "convert":
        rows += [("grid", shape_text(*variant.grid)), ("io", f"{variant.read} in, {variant.write} out")]
    elif plan.job.stencil is not None:
        rows += _stencil(plan, plan.job.stencil)
    elif plan.job.svd is not None:
        rows += _svd(plan, plan.job.svd)
    else:
        rows += [
            ("algorithm", f"{variant.algorithm} on a {shape_text(*variant.grid)} grid{layers}"),
            ("exchange", variant.exchange),
            ("io", f"{variant.read} in, {variant.write} out"),
            ("verify", plan.job.verify),
        ]
        rows += [("overflow", "wraps modulo 2^64")] if plan.job.overflow == "wrap" else []
    memory = f"{bytes_text(plan.need.rank)} on the largest rank, {bytes_text(plan.need.node)} on a node"
    if plan.fallback is not None:
        when = "jacobi takes over" if plan.job.variant.algorithm == "local" else "eigenvectors cost accuracy"
        memory += f" ({bytes_text(plan.fallback.need.node)} where {when})"
    rows.append(("memory", f"{memory}, of {bytes_text(plan.facts.memory_available)} available"))
    rows += [("disk", each) for each in disks]
    rows.append(("chosen by", plan.chosen_by + (f" (given: {', '.join(plan.fixed)})" if plan.fixed else "")))
    rows += [("because", reason) for reason in plan.reasons]
    rows += [("warning", warning) for warning in plan.warnings]
    return rows


def _stencil(plan: Plan, stencil: Stencil) -> list[tuple[str, str]]:
    variant = plan.job.variant
    side = 2 * stencil.radius + 1
    taps = sum(weight != 0 for weight in stencil.weights)
    what = f"{stencil.steps} with {taps} weights of {shape_text(side, side)}, boundary {stencil.boundary}"
    if stencil.until_change:
        what += f", until numbers change by less than {stencil.until_change:g}"
    cut = f"{variant.decomposition} on a {shape_text(*variant.grid)} grid, depth {variant.depth}"
    rows = [("sweeps", f"{what}; computed in {plan.job.dtype}")]
    if plan.snapshots:
        rows.append(("snapshots", f"{len(plan.snapshots)}, every {stencil.snapshot_every} sweeps"))
    return [
        *rows,
        ("cut", cut),
        ("exchange", variant.exchange if variant.ranks == 1 else f"{variant.exchange}, halos {variant.halo}"),
        ("io", f"{variant.read} in, {variant.write} out"),
        ("verify", plan.job.verify),
    ]


def _svd(plan: Plan, svd: Svd) -> list[tuple[str, str]]:
    variant = plan.job.variant
    rows = [("algorithm", variant.algorithm)]
    if variant.algorithm == "jacobi":
        inner = f"{variant.inner}, start {variant.start}, {svd.max_sweeps} sweeps at most"
        rows.append(("ring", f"{variant.blocks} blocks of columns; pairs by {inner}"))
        rows.append(("exchange", variant.exchange))
    elif variant.algorithm == "randomized":
        wide = f"{'at most ' if svd.energy else ''}{svd.components} + {svd.oversample}"
        how = plural(svd.power, "iteration") if svd.power >= 0 else "until each component is exact"
        sketch = f"blocks of {wide} vectors, a space of at most {svd.basis}, {how}"
        rows.append(("sketch", f"{sketch}, seed {svd.seed}; {bytes_text(svd.panel_bytes)} of A at a time"))
    return [*rows, ("io", f"{variant.read} in"), ("verify", plan.job.verify)]


def _input(region: Region) -> str:
    planes = region.planes if isinstance(region, Source) else 1
    text = f"{region.name}: {shape_text(region.rows // planes, region.columns)}"
    text += f" × {planes} planes {region.dtype}" if planes > 1 else f" {region.dtype}"
    if region.encoding == "text":
        text += " as text"
    elif not region.generator:
        text += f", {region.order} order, {region.byte_order} endian"
    return text + (", transposed" if region.transposed else "")
