"""A heat map of two quantities: a cell for each pair of values, deeper where more, with the value in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewise.lab.report.figures.curves import Axis, set_ticks
from tilewise.lab.report.figures.style import PAPER, WIDTH, Plot, Spot, house, sheet, short, wrapped
from tilewise.lab.report.numbers import significant

_SHADES = ["#e9f1f8", "#7fb3d9", "#2a76ae", "#0b3557"]
_WRITTEN = 256  # cells: more are too small for values
_NUANCE = 0.1  # of the largest value: smaller differences stay pale
_ABREAST, _BELOW = 62, 40  # letters that have room along the figure, names that have room down it
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
            (down[1], _BELOW, axes.set_yticks),
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
    """What stands in each cell that has a value: as many digits as there is room for; nothing without any."""
    import numpy

    values = {place: float(value) for place, value in numpy.ndenumerate(numbers) if not math.isnan(value)}
    for write in (significant, lambda value: significant(value, 2), lambda value: f"{value:.0e}"):
        texts = {place: write(value) for place, value in values.items()}
        if numbers.shape[1] * (max(map(len, texts.values()), default=0) + 1) <= _ABREAST:
            return texts
    return {}
