"""Figures of a study: the plots that it declares, and of every run where its time goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewise.base.errors import UsageError
from tilewise.base.units import parse_size, plural
from tilewise.lab.report import roofline
from tilewise.lab.report.bars import Bar, StackedBar, bars, field, stacks
from tilewise.lab.report.curves import MOST, Axis, Curve, curves
from tilewise.lab.report.study_format import SIZES, labels, said, telling, worded
from tilewise.lab.report.study_tables import phase_seconds
from tilewise.lab.report.style import PHASES, SERIES, Plot, ordered
from tilewise.lab.report.table import finite, significant, size_text
from tilewise.lab.study import plots as study
from tilewise.lab.study.cells import NOWHERE
from tilewise.lab.study.evaluation import Evaluated
from tilewise.lab.study.results import MeasuredPoint

_SLATE = 5  # the colour of what is no measurement of ours
_BARS = 30  # rows of a figure: more are in the table
_ABREAST = 60  # single bars of one
_SIZE = re.compile(r"\d+(\.\d+)?\s*([kmgtp]i?b?|b)", re.IGNORECASE)

_BYTES = re.compile(r"\b(\d{4,}) B\b")
_NOT_ALL = "{} more are in the table only."


def declared(studies: Sequence[Evaluated], place: int) -> Iterator[Plot]:
    """The study's plot number `place`, with the curves of all results in `studies`."""
    mine = [each.plots[place] for each in studies]
    names = labels(studies)
    first = mine[0]
    if first.kind == "heat":
        for each, name in zip(mine, names, strict=True):
            yield _heat(each, name)
        return
    if any(one.names for each in mine for one in each.series):
        yield roofline.declared(mine, names)
        return
    every = [x for each in mine for one in each.series for x in one.x]
    made = _bars if first.kind == "bar" or any(_number(x) is None for x in every) else _lines
    yield made(mine, names, palette([plot for each in studies for plot in each.plots], mine))


def _lines(mine: Sequence[study.FigurePlot], names: Sequence[str], tones: Mapping[str, str]) -> Plot:
    first = mine[0]
    longest = max(mine, key=lambda plot: len(plot.ideal.x) if plot.ideal else 0)
    theirs = list(_references(first, tones, len(names), _short(mine)))
    ours = list(_curves(mine, names, tones))
    ideal = list(_ideal(longest))
    room = max(1, MOST - len(ideal))
    strangers = max(0, room - len(ours))  # curves of the source that are about none of ours
    foreign = [curve for curve in theirs if not curve.like]
    dropped = [*ours[room:], *foreign[strangers:]]
    shown = [curve for curve in (*ours, *ideal, *theirs) if not any(curve is each for each in dropped)]
    axis = first.table.row_names[0]
    sizes = axis in SIZES or any(isinstance(x, str) for one in first.series for x in one.x)
    xs = sorted({point[0] for curve in shown for point in curve.points})
    across = Axis(
        first.x_title,
        kind="bytes" if sizes else "plain",
        log="x" in first.log,
        ticks=xs if len(xs) <= 9 and not sizes else (),
    )
    made = curves(
        f"plot-{first.name}",
        first.title,
        _caption(mine, names, ours),
        shown,
        across,
        Axis(_y_title(first), kind="seconds" if first.unit == "s" else "plain", log="y" in first.log),
    )
    if dropped:
        more = f"{len(dropped)} more curve{'s are' if len(dropped) > 1 else ' is'}"
        made.caption += f" {more} in the table only."
    return made


def _curves(
    mine: Sequence[study.FigurePlot], names: Sequence[str], tones: Mapping[str, str]
) -> Iterator[Curve]:
    """A colour for each series, one dash style per result."""
    short = _short(mine)
    for dash, (plot, name) in enumerate(zip(mine, names, strict=True)):
        for one in plot.series:
            label = " · ".join(filter(None, (short[one.label], name)))
            points = []
            for x, y, low, high in zip(one.x, one.y, one.low, one.high, strict=True):
                place = _number(x)
                if place is None:
                    continue
                words = f"{label}; {plot.x_title} {x}: {significant(y)} {plot.unit}".rstrip()
                if low is not None and high is not None:
                    words += f"; 95 % interval {significant(low)} – {significant(high)}"
                points.append((place, y, y if low is None else low, y if high is None else high, words))
            tone, line = tones[one.label], plot.kind != "scatter"
            yield Curve(label, points, tone=tone, dash=dash if name else 0, line=line)


