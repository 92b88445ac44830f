"""The timeline as part of a page: a still picture, and data from which a script draws one to move about in.

The data are integers, since a page of 100,000 spans is to stay small: times in `unit` seconds, each start as
what it lies behind the one before.

    {"unit": 1e-6, "seconds": 1.5, "kinds": [["input", "series-0"], …],
     "runs": [{"title", "names": ["read A", …], "ranks": [["rank 0", [start, length, name, kind, …]], …],
               "lines": [source, target, start, length, bytes, tag, …]}, …]}
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from tilewise.base.errors import clean
from tilewise.lab.report.bars import StackedBar, stacks
from tilewise.lab.report.curves import Axis, set_ticks
from tilewise.lab.report.page import Drawing, ReportPage, Section
from tilewise.lab.report.style import (
    GRID,
    INK,
    MUTED,
    PHASES,
    Plot,
    Spot,
    house,
    inline,
    sheet,
    short,
    svg,
    themed,
)
from tilewise.lab.report.table import Table, quantity, size_text, text_columns, time_columns, time_text
from tilewise.lab.report.timeline import KINDS, MPI, Array, Rank, Timeline, joined, merged, read_timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    """Data that the script draws from; see the top of this file."""
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
    """Distances of each start from the one before, and lengths, in units."""
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


WIDE = 10.6  # inches
COLUMNS = 1100  # of a merged picture, about a pixel each
MOST_BARS = 4000  # above: merged
MOST_MESSAGES = 1200
_MOST_SPOTS = 500
_BAR = 0.78  # of a row
_STRIP = 0.16  # of a row: calls of MPI, along the bar's lower edge
_GAP = 1.3  # rows between runs, with the run's title in it
_TALL = 6.2  # inches that all rows have at most


def timeline_plot(timelines: Sequence[Timeline], key: str = "timeline", title: str = "Timeline") -> Plot:
    """The runs from top to bottom, each with its ranks; `png` and `svg` of figures.style make files of it."""
    rows = sum(len(line.ranks) for line in timelines) + _GAP * len(timelines)
    seconds = max((line.seconds for line in timelines), default=0.0) or 1.0
    tall = min(0.27 * rows, _TALL)
    with house():
        figure, axes = sheet("", WIDE, tall + 0.75)  # each run has a title of its own
        plot = Plot(key, title, caption_of(timelines), figure)
        axes.set_xlim(0, seconds)
        axes.set_ylim(rows - 0.1, -0.15)
        ticks: list[tuple[float, str]] = []
        kinds: set[int] = set()
        top = 0.0
        step = max(1, math.ceil(0.16 / (tall / rows)))  # between names, so that they do not touch
        for line in timelines:
            axes.text(
                0,
                top + _GAP * 0.78,
                _heading(line),
                fontsize=9,
                fontweight="bold",
                va="baseline",
                color=INK[0],
            )
            top += _GAP
            kinds |= _bars(axes, line, top, seconds)
            _lines(axes, line, top, tall / rows)
            _spots(plot, axes, line, top, seconds)
            ticks += [
                (top + place, clean(rank.name)) for place, rank in enumerate(line.ranks) if place % step == 0
            ]
            top += len(line.ranks)
        axes.set_yticks([at + _BAR / 2 for at, _ in ticks], [name for _, name in ticks])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(False, axis="y")
        set_ticks(axes.xaxis, Axis("time", "seconds", log=False))
        axes.set_xlabel("time")
        _legend(figure, kinds, any(len(line.messages) for line in timelines))
    return plot


def caption_of(timelines: Sequence[Timeline]) -> str:
    """Caption of the picture: what it shows, and what it leaves out."""
    parts = ["One bar per rank; lines are messages, from the sending call to the moment of receipt."]
    for line in timelines:
        there = len(line.messages)
        lost = int(line.about.get("dropped") or 0)
        unmatched = int(line.about.get("unmatched") or 0)
        where = f"{line.title}: " if len(timelines) > 1 and line.title else ""
        said = []
        if there > MOST_MESSAGES:
            said.append(f"of {there} messages, the picture shows the {MOST_MESSAGES} largest")
        if lost:
            said.append(f"{lost} messages did not fit in the trace")
        if calls := int(line.about.get("dropped_calls") or 0):
            said.append(f"{calls} MPI calls did not fit in the trace")
        if unmatched:
            said.append(f"of {unmatched} messages, the other end is unknown")
        if said:
            words = f"{where}{'; '.join(said)}."
            parts.append(words[0].upper() + words[1:])
    return " ".join(parts)


def _heading(line: Timeline) -> str:
    return f"{clean(line.title)}  {time_text(line.seconds)}".strip()


def _bars(axes: Axes, line: Timeline, top: float, seconds: float) -> set[int]:
    phases = [rank.phases() for rank in line.ranks]
    calls = [rank.calls() for rank in line.ranks]
    if sum(map(len, phases)) + sum(map(len, calls)) > MOST_BARS:
        columns = max(120, min(COLUMNS, 40_000 // max(len(phases), 1)))
        phases = [merged(intervals, seconds, columns) for intervals in phases]
        calls = [merged(intervals, seconds, columns) for intervals in calls]
    else:
        phases = [joined(intervals) for intervals in phases]
    ground = [(0.0, line.seconds, top + place, _BAR) for place in range(len(line.ranks))]
    _rectangles(axes, ground, GRID[0], 1)
    used: set[int] = set()
    for kind, name in enumerate(KINDS[:MPI]):
        bars = [
            (start, end, top + place, _BAR)
            for place, intervals in enumerate(phases)
            for start, end, _, mine in intervals.tolist()
            if mine == kind
        ]
        if bars:
            used.add(kind)
            _rectangles(axes, bars, PHASES[name][0], 2)
    strips = [
        (start, end, top + place + _BAR - _STRIP, _STRIP)
        for place, intervals in enumerate(calls)
        for start, end, _, _ in intervals.tolist()
    ]
    if strips:
        used.add(MPI)
        _rectangles(axes, strips, INK[0], 3)
    return used


def _rectangles(
    axes: Axes, boxes: Sequence[tuple[float, float, float, float]], colour: str, order: int
) -> None:
    """All in one path: a picture of thousands of bars stays small."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners = numpy.array([[(a, y), (b, y), (b, y + h), (a, y + h), (a, y)] for a, b, y, h in boxes])
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(boxes)
    path = Path(corners.reshape(-1, 2), codes)
    path.should_simplify = False
    axes.add_patch(PathPatch(path, facecolor=colour, edgecolor="none", linewidth=0, zorder=order))


