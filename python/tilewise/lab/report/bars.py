"""Bars side by side, stacked bars of phases, and heat maps: figures with names instead of an axis."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tilewise.lab.report.curves import LEGEND, Axis, set_ticks
from tilewise.lab.report.style import (
    INK,
    PAPER,
    PHASES,
    SERIES,
    WIDTH,
    Plot,
    Spot,
    house,
    sheet,
    short,
    wrapped,
    wrapped_name,
)
from tilewise.lab.report.table import finite, percent, significant, time_text

_ROW = 0.15  # inches a bar
_TWO_LINES = 0.3  # inches of a name on two lines
_LETTER = 0.07  # inches of a name's letter: the title begins where names end
_FRAME = 1.2
_BELOW = 2.0  # how far below the least bar a logarithmic axis begins
_REACH, _REACH_LOG = 1.4, 4.0  # how far beyond the longest bar a whisker is shown
_LEGEND = 82  # characters abreast under a diagram


@dataclasses.dataclass(frozen=True)
class Bar:
    """A row: for each kind of bar its value, bounds, and words for the pointer."""

    name: str
    values: dict[str, tuple[float, float, float, str]]


def bars(
    key: str,
    title: str,
    caption: str,
    rows: Sequence[Bar],
    unit: str,
    log: bool = False,
    tones: Mapping[str, str] = MappingProxyType({}),
    kind_of_unit: str = "plain",
) -> Plot:
    """One group of bars for each row, from top to bottom; `tones` are colours of kinds.

    On a logarithmic axis bars begin below the least of them, and what is not above zero has none. Bars set
    the axis: a whisker that reaches far beyond them is cut, with an arrow at its end.
    """
    values = [bar[0] for row in rows for bar in row.values.values() if finite(bar[0]) is not None]
    least = min((value for value in values if value > 0), default=1.0)
    start = least / _BELOW if log else 0.0
    most = max(values, default=0.0)
    edge = most * (_REACH_LOG if log else _REACH) if most > 0 else float("inf")
    kinds = list(dict.fromkeys(kind for row in rows for kind in row.values))
    thick = 0.82 / max(len(kinds), 1)
    ends = [0.0]
    names = [wrapped_name(row.name) for row in rows]
    high = max(_ROW * (len(kinds) + 0.8), _TWO_LINES if any("\n" in name for name in names) else 0.0)
    with house():
        figure, axes = sheet("", WIDTH, _FRAME + high * len(rows))
        axes.set_title(wrapped(title, WIDTH - _LETTER * max(map(len, "\n".join(names).split("\n")))))
        plot = Plot(key, title, caption, figure)
        for place, kind in enumerate(kinds):
            colour = tones.get(kind) or SERIES[place % len(SERIES)][0]
            label = short(kind, LEGEND)
            for number, row in enumerate(rows):
                value, low, high, words = row.values.get(kind, (float("nan"),) * 3 + ("",))
                if finite(value) is None or (log and value <= 0):
                    continue
                top = number - 0.41 + place * thick
                axes.barh(top + thick / 2, value - start, thick * 0.9, left=start, color=colour, label=label)
                label = "_"
                if low < value < high:
                    ends.append(high)
                    axes.hlines(
                        top + thick / 2,
                        max(low, start) if log else low,
                        min(high, edge),
                        color=INK[0],
                        lw=0.9,
                    )
                    if high > edge:
                        axes.plot(edge, top + thick / 2, ">", color=INK[0], markersize=3, clip_on=False)
                text = f"{row.name}, {kind}: {words}"
                plot.spots.append(Spot(axes, start, top, text, value - start, thick))
        axes.set_yticks(range(len(rows)), names, linespacing=1.0)
        axes.set_ylim(max(len(rows), 1) - 0.5, -0.5)  # downwards, and whole groups where bars are missing
        if log:
            axes.set_xscale("log")
        if log or min(values, default=0.0) >= 0:
            axes.set_xlim(left=start, right=edge if edge < max(ends) else None)
        set_ticks(axes.xaxis, Axis(unit, kind_of_unit, log))
        axes.set_xlabel(short(unit, LEGEND))
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        if axes.get_legend_handles_labels()[0]:
            longest = max(len(short(kind, LEGEND)) for kind in kinds)
            abreast = max(1, min(len(kinds), _LEGEND // (longest + 6)))
            figure.legend(loc="outside lower center", ncols=abreast)
    return plot


_SHADES = ["#e9f1f8", "#7fb3d9", "#2a76ae", "#0b3557"]
_WRITTEN = 256  # cells: more are too small for values
_NUANCE = 0.1  # of the largest value: smaller differences stay pale
_ABREAST, _DOWN = 62, 40  # letters that have room along the figure, names that have room down it
_NAME = 20  # letters of a name
_TITLE = 0.7  # of the width: a title begins where the names of rows end, and the scale stands beside it
_INK = ("#10202e", "#ffffff")


def field(
    key: str,
    title: str,
    caption: str,
    across: tuple[str, Sequence[str]],
    down: tuple[str, Sequence[str]],
    values: Sequence[Sequence[float]],
    unit: str,
    log: bool = False,
) -> Plot:
    """`values[row][column]`, a row for each name of `down`; NaN is blank; `across`, `down`: title and names.

    `log` spreads the shades by ratios.
    """
    import numpy
    from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize

    numbers = numpy.array(values, dtype=float).reshape(len(down[1]), len(across[1]))
    numbers[~numpy.isfinite(numbers)] = numpy.nan
    if log:
        numbers[numbers <= 0] = numpy.nan
    known = numbers[~numpy.isnan(numbers)]
    low, high = (float(known.min()), float(known.max())) if known.size else (1.0, 1.0)
    high = max(high, low + (abs(high) * _NUANCE or 1.0))
    scale = (LogNorm if log else Normalize)(low, high)
    texts = _texts(numbers) if numbers.size <= _WRITTEN else {}
    height = min(7.0, max(2.4, 1.5 + 0.36 * len(down[1])))
    with house():
        figure, axes = sheet("", WIDTH, height)
        axes.set_title(wrapped(title, _TITLE * WIDTH))
        plot = Plot(key, title, caption, figure)
        shades = LinearSegmentedColormap.from_list("house", _SHADES, N=48)
        edges = numpy.arange(len(across[1]) + 1) - 0.5, numpy.arange(len(down[1]) + 1) - 0.5
        mesh = axes.pcolormesh(*edges, numpy.ma.masked_invalid(numbers), cmap=shades, norm=scale)
        mesh.set(edgecolor=PAPER[0], linewidth=1)
        for (row, column), value in numpy.ndenumerate(numbers):
            if math.isnan(value):
                continue
            words = f"{down[0]} {down[1][row]}, {across[0]} {across[1][column]}; {significant(value)} {unit}"
            plot.spots.append(Spot(axes, column - 0.5, row - 0.5, words, 1.0, 1.0))
            if texts:
                ink = _INK[float(scale(value)) > 0.45]
                axes.text(column, row, texts[row, column], ha="center", va="center", color=ink, fontsize=7.5)
        axes.set(xlabel=short(across[0]), ylabel=short(down[0]))
        for named, room, set_names in (
            (across[1], _ABREAST, axes.set_xticks),
            (down[1], _DOWN, axes.set_yticks),
        ):
            names = [short(name, _NAME) for name in named]
            # Names that would touch their neighbours are left out; pointing at a cell tells all of them.
            letters = max(map(len, names), default=1) + 1 if named is across[1] else 1
            every = max(1, math.ceil(len(names) * letters / room))
            set_names(range(0, len(names), every), names[::every])
        axes.invert_yaxis()
        axes.grid(False)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        bar = figure.colorbar(mesh, ax=axes, label=short(unit))
        set_ticks(bar.ax.yaxis, Axis(unit, log=log))
        if bar.solids is not None:
            bar.solids.set(rasterized=False, edgecolor="face")
        bar.outline.set_visible(False)
    return plot


def _texts(numbers: Any) -> dict[tuple[int, ...], str]:
    """Text of each cell that has a value: as many digits as there is room for; nothing without any."""
    import numpy

    values = {place: float(value) for place, value in numpy.ndenumerate(numbers) if not math.isnan(value)}
    for write in (significant, lambda value: significant(value, 2), lambda value: f"{value:.0e}"):
        texts = {place: write(value) for place, value in values.items()}
        if numbers.shape[1] * (max(map(len, texts.values()), default=0) + 1) <= _ABREAST:
            return texts
    return {}


_STACK, _STACK_OF_TWO = 0.19, 0.3  # inches a bar, with a name on one line or on two


@dataclasses.dataclass(frozen=True)
class StackedBar:
    """A row: seconds of each phase, and words for the pointer beside the phase's own."""

    name: str
    seconds: Mapping[str, float]
    words: str = ""


