"""Bars lying side by side: one row for each name, a few colours in a row, intervals as whiskers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tilewise.lab.report.figures.curves import LEGEND, Axis, set_ticks
from tilewise.lab.report.figures.style import (
    INK,
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
from tilewise.lab.report.numbers import finite

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
        set_ticks(axes.xaxis, Axis(unit, log=log))
        axes.set_xlabel(short(unit, LEGEND))
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        if axes.get_legend_handles_labels()[0]:
            longest = max(len(short(kind, LEGEND)) for kind in kinds)
            abreast = max(1, min(len(kinds), _LEGEND // (longest + 6)))
            figure.legend(loc="outside lower center", ncols=abreast)
    return plot
