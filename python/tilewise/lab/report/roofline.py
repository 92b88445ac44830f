"""Rooflines: arithmetic rate over operational intensity, under what memory, caches and the processor allow.

intensity = operations / the bytes that a job moves through memory, as its room counts them
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

from tilewise.base.units import bytes_text
from tilewise.lab.report.curves import MOST, Axis, Curve, curves
from tilewise.lab.report.style import INK, MUTED, Plot, house
from tilewise.lab.report.table import significant
from tilewise.lab.study import plots as study
from tilewise.lab.study.plots import Bound
from tilewise.launch.record import Record
from tilewise.operations import show_of

_SLATE = 5
_CLOSE = 1.5  # times as steep: the words of slopes that are nearer run into each other
_POINT, _ROOF = 7.5, 7.0  # the size of words beside them


@dataclasses.dataclass(frozen=True)
class PointWork:
    """One job: operations for each byte, operations a second, and the roofs where the record knows them.

    `copy` is the rate of copying `copied` bytes, `peak` what units can do with numbers of type `dtype`.
    """

    name: str
    words: str
    intensity: float
    rate: float
    dtype: str
    peak: float | None
    copy: float | None
    copied: float = 0.0


def work_of(record: Record) -> PointWork | None:
    """Arithmetic of a record's job; None where there is none, or where sizes are not known.

    Its peak is that of all ranks together.
    """
    rate, variant = record.rates.flops_per_second, record.variant
    traffic = show_of(record.command, record.variant.each).traffic(record)
    if not record.flops or not rate or traffic.bytes <= 0:
        return None
    shape = "×".join(map(str, record.outputs[0].shape)) if record.outputs else ""
    name = f"{record.command} {variant.algorithm or variant.decomposition or ''}".strip()
    words = f"{name}, {shape}, {variant.ranks} ranks × {variant.threads} threads"
    intensity = record.flops / traffic.bytes
    dtype = record.inputs[0].dtype if record.inputs else ""
    return PointWork(
        name, words, intensity, rate, dtype, record.peak_flops, traffic.copy_rate, traffic.copied
    )


def roofline(key: str, records: Iterable[Record]) -> Plot | None:
    """The arithmetic of `records` under the highest roofs that any of them knows; None where none does."""
    works = [work for record in records if (work := work_of(record)) is not None]
    peaks: dict[str, float] = {}
    for work in works:
        if work.peak:
            peaks[work.dtype] = max(work.peak, peaks.get(work.dtype, 0.0))
    # What was copied by a small job may have lain in a cache: the largest speaks for memory.
    largest = max((work.copied for work in works if work.copy), default=0.0)
    copies = [work.copy for work in works if work.copy and work.copied == largest]
    if not works or not (peaks or copies):
        return None
    series = []
    for name in dict.fromkeys(work.name for work in works):
        points = []
        for work in works:
            if work.name == name:
                rate = work.rate / 1e9
                words = f"{work.words}; {significant(rate)} GFLOP/s; {significant(work.intensity)} a byte"
                points.append((work.intensity, rate, rate, rate, words))
        series.append(Curve(name, points, line=False))
    roofs = []
    if copies:
        roofs.append(Bound(label=f"memory (copying {bytes_text(int(largest))})", slope=max(copies) / 1e9))
    for dtype, peak in peaks.items():
        roofs.append(Bound(label=f"arithmetic, {dtype}", height=peak / 1e9))
    measured = [f"for {name}" for name, there in (("copying", copies), ("arithmetic", peaks)) if there]
    caption = (
        "Operations per second while computing, against operations per byte that must move through memory. "
        f"{'The roofs are' if len(measured) > 1 else 'The roof is'} what was measured here "
        f"{' and '.join(measured)}{'' if copies else '; no job here measured memory'}."
    )
    return _under(key, "Roofline", caption, series, roofs, Axis("operations per byte"), Axis("GFLOP/s"))


def declared(mine: Sequence[study.FigurePlot], names: Sequence[str]) -> Plot:
    """A study's own roofline: its points with their names beside them, under roofs of the first result."""
    first = mine[0]
    axis = first.table.row_names[0].replace("_", " ")
    series: list[Curve] = []
    tags: list[tuple[float, float, str, int]] = []
    for dash, (plot, name) in enumerate(zip(mine, names, strict=True)):
        for one in plot.series:
            label = " · ".join(filter(None, (one.label, name)))
            points = []
            for x, y, low, high, called in zip(one.x, one.y, one.low, one.high, one.names, strict=True):
                words = f"{label}, {axis} {called}: {significant(y)} {plot.unit}; x {significant(x)}"
                points.append((x, y, y if low is None else low, y if high is None else high, words))
                tags.append((x, y, str(called), len(series)))
            series.append(Curve(label, points, dash=dash, line=False))
    told = [f"The number at each point is its {axis}; lines are roofs, measured in the same study"]
    told += [f"{note[:1].upper()}{note[1:]}" for note in first.notes]
    across, up = Axis(first.x_title), Axis(f"{first.y_title} ({first.unit})" if first.unit else first.y_title)
    return _under(
        f"plot-{first.name}", first.title, ". ".join(told) + ".", series, first.roofs, across, up, tags
    )