def palette(every: Sequence[study.FigurePlot], mine: Sequence[study.FigurePlot]) -> dict[str, str]:
    """A colour for each series of the figure `mine`; a value has the same in `every` figure of a page.

    Numbers, if there are more than two, have colours with an order.
    """
    series = {one.label: one.values for each in mine for one in each.series}
    known: dict[str, list[Any]] = {}
    for plot in every:
        for one in plot.series:
            there = known.setdefault(repr(sorted(one.values)), [])
            there += [one.values] if one.values not in there else []
    tones: dict[str, str] = {}
    for label, values in series.items():
        alike = known[repr(sorted(values))]
        numbers = [next(iter(each.values())) for each in alike] if len(values) == 1 else []
        if len(numbers) > 2 and all(isinstance(number, (int, float)) for number in numbers):
            place = sorted(numbers).index(next(iter(values.values())))
            tones[label] = ordered(len(numbers))[place]
            continue
        first = alike.index(values)
        wheel = [SERIES[(first + step) % len(SERIES)][0] for step in range(len(SERIES))]
        tones[label] = next((tone for tone in wheel if tone not in tones.values()), wheel[0])
    return tones


def _short(mine: Sequence[study.FigurePlot]) -> dict[str, str]:
    """Short name of each series: of its axes those that tell it from the others."""
    series = {one.label: one.values for each in mine for one in each.series}
    axes = telling(list(series.values()))
    short = {
        label: ", ".join(said(axis, values[axis]) for axis in axes if axis in values)
        for label, values in series.items()
    }
    return {label: name or label for label, name in short.items()}


def _ideal(plot: study.FigurePlot) -> Iterator[Curve]:
    if plot.ideal is not None and plot.ideal.x:
        pairs = ((_number(x), y) for x, y in zip(plot.ideal.x, plot.ideal.y, strict=True))
        points = [(x, y, y, y, "") for x, y in pairs if x is not None]
        yield Curve(plot.ideal.label, points, colour=_SLATE, dash=2, marker=False)


def _references(
    plot: study.FigurePlot, tones: Mapping[str, str], results: int, short: Mapping[str, str]
) -> Iterator[Curve]:
    """The source's curves, dashed, each beside the one that `short` names of ours, in its colour."""
    free = [pair[0] for pair in SERIES if pair[0] not in tones.values()] or [SERIES[_SLATE][0]]
    for number, told in enumerate(plot.references):
        name = _BYTES.sub(lambda found: size_text(int(found[1])), told.label)
        label = f"{name} ({told.source})"
        pairs = ((_number(x), x, y) for x, y in zip(told.x, told.y, strict=False))
        points = []
        for x, word, y in pairs:
            if x is not None:
                points.append((x, y, y, y, f"{label}; {plot.x_title} {word}: {significant(y)}"))
        like = _like(name, plot.series, alone=len(plot.references) == 1)
        tone = tones[like] if like else free[number % len(free)]
        beside = short[like] if like and results == 1 else ""
        yield Curve(label, points, tone=tone, dash=results, like=beside)


def _like(name: str, series: Sequence[study.PlotSeries], alone: bool) -> str | None:
    """Which of our series the source's `name` is about: the one whose words it has.

    Where there is one of each, `alone`, they belong together whatever they are called.
    """
    told = _words_of(name)
    words = {
        one.label: set().union(*(_words_of(_told(*pair)) for pair in one.values.items())) for one in series
    }
    fitting = [label for label, own in words.items() if own <= told] or [*words] * (len(words) == 1 and alone)
    return max(fitting, key=lambda label: len(words[label]), default=None)


def _told(axis: str, value: Any) -> str:
    """Words that a name must have of an axis: sizes and words alone, other numbers with what they are."""
    alone = axis.removeprefix("line.") in (*SIZES, "size")
    return worded(axis, value) if alone else said(axis, value)