def _lines(axes: Axes, line: Timeline, top: float, row: float) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    messages = line.messages
    if not len(messages):
        return
    messages = largest(messages, MOST_MESSAGES)
    middle = top + _BAR / 2
    ends = numpy.empty((len(messages), 2, 2))
    ends[:, 0, 0], ends[:, 0, 1] = messages["start"], middle + messages["source"]
    ends[:, 1, 0], ends[:, 1, 1] = messages["end"], middle + messages["target"]
    path = Path(ends.reshape(-1, 2), [Path.MOVETO, Path.LINETO] * len(messages))
    path.should_simplify = False
    faint = 0.9 if len(messages) <= 100 else 0.55 if len(messages) <= 400 else 0.3
    axes.add_patch(PathPatch(path, facecolor="none", edgecolor=INK[0], linewidth=0.7, alpha=faint, zorder=4))
    if len(messages) <= 400:  # where it arrives
        axes.plot(
            ends[:, 1, 0],
            ends[:, 1, 1],
            linestyle="none",
            marker="o",
            markersize=min(2.6, row * 10),
            markeredgewidth=0,
            color=INK[0],
            zorder=5,
            clip_on=False,
        )


def _spots(plot: Plot, axes: Axes, line: Timeline, top: float, seconds: float) -> None:
    every: list[tuple[float, float, str, float]] = []
    for place, rank in enumerate(line.ranks):
        for start, end, name, kind in rank.phases().tolist():
            words = f"{rank.name}: {line.names[name]}; {KINDS[kind]}; {time_text(end - start)}"
            every.append((start, end, words, top + place))
    every.sort(key=lambda one: one[0] - one[1])
    least = seconds / COLUMNS
    for start, end, words, at in every[:_MOST_SPOTS]:
        if end - start >= least:
            plot.spots.append(Spot(axes, start, at, words, end - start, _BAR))
    if len(line.messages) <= _MOST_SPOTS:
        for source, target, start, end, size, tag in line.messages.tolist():
            between = f"{line.ranks[source].name} → {line.ranks[target].name}"
            words = f"{between}; {size_text(size)}, {tag_text(tag)}; {time_text(end - start)}"
            plot.spots.append(Spot(axes, end, top + target + _BAR / 2, words))


