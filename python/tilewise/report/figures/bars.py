"""Bars lying side by side: one row for each name, a few colours in a row, intervals as whiskers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tilewise.report.figures.style import INK, SERIES, WIDTH, Plot, Spot, house, sheet
from tilewise.report.numbers import clean, finite

_ROW = 0.15  # inches a bar
_FRAME = 1.2
_LEGEND = 82  # characters abreast under a diagram


@dataclasses.dataclass(frozen=True)
class Bar:
    """A row: for each kind of bar its value, bounds, and words for the pointer."""

    name: str
    values: dict[str, tuple[float, float, float, str]]


def bars(key: str, title: str, caption: str, rows: Sequence[Bar], unit: str) -> Plot:
    """One group of bars for each row, from top to bottom."""
    kinds = list(dict.fromkeys(kind for row in rows for kind in row.values))
    thick = 0.82 / max(len(kinds), 1)
    with house():
        figure, axes = sheet(title, WIDTH, _FRAME + _ROW * len(rows) * (len(kinds) + 0.8))
        plot = Plot(key, title, caption, figure)
        for place, kind in enumerate(kinds):
            colour = SERIES[place % len(SERIES)][0]
            label = clean(kind)
            for number, row in enumerate(rows):
                value, low, high, words = row.values.get(kind, (float("nan"),) * 3 + ("",))
                if finite(value) is None:
                    continue
                top = number - 0.41 + place * thick
                axes.barh(top + thick / 2, value, thick * 0.9, color=colour, label=label)
                label = "_"
                if low < value < high:
                    axes.plot([low, high], [top + thick / 2] * 2, color=INK[0], linewidth=0.9, marker="")
                plot.spots.append(Spot(axes, 0, top, f"{row.name}, {kind}: {words}", value, thick))
        axes.set_yticks(range(len(rows)), [clean(row.name) for row in rows])
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel(clean(unit))
        axes.grid(False, axis="y")
        axes.tick_params(axis="y", length=0)
        if axes.get_legend_handles_labels()[0]:
            longest = max(len(kind) for kind in kinds)
            abreast = max(1, min(len(kinds), _LEGEND // (longest + 6)))
            figure.legend(loc="outside lower center", ncols=abreast)
    return plot
