"""Figures of a measurement: messages and their model, files by ranks and block, memory and products."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tilewise.base.units import plural, rate_text
from tilewise.lab.measurement.fit import cost_key, one_operation
from tilewise.lab.measurement.result import FittedCurve, Line, Measurement, PairMatrix
from tilewise.lab.report import measured as ask
from tilewise.lab.report.bars import Bar, bars, field
from tilewise.lab.report.curves import Axis, Curve, Guide, curves
from tilewise.lab.report.measure_files import (
    WORDS,
    beside,
    beside_text,
    setting_text,
    settings,
    strategy_text,
)
from tilewise.lab.report.measure_messages import matrix_table
from tilewise.lab.report.measure_node import cache_sizes
from tilewise.lab.report.style import Plot, ordered
from tilewise.lab.report.table import percent, significant, size_text, time_text

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
        title = f"by exchange, level {level}, {plural(pairs, 'pair')}"
        views.append((f"{level}-{pairs}", title, _exchange, group))
    if len({line.level for line in lines}) > 1:
        round_trips = [line for line in lines if line.pattern != "stream"]
        first = ask.exchange(round_trips[0]) if round_trips else ""
        same = [line for line in round_trips if ask.exchange(line) == first]
        for pairs, group in ask.grouped(same, lambda line: line.pairs).items():
            title = f"by level, {first}, {plural(pairs, 'pair')}"
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


def _matrix(matrix: PairMatrix) -> Plot:
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


def _model(cost: FittedCurve, points: list[tuple[int, float]]) -> Plot:
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


_SETTINGS = 4  # settings drawn: more are in the tables
_BESIDE = 2  # figures of strategies: those with the most
_BARS = 14


def file_plots(measurement: Measurement) -> Iterator[Plot]:
    """For each setting: write, rewrite and read of all ranks together and of one, as in report 4."""
    for number, group in enumerate(settings(measurement)[:_SETTINGS], 1):
        for series, words in WORDS.items():
            if lines := ask.pick(ask.ran(group), series=series):
                yield _file_bandwidth(f"files-{number}-{series.replace('_', '-')}", words.capitalize(), lines)
    yield from _strategies(measurement)


def _file_bandwidth(key: str, word: str, lines: list[Line]) -> Plot:
    """Over ranks, a curve for each block size, or over block sizes where there is one number of ranks."""
    counts, sizes = (sorted({getattr(line, name) for line in lines}) for name in ("ranks", "bytes"))
    if len(counts) > 1:
        across = Axis("ranks", ticks=counts)
        groups = [(size_text(size), ask.pick(lines, bytes=size)) for size in sizes]
    else:
        across = Axis("block size", "bytes", ticks=sizes[:10])
        groups = [(plural(counts[0], "rank"), lines)]
    series = []
    for (name, group), tone in zip(groups, ordered(len(groups)) if len(groups) > 1 else [""], strict=True):
        points = [(float(line.ranks if len(counts) > 1 else line.bytes), *_rates(line)) for line in group]
        series.append(Curve(name, points, tone=tone))
    title = f"{word} bandwidth: {setting_text(lines)}"
    caption = f"Median; all ranks together, {_blocks(lines)} per rank; vertical bars: 95 % interval."
    return curves(key, title, caption, series, across, Axis("GB/s", log=False))


def _blocks(lines: list[Line]) -> str:
    counts = sorted({line.blocks for line in lines})
    return plural(counts[0], "block") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} blocks"


def _rates(line: Line) -> tuple[float, float, float, str]:
    middle, low, high = ask.rates(line)
    where = f"{plural(line.ranks, 'rank')}, {size_text(line.bytes)}"
    return middle, low, high, f"{where}: {significant(middle)} GB/s; {ask.hint(line)}"


def _strategies(measurement: Measurement) -> Iterator[Plot]:
    groups = [_by_strategy(ask.ran(group)) for group in beside(measurement)]
    wanted = sorted((names for names in groups if len(names) > 1), key=lambda names: -len(names))
    for number, names in enumerate(wanted[:_BESIDE], 1):
        rows = []
        for told in list(names.values())[:_BARS]:
            values = {WORDS[line.series]: _rates(line) for line in told if line.series in WORDS}
            other = ask.state(told[0]) != told[0].cache
            rows.append(Bar(strategy_text(told[0]) + f" ({ask.state(told[0])})" * other, values))
        lines = next(iter(names.values()))
        cache = f" Cache {lines[0].cache} unless a row says otherwise." if lines[0].cache else ""
        caption = f"All ranks together; whiskers: 95 % interval of the median.{cache}"
        yield bars(f"strategies-{number}-bars", beside_text(lines), caption, rows, "GB/s")


def _by_strategy(lines: list[Line]) -> dict[tuple[str, str], list[Line]]:
    return ask.grouped(lines, lambda line: (line.name, line.layout))


_NAMES = ("copy", "triad", "read", "write")  # one colour each; threads are told by the dash


def node_plots(measurement: Measurement) -> Iterator[Plot]:
    """Copying in memory, arithmetic, and every operation in memory, where they were measured."""
    memory = ask.ran(ask.pick(measurement.lines, kind="memory"))
    copies = ask.pick(memory, name="copy")
    if copies:
        yield _memory(measurement, copies, "Memory rate of copying by size and threads")
    compute = ask.ran(ask.pick(measurement.lines, kind="compute", series="seconds"))
    if compute:
        yield _compute(compute)
    if len(copies) < len(memory):
        yield _memory(measurement, memory, "Memory rate by size, operation and threads")


def _memory(measurement: Measurement, lines: list[Line], title: str) -> Plot:
    threads = sorted({line.threads for line in lines})
    series = []
    for (name, count), group in ask.grouped(lines, lambda line: (line.name, line.threads)).items():
        colour = _NAMES.index(name) if name in _NAMES else None
        words = f"{name}, {plural(count, 'thread')}"
        points = [
            _point(line, float(line.amount or line.bytes), f"{words}, {size_text(line.bytes)} an array")
            for line in group
        ]
        series.append(Curve(words, points, colour, threads.index(count)))
    guides = [Guide(f"{name} {size_text(size)}", x=size) for name, size in cache_sizes(measurement)]
    caption = (
        "Bytes read and written per second, against bytes touched in a pass; vertical lines: cache sizes."
    )
    return curves(
        "memory-copy" if {line.name for line in lines} == {"copy"} else "memory-curve",
        title,
        caption,
        series,
        Axis("bytes touched", "bytes"),
        Axis("GB/s"),
        guides,
    )


def _compute(lines: list[Line]) -> Plot:
    threads, types = sorted({line.threads for line in lines}), sorted({line.dtype for line in lines})
    series = []
    for (dtype, count), group in ask.grouped(lines, lambda line: (line.dtype, line.threads)).items():
        words = f"{dtype}, {plural(count, 'thread')}"
        points = [_point(line, float(line.size), f"{words}, {line.size}²") for line in group]
        series.append(Curve(words, points, types.index(dtype), threads.index(count)))
    sizes = sorted({float(line.size) for line in lines})
    caption = "Products of square matrices; bars or shading: 95 % interval of the median."
    return curves(
        "compute-curve",
        "Arithmetic rate by size, type and threads",
        caption,
        series,
        Axis("rows and columns", ticks=sizes[:10]),
        Axis("GFLOP/s", log=False),
    )


def _point(line: Line, x: float, words: str) -> tuple[float, float, float, float, str]:
    middle, low, high = ask.rates(line)
    unit = "GFLOP/s" if line.unit == "flop" else "GB/s"
    return x, middle, low, high, f"{words}: {significant(middle)} {unit}; {ask.hint(line)}"