def largest(messages: numpy.ndarray[Any, Any], most: int) -> numpy.ndarray[Any, Any]:
    """The `most` largest messages, still by start; of equal ones some from everywhere, the same each time."""
    if len(messages) <= most:
        return messages
    anywhere = numpy.random.default_rng(0).permutation(len(messages))
    return messages[numpy.sort(numpy.lexsort((anywhere, -messages["bytes"]))[:most])]


def tag_text(tag: int) -> str:
    """`tag 3`, or that there is none."""
    return f"tag {tag}" if tag >= 0 else "one-sided"


def _legend(figure: Any, kinds: set[int], messages: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: list[Any] = [
        Patch(color=PHASES[name][0], label=name) for place, name in enumerate(PHASES) if place in kinds
    ]
    entries.append(Patch(color=GRID[0], label="other"))
    if MPI in kinds:
        entries.append(Line2D([], [], color=INK[0], linewidth=2.2, label="in an MPI call"))
    if messages:
        entries.append(
            Line2D([], [], color=MUTED[0], linewidth=0.8, marker="o", markersize=2.6, label="message")
        )
    figure.legend(handles=entries, loc="outside lower center", ncols=len(entries))


ABREAST = 4  # runs in one picture
_RANKS = 64  # drawn: more are in the table


def trace_page(paths: Sequence[str]) -> ReportPage:
    """The page of the timelines in `paths`; UsageError where one of them is none."""
    names = [os.path.basename(path) for path in paths]
    names = names if len(set(names)) == len(names) else list(paths)
    lines = [read_timeline(path) for path in paths]
    if len(lines) > 1:  # which may all be of the same command
        lines = [
            dataclasses.replace(line, title=" · ".join(filter(None, (line.title, short(name)))))
            for name, line in zip(names, lines, strict=True)
        ]
    sections = [timeline_section(lines[place : place + ABREAST]) for place in range(0, len(lines), ABREAST)]
    for place, (name, line) in enumerate(zip(names, lines, strict=True), 1):
        seconds = {rank.name: _phases(rank) for rank in line.ranks}
        rows = [StackedBar(rank, told) for rank, told in list(seconds.items())[:_RANKS]]
        caption = "Each rank is in one phase at a time." + _more(len(seconds) - _RANKS)
        plots = [stacks(f"ranks-{place}", f"Time of each rank: {name}", caption, rows)] if rows else []
        sections.append(Section(f"ranks-{place}", f"Ranks of {name}", [], [_table(seconds, place)], plots))
    return ReportPage("Timeline", ", ".join(names), sections)


def timeline_section(lines: Sequence[Timeline]) -> Section:
    """Some runs above each other."""
    return Section("timeline", "Timeline", drawings=[timeline_drawing(lines)])


def _more(count: int) -> str:
    return f" {count} more ranks are in the table." if count > 0 else ""


def _phases(rank: Rank) -> dict[str, float]:
    told: dict[str, float] = {}
    for start, end, _, kind in rank.phases().tolist():
        told[KINDS[kind]] = told.get(KINDS[kind], 0.0) + end - start
    return told


def _table(ranks: Mapping[str, Mapping[str, float]], place: int) -> Table:
    names = [name for name in PHASES if any(name in seconds for seconds in ranks.values())]
    table = Table(f"ranks-{place}", "Time of each rank", text_columns("rank"))
    columns, shown = time_columns(names, (sum(seconds.values()) for seconds in ranks.values()))
    table.columns += columns
    for rank, seconds in ranks.items():
        table.add(rank, *[quantity(seconds.get(name, 0.0), shown) for name in names])
    table.folded = len(table.rows) > 16
    return table
