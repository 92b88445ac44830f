"""Stacked bars: a row for each job or rank, in it a part for each phase, in the colours of phases."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from tilewise.lab.report.figures.style import PHASES, WIDTH, Plot, Spot, house, sheet, wrapped_name
from tilewise.lab.report.numbers import finite, percent, time_text

_ROW, _ROW_OF_TWO = 0.19, 0.3  # inches a bar, with a name on one line or on two
_FRAME = 1.2


@dataclasses.dataclass(frozen=True)
class Stack:
    """A row: seconds of each phase, and words for the pointer beside the phase's own."""

    name: str
    seconds: Mapping[str, float]
    words: str = ""


def stacks(key: str, title: str, caption: str, rows: Sequence[Stack]) -> Plot:
    """One bar for each row from top to bottom, its phases from left to right, in seconds."""
    known = [name for name in PHASES if any(row.seconds.get(name, 0.0) > 0 for row in rows)]
    names = [wrapped_name(row.name) for row in rows]
    high = _ROW_OF_TWO if any("\n" in name for name in names) else _ROW
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
        axes.set_xlabel("seconds")
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        if known:
            figure.legend(loc="outside lower center", ncols=len(known))
    return plot
