"""The diagram that every report needs: curves with intervals, on even or logarithmic axes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewise.base.units import rate_text
from tilewise.lab.report.style import (
    DASHES,
    MARKERS,
    MUTED,
    SERIES,
    Plot,
    Spot,
    house,
    sheet,
    short,
)
from tilewise.lab.report.table import finite, significant, size_text, time_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 8  # curves in a diagram: no eye holds more apart
_ABREAST, _UPRIGHT = 62, 48  # characters of an axis's name
LEGEND = 64  # of a curve's
_NAMED = 4  # curves beside others that have a name of their own in the legend
_GUIDE = 72  # of a line's across the diagram
_LEGEND = 82  # characters abreast under a diagram
_DRAWN = 1e100  # what an axis shows at most, and its inverse at least
_FEW = 8  # points: their intervals are lines, those of more a band
_REACH = 4.0  # how far beyond the points of a logarithmic axis an interval is shown
_FEW_POWERS = 200.0  # greatest over least: below, powers of ten alone are too few ticks
_EVEN_TICKS = 4  # steps of an even axis: more have no room where rows have long names
_LITTLE = 4.0  # greatest over least: below, there may be no such tick at all


@dataclasses.dataclass(frozen=True)
class Curve:
    """A named series of points: x, y, bounds of y (the same as y where unknown), and words for the pointer.

    `dash` tells curves of one colour apart: `tone`, else `colour` by place (None: next one). `like` names the
    curve beside which this one is drawn, in its colour and with its marker.
    """

    name: str
    points: list[tuple[float, float, float, float, str]]
    colour: int | None = None
    dash: int = 0
    marker: bool = True
    line: bool = True
    tone: str = ""
    like: str = ""


@dataclasses.dataclass(frozen=True)
class Axis:
    """An axis of a diagram. `kind` is how its numbers are written: bytes, seconds, rate, or plain."""

    label: str
    kind: str = "plain"
    log: bool = True
    ticks: Sequence[float] = ()


@dataclasses.dataclass(frozen=True)
class Guide:
    """A reference line across the diagram: level with `y`, or upright at `x`."""

    name: str
    x: float | None = None
    y: float | None = None


def curves(
    key: str,
    title: str,
    caption: str,
    series: Sequence[Curve],
    across: Axis,
    up: Axis,
    guides: Sequence[Guide] = (),
) -> Plot:
    """Curves with shaded intervals; what has no finite place on the axes is left out."""
    drawable = [curve for curve in (_drawable(one, across, up) for one in series) if curve.points]
    with house():
        figure, axes = sheet(title)
        plot = Plot(key, title, caption, figure)
        alone, paired = _paired(drawable)
        shown = [*alone, *paired]
        for place, curve in enumerate(alone):
            _curve(plot, axes, curve, place, _colour(place, curve), len(shown), curve.name)
        for curve in paired:
            place = [each.name for each in alone].index(curve.like)
            name = curve.name if len(paired) <= _NAMED else ""
            _curve(plot, axes, curve, place, _colour(place, alone[place]), len(shown), name)
        for axis, side, set_scale in (
            (across, axes.xaxis, axes.set_xscale),
            (up, axes.yaxis, axes.set_yscale),
        ):
            if axis.log:
                set_scale("log", base=2 if axis.kind == "bytes" else 10)
            set_ticks(side, axis)
        axes.set_xlabel(short(across.label, _ABREAST))
        axes.set_ylabel(short(up.label, _UPRIGHT))
        _limits(axes, shown, up)
        for axis, side in ((across, axes.xaxis), (up, axes.yaxis)):
            _within_a_power(side, axis)
        for guide in guides:
            _guide(axes, guide)
        top = axes.get_ylim()[1]
        points = [point for curve in shown if len(curve.points) <= _FEW for point in curve.points]
        if cut := [point[0] for point in points if point[3] > top]:  # an arrow where an interval is
            axes.plot(cut, [top] * len(cut), "^", color=MUTED[0], clip_on=False)
        if shown:
            named = alone if len(paired) > _NAMED else shown
            figure.legend(loc="outside lower center", ncols=_abreast(named))
        else:
            said = (
                "no value can be drawn on these axes"
                if any(one.points for one in series)
                else "nothing was measured"
            )
            axes.text(0.5, 0.5, said, transform=axes.transAxes, ha="center", color=MUTED[0])
    if len(drawable) > len(shown):
        plot.caption += f" {len(drawable) - len(shown)} more curves are only in the table."
    return plot


def _paired(curves: Sequence[Curve]) -> tuple[list[Curve], list[Curve]]:
    """Curves that stand alone, as many as an eye holds, and those that are drawn beside one of them."""
    names = {curve.name for curve in curves if not curve.like}
    alone = [curve for curve in curves if curve.like not in names][:MOST]
    kept = {curve.name for curve in alone}
    return alone, [curve for curve in curves if curve.like in kept]


def _abreast(shown: Sequence[Curve]) -> int:
    """How many columns the legend may have; each is as wide as its own longest name."""
    names = [len(short(curve.name, LEGEND)) + 6 for curve in shown]
    for columns in range(min(4, len(names)), 1, -1):
        share, more = divmod(len(names), columns)  # the first `more` columns have one name more
        ends = [part * share + min(part, more) for part in range(columns + 1)]
        if sum(max(names[ends[part] : ends[part + 1]]) for part in range(columns)) <= _LEGEND:
            return columns
    return 1


def _drawable(curve: Curve, across: Axis, up: Axis) -> Curve:
    points = []
    for x, y, low, high, words in curve.points:
        fits = all(
            _fits_axis(value) and (value > 0 or not axis.log) for value, axis in ((x, across), (y, up))
        )
        if fits:
            bottom = low if _fits_axis(low) and (low > 0 or not up.log) else y
            points.append((x, y, bottom, high if _fits_axis(high) else y, words))
    return dataclasses.replace(curve, points=sorted(points))


def _fits_axis(value: float | None) -> bool:
    """Tell whether an axis can show a value; no figure that was measured is beyond that."""
    number = finite(value)
    return number is not None and (number == 0 or 1 / _DRAWN < abs(number) < _DRAWN)


def _colour(place: int, curve: Curve) -> str:
    return curve.tone or SERIES[(place if curve.colour is None else curve.colour) % len(SERIES)][0]


def _curve(plot: Plot, axes: Axes, curve: Curve, place: int, colour: str, among: int, name: str) -> None:
    x, y, low, high, words = zip(*curve.points, strict=True)
    if any(a < b < c for a, b, c in zip(low, y, high, strict=True)):
        if len(x) > _FEW:
            axes.fill_between(x, low, high, color=colour, alpha=0.18 if among < 5 else 0.08, linewidth=0)
        else:
            axes.vlines(x, low, high, color=colour, alpha=0.5, linewidth=1.1)
    marker = MARKERS[place % len(MARKERS)] if curve.marker else ""
    dash = DASHES[curve.dash % len(DASHES)] if curve.line else ""
    inside = "none" if curve.dash else colour  # one point has no dashes: hollow marks tell it apart too
    label = short(name, LEGEND) if name else None
    axes.plot(x, y, color=colour, marker=marker, markerfacecolor=inside, linestyle=dash, label=label)
    plot.spots += [Spot(axes, *where) for where in zip(x, y, words, strict=True) if where[2]]


def _limits(axes: Axes, shown: Sequence[Curve], up: Axis) -> None:
    # The points decide; an interval that reaches far beyond them is cut.
    values = [point[1] for curve in shown for point in curve.points]
    if not values:
        return
    least, most = min(values), max(values)
    high = min(max(point[3] for curve in shown for point in curve.points), most * (_REACH if up.log else 1.4))
    low = min(point[2] for curve in shown for point in curve.points)
    low = max(low, least / _REACH if up.log else min(least, 0) * 1.4)
    margin = max(1.15, (high / low) ** 0.05) if up.log and low > 0 else 1.08
    if up.log:
        axes.set_ylim(low / margin, max(high, most) * margin)
    else:  # from zero on, which parts what is below it from the rest
        axes.set_ylim(min(low, 0) * margin, max(high, most, 0) * margin or (1 if low >= 0 else 0))


def set_ticks(side: object, axis: Axis) -> None:
    """Where an axis has its ticks, and how their numbers are written."""
    from matplotlib import ticker
    from matplotlib.axis import Axis as Side

    assert isinstance(side, Side)
    if axis.ticks:
        side.set_major_locator(ticker.FixedLocator(list(axis.ticks)))
        side.set_minor_locator(ticker.NullLocator())
    elif axis.log and axis.kind == "bytes":
        side.set_major_locator(ticker.LogLocator(base=16, numticks=20))
        side.set_minor_locator(ticker.NullLocator())
    elif axis.log:
        side.set_minor_formatter(ticker.FuncFormatter(lambda value, _: _between(value, side, axis.kind)))
    else:
        side.set_major_locator(ticker.MaxNLocator(_EVEN_TICKS, steps=[1, 2, 2.5, 5, 10]))
        side.set_minor_formatter(ticker.NullFormatter())
    side.set_major_formatter(ticker.FuncFormatter(lambda value, _: tick_text(value, axis.kind)))


def _within_a_power(side: Any, axis: Axis) -> None:
    """Ticks as on an even axis where a logarithmic one shows too little for powers of ten."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    low, high = side.get_view_interval()
    if axis.log and not axis.ticks and axis.kind != "bytes" and high < _LITTLE * low:
        side.set_major_locator(MaxNLocator(4))
        side.set_minor_locator(NullLocator())


