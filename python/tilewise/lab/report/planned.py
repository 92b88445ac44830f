"""Shows a plan: what would be done, why, and what memory it needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tilewise.base.units import bytes_text, plural, seconds_text, shape_text
from tilewise.engine.planned import Planned, PlannedVariant
from tilewise.files.region import Region, Source
from tilewise.lab.report.table import Cell, Table, number_columns, text_columns
from tilewise.lab.report.terminal import Screen
from tilewise.machine.terms import KINDS, Machine, what_of
from tilewise.operations import options_of, show_of
from tilewise.operations.prediction import predicted
from tilewise.planning.cost import Cost, Heaviest, Prediction, heaviest, told_apart
from tilewise.planning.plan import Plan
from tilewise.planning.where import counted

_ALIKE = 0.1  # of the time: what differs by less is about the same
_TELLING = 0.01  # seconds, below which nobody asks what takes them


def planned(
    plan: Plan, every: Planned, target: str, cost: Cost, machine: Machine, disks: Sequence[str] = ()
) -> Screen:
    """The lines of `plan`, whose result would go to `target`; `disks` say what it needs of which.

    Its `cost` is what is predicted on `machine`; `every` way is the chosen one and all others.
    """
    screen = Screen()
    foreseen = [("predicted", _seconds(predicted(plan, cost, machine), plan.choices.again))]
    if plan.each is None and (most := heaviest(cost, machine)) is not None and most.total >= _TELLING:
        foreseen.append(("most of it", _most(most)))
    if other := _next_best(every.variants, options_of(plan.job.command).weighs):
        foreseen.append(("next best", other))
    rows = _rows(plan, target, disks, [*foreseen, ("figures", _known(machine))])
    screen.pairs((label, text, label if label == "warning" else "") for label, text in rows)
    return screen


def ways(planned: Planned) -> Screen:
    """A table of every variant that the flags leave open, below an empty line."""
    screen = Screen()
    screen.line()
    screen.table(variants(planned))
    return screen


def variants(planned: Planned) -> Table:
    """Table of every variant that the flags leave open."""
    table = Table("variants", "every variant", text_columns("algorithm", "exchange", "io", "ranks", "grid"))
    table.columns += [*number_columns("predicted"), *number_columns("memory"), *text_columns("")]
    for each in planned.variants:
        variant = each.variant
        said = "chosen" if each.chosen else "" if each.fits else each.reason
        table.add(
            variant.algorithm,
            variant.exchange,
            variant.io,
            f"{variant.ranks} × {plural(variant.threads, 'thread')}",
            shape_text(*variant.grid) + (f" × {variant.copies}" if variant.copies > 1 else ""),
            f"{seconds_text(each.predicted_seconds['wall'])} s",
            bytes_text(each.memory_bytes),
            Cell(said, tone="good" if each.chosen else "warning"),
        )
    return table


def _rows(
    plan: Plan, target: str, disks: Sequence[str], foreseen: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    variant = plan.job.variant
    rows = [("command", plan.job.command)]
    rows += [("input", _input(region)) for region in plan.job.inputs]
    shape = (plan.shape[0] // plan.planes, plan.shape[1])
    colours = f" × {plan.planes} planes" if plan.planes > 1 else ""
    if plan.each is not None and target:
        rows.append(("result", f"{target}: {_stacked(plan)}, {plan.dtype}"))
    elif plan.pieces:
        files = [f"{piece.file} {'×'.join(map(str, piece.shape))}" for piece in plan.pieces]
        rows.append(("result", f"{target}/: {', '.join(files)}, {plan.dtype}"))
    elif target:
        rows.append(("result", f"{target}: {shape_text(*shape)}{colours} {plan.dtype}"))
    rows.append(("ranks", f"{plural(variant.ranks, 'rank')} × {plural(variant.threads, 'thread')}"))
    if plan.spread.hosts:
        rows.append(("where", counted(plan.spread.hosts)))
    rows += show_of(plan.job.command, plan.each).planned(plan)
    memory = f"{bytes_text(plan.need.rank)} on the largest rank, {bytes_text(plan.need.node)} on a node"
    if plan.fallback is not None:
        when = "eigenvectors cost accuracy" if variant.algorithm == "jacobi" else "jacobi takes over"
        memory += f" ({bytes_text(plan.fallback.need.node)} where {when})"
    there = "available" if plan.facts.memory_known else "counted on"
    rows.append(("memory", f"{memory}, of {bytes_text(plan.facts.memory_available)} {there}"))
    rows += [("disk", each) for each in disks]
    rows += foreseen
    rows.append(("chosen by", plan.chosen_by + (f" (given: {', '.join(plan.fixed)})" if plan.fixed else "")))
    rows += [("because", reason) for reason in plan.reasons]
    rows += [("warning", warning) for warning in plan.warnings]
    return rows


def _seconds(foreseen: Prediction, again: bool) -> str:
    """`2.1 s (1.7 to 2.6): input 0.1, compute 1.9; + 0.1 s …`, with the phases that take a hundredth."""
    phases = [
        f"{name} {seconds_text(seconds)}"
        for name, seconds in foreseen.phases.items()
        if seconds > 0.01 * foreseen.total
    ]
    span = f"{seconds_text(foreseen.low)} to {seconds_text(foreseen.high)}"
    start = f"{seconds_text(foreseen.wall - foreseen.total)} s to start{', repeat' * again} and end"
    of_it = f": {', '.join(phases)}" if phases else ""
    return f"{seconds_text(foreseen.total)} s ({span}){of_it}; + {start}"


def _most(most: Heaviest) -> str:
    """`products by the fast kernel; twice as fast, it would take 42 % less`."""
    return f"{what_of(most.term)}; twice as fast, it would take {most.gain / most.total:.0%} less"


def _next_best(variants: Sequence[PlannedVariant], weighed: Sequence[str]) -> str:
    """`summa on 2 ranks: 0.16 s, not 0.13 (with the start), 22% more: input takes 0.03 s, not 0.01`.

    Of another algorithm or number of ranks, or else what differs in less; empty where there is no other. Of a
    faster one, why it is not taken: flags that are not `weighed` a rule chooses. One rank has no partner to
    exchange with: an algorithm that only does this otherwise is no other.
    """
    chosen, *others = variants
    own = chosen.variant
    others = [e for e in others if e.fits and (e.variant.ranks > 1 or e.variant.exchange == "none")]
    apart = [e for e in others if (e.variant.algorithm, e.variant.ranks) != (own.algorithm, own.ranks)]
    if not others or not chosen.fits:
        return ""
    best = min(apart or others, key=lambda each: each.predicted_seconds["wall"])
    way = f"{best.variant.algorithm} on {plural(best.variant.ranks, 'rank')}"
    differs = "algorithm" if best.variant.algorithm != own.algorithm else "ranks"
    if not apart:
        differs = "io" if best.variant.io != own.io else "exchange"
        way = f"--{differs} {getattr(best.variant, differs)}"
    ours, theirs = chosen.predicted_seconds, best.predicted_seconds
    more = theirs["wall"] / ours["wall"] - 1
    said = f"{way}: {seconds_text(theirs['wall'])} s, not {seconds_text(ours['wall'])} (with the start)"
    if abs(more) < _ALIKE:
        return f"{said}, about the same"
    change = f"{abs(more):.0%} {'more' if more > 0 else 'less'}"
    why = "predictions may be off by that" if differs in weighed else f"a rule chooses the {differs}"
    return f"{said}, {change}: {told_apart(theirs, ours)}{f'; not taken: {why}' if more < 0 else ''}"


def _known(machine: Machine) -> str:
    """`4 measured, 3 corrected by runs, 17 assumed`: of how many terms what is known, and since when."""
    sources = Counter(
        "corrected by runs" if term.runs else "assumed" if term.source == "assumed" else "measured or given"
        for term in map(machine.term, {**KINDS, **machine.terms})
    )
    said = ", ".join(f"{sources[source]} {source}" for source in sorted(sources, reverse=True))
    dates = sorted({term.date for term in machine.terms.values() if term.date})
    if dates:
        said += f"; {dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "")
    return said if len(sources) > 1 or "assumed" not in sources else "assumed; tilewise measure finds them"


def _stacked(plan: Plan) -> str:
    """The shapes of all slices together."""
    assert plan.each is not None
    if not plan.pieces:
        return "×".join(map(str, plan.each.shape(*plan.shape)))
    shapes = ((*plan.each.extents, *piece.shape) for piece in plan.pieces)
    names = (piece.file for piece in plan.pieces)
    return ", ".join(f"{name} {'×'.join(map(str, shape))}" for name, shape in zip(names, shapes, strict=True))


def _input(region: Region) -> str:
    planes = region.planes if isinstance(region, Source) else 1
    text = f"{region.name}: {shape_text(region.rows // planes, region.columns)}"
    text += f" × {planes} planes {region.dtype}" if planes > 1 else f" {region.dtype}"
    if isinstance(region, Source) and region.stack:
        many, one = "×".join(map(str, region.stack)), shape_text(region.rows, region.columns)
        text = f"{region.name}: {many} slices of {one} {region.dtype}"
    if region.encoding == "text":
        text += " as text"
    elif region.chunks is not None:
        text += f", in {plural(len(region.chunks.offsets), 'chunk')}"
    elif not region.generator:
        text += f", {region.order} order, {region.byte_order} endian"
    return text + (", transposed" if region.transposed else "")