def stacks(key: str, title: str, caption: str, rows: Sequence[StackedBar]) -> Plot:
    """One bar for each row from top to bottom, its phases from left to right, in seconds."""
    known = [name for name in PHASES if any(row.seconds.get(name, 0.0) > 0 for row in rows)]
    names = [wrapped_name(row.name) for row in rows]
    high = _STACK_OF_TWO if any("\n" in name for name in names) else _STACK
    with house():
        figure, axes = sheet(title, WIDTH, _FRAME + high * len(rows))
        plot = Plot(key, title, caption, figure)
        for place, row in enumerate(rows):
            left, whole = 0.0, sum(row.seconds.get(name, 0.0) for name in known)
            for name in known:
                width = finite(row.seconds.get(name)) or 0.0
                if width <= 0:
                    continue
                axes.barh(place, width, 0.78, left=left, color=PHASES[name][0])
                words = (
                    f"{row.name}: {name} {time_text(width)}; {percent(width / whole)} of {time_text(whole)}"
                )
                words += f"; {row.words}" if row.words else ""
                plot.spots.append(Spot(axes, left, place - 0.39, words, width, 0.78))
                left += width
        for name in known:
            axes.barh(0, 0, color=PHASES[name][0], label=name)
        axes.set_yticks(range(len(rows)), names, linespacing=1.0)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(left=0)
        set_ticks(axes.xaxis, Axis("time", "seconds", log=False))
        axes.set_xlabel("time")
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        if known:
            figure.legend(loc="outside lower center", ncols=len(known))
    return plot