def _between(value: float, side: Any, kind: str) -> str:
    """Text of a minor tick of a logarithmic axis: where there are few powers of ten, at 2 and 5 too."""
    low, high = side.get_view_interval()
    first = f"{value:e}"[0]
    return tick_text(value, kind) if high < _FEW_POWERS * low and first in "25" else ""


def tick_text(value: float, kind: str) -> str:
    """A tick's number: `4 KiB`, `10 µs`, `0.1`."""
    if kind == "bytes":
        return size_text(value) if value >= 1 else significant(value)
    if kind == "seconds" and value > 0:
        number, unit = time_text(value).split()
        return f"{float(number):g} {unit}"
    if kind == "rate" and value > 0:
        number, unit = rate_text(value, "B/s").split()
        return f"{float(number):g} {unit}"
    return f"{value:g}" if 9e-5 < abs(value) < 1e6 or value == 0 else f"{value:.0e}"


def _guide(axes: Axes, guide: Guide) -> None:
    style: dict[str, Any] = {"color": MUTED[0], "linewidth": 0.9, "linestyle": (0, (3, 2)), "zorder": 1}
    # Words that do not fit into the axes must not take the room from them.
    words: dict[str, Any] = {
        "textcoords": "offset points",
        "fontsize": 7.5,
        "color": MUTED[0],
        "in_layout": False,
    }
    name = short(guide.name, _GUIDE)
    low, high = axes.get_ylim()
    # One far beyond the points would press them flat; one that is shown needs room within the axes.
    if guide.y is not None and max(low / _REACH, 0.0) < guide.y < high * _REACH:
        axes.set_ylim(min(low, guide.y / 1.15), max(high, guide.y * 1.15))
        axes.axhline(guide.y, **style)
        # To the left: rates grow to the right, and would run through the words.
        left = ("axes fraction", "data")
        axes.annotate(name, (0, guide.y), xycoords=left, xytext=(4, 2), ha="left", va="bottom", **words)
    if guide.x is not None and finite(guide.x) and guide.x > 0:
        axes.axvline(guide.x, **style)
        top = ("data", "axes fraction")
        axes.annotate(name, (guide.x, 1), xycoords=top, xytext=(3, 0), ha="left", va="top", **words)
