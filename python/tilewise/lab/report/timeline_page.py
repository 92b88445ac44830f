"""The timeline as part of a page: a still picture, and data from which a script draws one to move about in.

The data are integers, since a page of 100,000 spans is to stay small: times in `unit` seconds, each start as
what it lies behind the one before.

    {"unit": 1e-6, "seconds": 1.5, "kinds": [["input", "series-0"], …],
     "runs": [{"title", "names": ["read A", …], "ranks": [["rank 0", [start, length, name, kind, …]], …],
               "lines": [source, target, start, length, bytes, tag, …]}, …]}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from tilewise.base.errors import clean
from tilewise.lab.report.figures.inline import inline
from tilewise.lab.report.figures.style import PHASES, svg, themed
from tilewise.lab.report.figures.timeline import largest, timeline_plot
from tilewise.lab.report.numbers import time_text
from tilewise.lab.report.page import Drawing
from tilewise.lab.report.timeline import KINDS, Array, Rank, Timeline, merged

MOST_SPANS, MOST_LINES = 110_000, 20_000  # of all runs; more spans are merged, smaller messages left out
_LEAST_UNIT, _STEPS = 1e-7, 2e6


def timeline_drawing(timelines: Sequence[Timeline], title: str = "Timeline") -> Drawing:
    """Timelines above each other on one axis, each under its title; a still picture where no scripts run."""
    plot = timeline_plot(timelines, title=title)
    content = timeline_data(timelines)
    caption = " ".join(filter(None, [plot.caption, _left_out(timelines, content)]))
    still = inline(plot)
    return Drawing(plot.key, title, caption, still, svg(plot), wide=True, plot=plot, timeline=content)


def timeline_data(timelines: Sequence[Timeline]) -> dict[str, Any]:
    """What the script draws from; see the top of this file."""
    seconds = max((line.seconds for line in timelines), default=0.0) or 1.0
    unit = max(_LEAST_UNIT, seconds / _STEPS)
    columns = _columns(timelines)
    lines = MOST_LINES // max(len(timelines), 1)
    return {
        "unit": unit,
        "seconds": round(seconds / unit),
        "kinds": [[name, _variable(name)] for name in KINDS],
        "runs": [_run(line, unit, columns, lines) for line in timelines],
    }


def _columns(timelines: Sequence[Timeline]) -> int:
    """Into how many columns each rank's spans are merged; 0 where all spans have room."""
    if sum(line.spans() for line in timelines) <= MOST_SPANS:
        return 0
    return max(200, MOST_SPANS // (2 * sum(len(line.ranks) for line in timelines)))


def _variable(kind: str) -> str:
    """The name of the CSS variable that has the colour."""
    return themed(PHASES[kind][0])[6:-1] if kind in PHASES else "ink"


def _run(line: Timeline, unit: float, columns: int, most_lines: int) -> dict[str, Any]:
    ranks = []
    for rank in line.ranks:
        spans = _fewer(rank, line.seconds, columns, len(line.names)) if columns else rank.spans
        behind, length = _steps(spans, unit)
        table = numpy.stack([behind, length, spans["name"], spans["kind"]], axis=1)
        ranks.append([clean(rank.name), table.ravel().tolist()])
    messages = largest(line.messages, most_lines)
    behind, length = _steps(messages, unit)
    lines = [messages["source"], messages["target"], behind, length, messages["bytes"], messages["tag"]]
    return {
        "title": clean(line.title),
        "seconds": round(line.seconds / unit),
        "names": [*[clean(name) for name in line.names], *["several"] * bool(columns)],
        "ranks": ranks,
        "lines": numpy.stack(lines, axis=1).ravel().tolist(),
    }


def _steps(spans: Array, unit: float) -> tuple[Array, Array]:
    """What each start lies behind the one before, and the lengths, in units."""
    start = numpy.rint(spans["start"] / unit).astype(numpy.int64)
    return numpy.diff(start, prepend=0), numpy.rint(spans["end"] / unit).astype(numpy.int64) - start


def _fewer(rank: Rank, seconds: float, columns: int, several: int) -> Array:
    """Phases and calls merged; where one span makes most of what is merged, it keeps its name."""
    parts = []
    for intervals in (rank.phases(), rank.calls()):
        spans = merged(intervals, seconds, columns)
        spans["name"] = several
        if len(intervals) and len(spans):
            middle = (spans["start"] + spans["end"]) / 2
            there = intervals[
                numpy.maximum(numpy.searchsorted(intervals["start"], middle, side="right") - 1, 0)
            ]
            shared = numpy.minimum(spans["end"], there["end"]) - numpy.maximum(spans["start"], there["start"])
            alone = shared >= 0.8 * (spans["end"] - spans["start"])
            spans["name"][alone] = there["name"][alone]
        parts.append(spans)
    every: Array = numpy.concatenate(parts)
    ordered: Array = every[numpy.argsort(every["start"], kind="stable")]
    return ordered


def _left_out(timelines: Sequence[Timeline], data: dict[str, Any]) -> str:
    parts = []
    if columns := _columns(timelines):
        longest = max(line.seconds for line in timelines)
        spans = sum(line.spans() for line in timelines)
        parts.append(f"Of {spans} spans those under {time_text(longest / columns)} are merged in this page.")
    lines = sum(len(line.messages) for line in timelines) - sum(
        len(run["lines"]) // 6 for run in data["runs"]
    )
    if lines:
        parts.append(f"Not in this page: the {lines} smallest messages.")
    return " ".join(parts)
