"""The timeline as a still picture: a bar for each rank, runs above each other, messages as lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from tilewise.base.errors import clean
from tilewise.lab.report.figures.style import GRID, INK, MUTED, PHASES, Plot, Spot, house, sheet
from tilewise.lab.report.numbers import size_text, time_text
from tilewise.lab.report.timeline import KINDS, MPI, Timeline, joined, merged

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE = 10.6  # inches
COLUMNS = 1100  # of a merged picture, about a pixel each
MOST_BARS = 4000  # above: merged
MOST_LINES = 1200
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
            _lines(axes, line, top, seconds, tall / rows)
            _spots(plot, axes, line, top, seconds)
            ticks += [
                (top + place, clean(rank.name)) for place, rank in enumerate(line.ranks) if place % step == 0
            ]
            top += len(line.ranks)
        axes.set_yticks([at + _BAR / 2 for at, _ in ticks], [name for _, name in ticks])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(False, axis="y")
        axes.set_xlabel("seconds")
        _legend(figure, kinds, any(len(line.messages) for line in timelines))
    return plot


def caption_of(timelines: Sequence[Timeline]) -> str:
    """What the picture shows, and what it leaves out."""
    parts = ["One bar per rank; lines are messages, from the sending call to the moment of receipt."]
    for line in timelines:
        there = len(line.messages)
        lost = int(line.about.get("dropped") or 0)
        unmatched = int(line.about.get("unmatched") or 0)
        where = f"{line.title}: " if len(timelines) > 1 and line.title else ""
        said = []
        if there > MOST_LINES:
            said.append(f"of {there} messages, the picture shows the {MOST_LINES} largest")
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


def _lines(axes: Axes, line: Timeline, top: float, seconds: float, row: float) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    messages = line.messages
    if not len(messages):
        return
    messages = largest(messages, MOST_LINES)
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
