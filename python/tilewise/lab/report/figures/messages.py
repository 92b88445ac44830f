"""Figures of messages: latency and bandwidth over size, every pair of ranks, the model over its points."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tilewise.base.units import rate_text
from tilewise.lab.measurement.fit import cost_key, one_operation
from tilewise.lab.measurement.result import Line, Matrix, Measurement
from tilewise.lab.report import measured as ask
from tilewise.lab.report.figures.curves import Axis, Curve, Guide, curves
from tilewise.lab.report.figures.fields import field
from tilewise.lab.report.figures.style import Plot
from tilewise.lab.report.measure_messages import matrix_table
from tilewise.lab.report.numbers import percent, size_text, time_text
from tilewise.machine.model import Cost

_DENSE = 96  # points of a model's curve
_MOST = 8  # figures of one sort: more are in the tables

Value = Callable[[Line], tuple[float, float, float] | None]
View = tuple[str, str, Callable[[Line], str], list[Line]]  # key, title, what names a curve, its lines


def message_plots(measurement: Measurement) -> Iterator[Plot]:
    """Latency and bandwidth of each exchange by level, or by exchange where there is one only."""
    lines = ask.ran(ask.pick(measurement.lines, kind="ping"))
    views = _views(lines)[:_MOST]
    for key, title, name, group in views:
        yield _latency(key, title, name, [line for line in group if line.pattern != "stream"])
        yield _bandwidth(key, title, name, group)


def _views(lines: list[Line]) -> list[View]:
    """Which lines share a diagram."""
    among: list[View] = []
    views: list[View] = []
    for (level, pairs), group in ask.grouped(lines, lambda line: (line.level, line.pairs)).items():
        title = f"by exchange, level {level}, {ask.pairs_text(pairs)}"
        views.append((f"{level}-{pairs}", title, _exchange, group))
    if len({line.level for line in lines}) > 1:
        round_trips = [line for line in lines if line.pattern != "stream"]
        first = ask.exchange(round_trips[0]) if round_trips else ""
        same = [line for line in round_trips if ask.exchange(line) == first]
        for pairs, group in ask.grouped(same, lambda line: line.pairs).items():
            title = f"by level, {first}, {ask.pairs_text(pairs)}"
            among.append((f"levels-{pairs}", title, lambda line: line.level, group))
    return among + views


def _exchange(line: Line) -> str:
    return f"{ask.exchange(line)}, stream" if line.pattern == "stream" else ask.exchange(line)


def _series(
    lines: list[Line], name: Callable[[Line], str], value: Value, words: Callable[[float], str]
) -> list[Curve]:
    """A curve for each `name`, over sizes; `words` say what a point's value is."""
    groups = ask.grouped(lines, name)
    curves = []
    for title in ask.by_level(groups):
        points = []
        for line in groups[title]:
            told = value(line)
            if told is not None:
                text = f"{title}, {size_text(line.bytes)}: {words(told[0])}; {ask.hint(line)}"
                points.append((float(line.bytes), *told, text))
        curves.append(Curve(title, points))
    return curves


def _seconds(line: Line) -> tuple[float, float, float] | None:
    middle, interval = ask.one_way(line), ask.bounds(line)
    if middle is None:
        return None
    low, high = (bound / ask.ways(line) for bound in interval) if interval else (middle, middle)
    return middle, low, high


def _rate(line: Line) -> tuple[float, float, float] | None:
    told = _seconds(line)
    if told is None or min(told) <= 0:
        return None
    return tuple(line.bytes / seconds for seconds in (told[0], told[2], told[1]))  # type: ignore[return-value]


def _latency(key: str, title: str, name: Callable[[Line], str], lines: list[Line]) -> Plot:
    series = _series(lines, name, _seconds, lambda value: f"{time_text(value)} one way")
    caption = "Median time of a message in one direction; shaded: 95 % interval of the median."
    across, up = Axis("message size", "bytes"), Axis("time, one way", "seconds")
    return curves(f"latency-{key}", f"Latency {title}", caption, series, across, up)