def _words_of(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[\w.-]+", text.lower())}


def _caption(mine: Sequence[study.FigurePlot], names: Sequence[str], ours: Sequence[Curve]) -> str:
    table = mine[0].table
    words = [f"{table.aggregate.capitalize()} of all samples"]
    if table.base:
        words.append(f"compared with {table.base}")
    if any(low < y < high for curve in ours for _, y, low, high, _ in curve.points):
        words.append(f"bars or shading: 95 % interval over launches{' of both' if table.base else ''}")
    if mine[0].references:
        words.append(f"dashed: {mine[0].beside or 'figures of the source'}")
    elif names[0]:
        words.append("one dash style per result")
    cells = [cell for each in mine for row in each.table.cells for cell in row if cell.value is None]
    if placeless := sum(
        _placeless(plot, x, y)
        for plot in mine
        for one in plot.series
        for x, y in zip(one.x, one.y, strict=True)
    ):
        words.append(f"{plural(placeless, 'point')} at or below zero: not drawn on a logarithmic axis")
    gaps = sum(cell.reason != NOWHERE for cell in cells)
    if gaps:
        said = "1 point is" if gaps == 1 else f"{gaps} points are"
        words.append(f"{said} missing, for the reasons below")
    notes = [f"{note[:1].upper()}{note[1:]}" for note in mine[0].notes]
    return ". ".join(["; ".join(words), *notes]).rstrip(".") + "."


def _placeless(plot: study.FigurePlot, x: Any, y: float) -> bool:
    """Tell whether a logarithmic axis cannot show a point; bars and heat maps have no such x."""
    place = _number(x) if plot.kind not in ("bar", "heat") else None
    return ("y" in plot.log and y <= 0) or ("x" in plot.log and place is not None and place <= 0)


def _y_title(plot: study.FigurePlot) -> str:
    if plot.unit == "s":  # of which each tick has its own
        return "time" if plot.y_title in (plot.title, "seconds") else plot.y_title
    if plot.y_title == plot.title:  # said above the figure already
        return plot.unit or ("ratio" if plot.table.base else "value")
    return f"{plot.y_title} ({plot.unit})" if plot.unit and plot.unit not in plot.y_title else plot.y_title


def _bars(mine: Sequence[study.FigurePlot], names: Sequence[str], tones: Mapping[str, str]) -> Plot:
    rows: dict[str, dict[str, tuple[float, float, float, str]]] = {}
    short = _short(mine)
    for plot, name in zip(mine, names, strict=True):
        for one in plot.series:
            kind = " · ".join(filter(None, (short[one.label], name)))
            for x, y, low, high in zip(one.x, one.y, one.low, one.high, strict=True):
                row = rows.setdefault(said(plot.table.row_names[0], x), {})
                bounds = (y if low is None else low, y if high is None else high)
                row[kind] = (y, *bounds, f"{significant(y)} {plot.unit}".strip())
    first = mine[0]
    every = [" · ".join(filter(None, (label, name))) for label in short.values() for name in names]
    kinds = [kind for kind in every if any(kind in values for values in rows.values())]
    room = max(1, min(_BARS, _ABREAST // max(1, min(len(kinds), MOST))))
    shown = [
        Bar(name, {kind: values[kind] for kind in kinds[:MOST] if kind in values})
        for name, values in list(rows.items())[:room]
    ]
    caption = _caption(mine, names, [])
    if len(kinds) > MOST:
        caption += f" Of each group, {_NOT_ALL.format(f'{len(kinds) - MOST} bars')}"
    if len(rows) > room:
        caption += f" {_NOT_ALL.format(len(rows) - room)}"
    alone = {short[label]: tone for label, tone in tones.items()} if names == [""] else {}
    unit = _y_title(first)
    kind = "seconds" if first.unit == "s" else "plain"
    return bars(f"plot-{first.name}", first.title, caption, shown, unit, "y" in first.log, alone, kind)


def _heat(plot: study.FigurePlot, name: str) -> Plot:
    table = plot.table
    short = _short([plot])
    down = [short[one.label] for one in plot.series]
    across = [str(row[0]) for row in table.rows]
    values = [[float("nan")] * len(across) for _ in down]
    for place, one in enumerate(plot.series):
        for x, y in zip(one.x, one.y, strict=True):
            values[place][across.index(str(x))] = y
    title = f"{plot.title} · {name}" if name else plot.title
    return field(
        f"plot-{plot.name}",
        title,
        _caption([plot], [""], []),
        (plot.x_title, across),
        (" · ".join(each.replace("_", " ") for each in table.column_names), down),
        values,
        plot.unit,
        log="y" in plot.log,
    )


def _number(value: Any) -> float | None:
    """A place on an axis: a number, or a size such as `128K`."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return finite(float(value))
    if isinstance(value, str) and _SIZE.fullmatch(value.strip()):
        try:
            return float(parse_size(value, "axis"))
        except UsageError:
            return None
    return None


def phases(studies: Sequence[Evaluated]) -> Iterator[Plot]:
    """Draw for every run where the time of each point goes, as the mean over ranks."""
    names = labels(studies)
    runs = dict.fromkeys(point.run for each in studies for point in each.results.points)
    for run in runs:
        sides = zip(studies, names, strict=True)
        pairs = [(point, name) for each, name in sides for point in each.results.points if point.run == run]
        axes = telling([point.axes for point, _ in pairs if point.entries])
        rows = []
        for point, name in pairs:
            if seconds := _of_phases(point):
                text = ", ".join(said(axis, point.axes[axis]) for axis in axes if axis in point.axes)
                rows.append(StackedBar(" · ".join(filter(None, (text, name))) or run, seconds))
        rows.sort(key=lambda row: -sum(row.seconds.values()))
        if not rows:
            continue
        shown = rows[:_BARS]
        caption = "Mean over ranks, median over launches; the longest first."
        if len(rows) > _BARS:
            caption += f" {_NOT_ALL.format(f'{len(rows) - _BARS} points')}"
        yield stacks(f"phases-{run}", f"Where the time goes: {run}", caption, shown)


def _of_phases(point: MeasuredPoint) -> dict[str, float]:
    told = {name: phase_seconds(point, f"seconds.{name}.mean") for name in PHASES}
    there = {name: value for name, value in told.items() if value is not None}
    return there if sum(there.values()) > 0 else {}
