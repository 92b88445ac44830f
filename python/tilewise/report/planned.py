"""Shows a plan: what would be done, why, and what memory it needs."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from tilewise.files.region import Region
from tilewise.plan.plan import Plan
from tilewise.units import bytes_text, plural, shape_text


def planned(plan: Plan, target: str) -> Table:
    """The table of `plan`, whose result would go to `target`."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for label, text in _rows(plan, target):
        # Text, because a path may look like rich's markup.
        table.add_row(label, Text(text, "yellow" if label == "warning" else ""))
    return table


def _rows(plan: Plan, target: str) -> list[tuple[str, str]]:
    variant = plan.job.variant
    rows = [("command", plan.job.command)]
    rows += [("input", _input(region)) for region in plan.job.inputs]
    rows.append(("result", f"{target}: {shape_text(*plan.shape)} {plan.dtype}"))
    rows.append(("ranks", f"{plural(variant.ranks, 'rank')} × {plural(variant.threads, 'thread')}"))
    layers = f", {variant.copies} copies" if variant.copies > 1 else ""
    if plan.job.command == "generate":
        rows += [("grid", shape_text(*variant.grid)), ("io", variant.write)]
    elif plan.job.command == "convert":
        rows += [("grid", shape_text(*variant.grid)), ("io", f"{variant.read} in, {variant.write} out")]
    else:
        rows += [
            ("algorithm", f"{variant.algorithm} on a {shape_text(*variant.grid)} grid{layers}"),
            ("exchange", variant.exchange),
            ("io", f"{variant.read} in, {variant.write} out"),
            ("proof", plan.job.verify),
        ]
    memory = f"{bytes_text(plan.need.rank)} on the largest rank, {bytes_text(plan.need.node)} on a node"
    rows.append(("memory", f"{memory}, of {bytes_text(plan.facts.memory_available)} available"))
    rows.append(("chosen by", plan.chosen_by + (f" (given: {', '.join(plan.fixed)})" if plan.fixed else "")))
    rows += [("because", reason) for reason in plan.reasons]
    rows += [("warning", warning) for warning in plan.warnings]
    return rows


def _input(region: Region) -> str:
    text = f"{region.name}: {shape_text(region.rows, region.columns)} {region.dtype}"
    if region.encoding == "text":
        text += " as text"
    elif not region.generator:
        text += f", {region.order} order, {region.byte_order} endian"
    return text + (", transposed" if region.transposed else "")