def _bandwidth(key: str, title: str, name: Callable[[Line], str], lines: list[Line]) -> Plot:
    series = _series(lines, name, _rate, lambda value: rate_text(value, "B/s"))
    carried = [line for line in lines if line.share and line.rate()]
    guides = []
    if carried:
        largest = max(carried, key=lambda line: line.bytes)
        carrier = (largest.rate() or 0.0) / (largest.share or 1.0)
        what, _, disturbance = largest.carrier.partition(", disturbed ")
        guides.append(Guide(what + (", disturbed" if disturbance else ""), y=carrier / max(largest.pairs, 1)))
    caption = (
        "Bytes per second of one pair in one direction; dashed: the limit of the link (shared by all pairs)."
    )
    across, up = Axis("message size", "bytes"), Axis("bandwidth of a pair", "rate")
    return curves(f"bandwidth-{key}", f"Bandwidth {title}", caption, series, across, up, guides)


def matrix_plots(measurement: Measurement) -> Iterator[Plot]:
    """A heat map for each table of pairs."""
    for matrix in measurement.matrices:
        if matrix.ranks and matrix.seconds:
            yield _matrix(matrix)


def _matrix(matrix: Matrix) -> Plot:
    table, names = matrix_table(matrix), matrix.ranks
    unit = table.columns[1].unit
    scale = {"µs": 1e6, "GB/s": 1e-9}[unit]
    values = []
    for row in table.rows:
        known = [float("nan") if cell.value is None else cell.value * scale for cell in row[1:]]
        values.append([*known, *[float("nan")] * (len(names) - len(known))])
    caption = f"{unit}; rows send, columns receive, one pair at a time."
    sides = ("to", names), ("from", names[: len(values)])
    return field(f"{table.key}-map", table.title, caption, *sides, values, unit)


def model_plots(measurement: Measurement) -> Iterator[Plot]:
    """The fitted pieces of message costs over the points they were fitted to."""
    points: dict[str, list[tuple[int, float]]] = {}
    for line in ask.ran(measurement.lines):
        points.setdefault(cost_key(line), []).append((line.bytes, one_operation(line)))
    wanted = [cost for cost in measurement.model.costs if cost.key.startswith("ping/") and cost.key in points]
    for cost in wanted[:_MOST]:
        yield _model(cost, sorted(points[cost.key]))


def _model(cost: Cost, points: list[tuple[int, float]]) -> Plot:
    sizes = [size for size, _ in points if size > 0]
    steps = [0.0]
    if sizes:
        steps = [sizes[0] * (sizes[-1] / sizes[0]) ** (place / (_DENSE - 1)) for place in range(_DENSE)]
    steps += [
        piece.begin * nudge for piece in cost.pieces[1:] for nudge in (1 - 1e-9, 1)
    ]  # jumps are upright
    fitted = [(size, cost.seconds(size), 0.0, 0.0, "") for size in steps if size > 0]
    told = []
    for size, seconds in points:
        said = cost.seconds(size)
        miss = f", off by {percent(said / seconds - 1)}" if seconds > 0 else ""
        words = f"{size_text(size)}: measured {time_text(seconds)}, model {time_text(said)}{miss}"
        told.append((float(size), seconds, seconds, seconds, words))
    guides = [Guide(f"from {size_text(piece.begin)}", x=piece.begin) for piece in cost.pieces[1:]]
    errors = (
        f" On sizes left out of the fit its error is {percent(cost.median_error)} (median), "
        f"{percent(cost.largest_error)} (largest)."
        if cost.median_error is not None
        else ""
    )
    rates = [f"{time_text(piece.alpha)} + bytes / {_beta(piece.beta)}" for piece in cost.pieces]
    return curves(
        f"model-{cost.key.replace('/', '-')}",
        f"Cost model of {cost.key.removeprefix('ping/')} and measurements",
        f"{'; then '.join(rates)}.{errors}",
        [Curve("model", fitted, colour=1, marker=False), Curve("measured", told, colour=0, line=False)],
        Axis("message size", "bytes"),
        Axis("time of one operation", "seconds"),
        guides,
    )


def _beta(beta: float) -> str:
    return rate_text(1 / beta, "B/s") if beta > 0 else "∞"