def _under(
    key: str,
    title: str,
    caption: str,
    series: Sequence[Curve],
    roofs: Sequence[Bound],
    across: Axis,
    up: Axis,
    tags: Sequence[tuple[float, float, str, int]] = (),
) -> Plot:
    """Points under their roofs; words stand beside both, as many lines of one colour need no legend."""
    xs = [point[0] for curve in series for point in curve.points]
    lines = _lines(roofs, min(xs, default=1.0), max(xs, default=1.0))
    shown = [*series[: max(1, MOST - len(lines))]]
    for roof, ends in lines:
        points = [(x, y, y, y, "") for x, y in ends]
        # A name that begins so stands in no legend.
        shown.append(Curve(f"_{roof.label}", points, _SLATE, dash=0 if roof.height else 1, marker=False))
    plot = curves(key, title, caption, shown, across, up)
    (axes,) = plot.figure.axes
    with house():
        for x, y, word, place in tags:  # of neighbouring curves above and below their points in turn
            shift = (4, 2) if place % 2 else (4, -8)
            axes.annotate(word, (x, y), shift, textcoords="offset points", fontsize=_POINT, color=INK[0])
        for number, (roof, ends) in enumerate(lines):
            unit = "GFLOP/s" if roof.height else "GB/s"
            said = f"{roof.label}: {significant(roof.height or roof.slope or 0.0)} {unit}"
            # Along its line: whatever stands level beside a rising line runs into the next one.
            rising = math.degrees(math.atan(roof.slope or 0.0))
            words: dict[str, Any] = {"fontsize": _ROOF, "color": MUTED[0], "in_layout": False}
            turned: dict[str, Any] = {"rotation_mode": "anchor", "transform_rotates_text": True}
            x, y = ends[0]
            side = "top" if _crowded(roof, [each for each, _ in lines[:number]]) else "bottom"
            axes.text(x, y, f"  {said}", rotation=rising, va=side, ha="left", **words, **turned)
    return plot


def _crowded(roof: Bound, above: Sequence[Bound]) -> bool:
    """Tell whether the words of a slope would run into those of one that lies close above it."""
    return any(each.slope and roof.slope and 1 <= each.slope / roof.slope < _CLOSE for each in above)


def _lines(roofs: Sequence[Bound], low: float, high: float) -> list[tuple[Bound, list[tuple[float, float]]]]:
    """Where each roof is drawn: a slope up to the highest height, a height from the steepest slope on."""
    heights = [roof.height for roof in roofs if roof.height]
    slopes = [roof.slope for roof in roofs if roof.slope]
    top, steepest = max(heights, default=None), max(slopes, default=None)
    ridges = [top / slope for slope in slopes] if top else []
    left, right = min([low, *ridges]) / 8, max([high, *ridges]) * 2  # room for the words of the slopes
    made = []
    for roof in roofs:
        if roof.slope:
            end = top / roof.slope if top else right
            made.append((roof, [(left, roof.slope * left), (end, roof.slope * end)]))
        elif roof.height:
            begin = roof.height / steepest if steepest else left
            made.append((roof, [(begin, roof.height), (right, roof.height)]))
    return made
