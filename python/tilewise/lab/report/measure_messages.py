"""Tables of messages: report 1's time per byte, latency and bandwidth, collectives, every pair of ranks."""

from __future__ import annotations

from tilewise.base.units import plural
from tilewise.lab.measurement.result import Line, Measurement, PairMatrix
from tilewise.lab.report import measured as ask
from tilewise.lab.report.table import (
    Cell,
    Column,
    Footnotes,
    Table,
    giga,
    interval_text,
    number_columns,
    percent,
    quantity,
    significant,
    size_text,
    text_columns,
    time_text,
    times,
)

_PRIMARY = "blocking"  # the exchange of report 1


def per_byte(measurement: Measurement) -> list[Table]:
    """Report 1's table, payload × levels, for each exchange and number of pairs.

    Where there is one level only, the exchanges take the place of the levels.
    """
    lines = [line for line in ask.pick(measurement.lines, kind="ping") if line.pattern != "stream"]
    tables = []
    for pairs, group in ask.grouped(lines, lambda line: line.pairs).items():
        levels = ask.by_level(line.level for line in group)
        by_name = ask.grouped(group, ask.exchange)
        views = [
            (name, name, [(level, ask.pick(same, level=level)) for level in levels])
            for name, same in by_name.items()
        ]
        if len(levels) == 1 and len(by_name) > 1:
            views = [(levels[0], f"level {levels[0]}", list(by_name.items()))]
        for key, what, sides in views:
            title = f"{what}, {plural(pairs, 'pair')}"
            tables.append(_per_byte(measurement, f"{key}-{pairs}", title, sides))
    return tables


def _per_byte(measurement: Measurement, key: str, what: str, sides: list[tuple[str, list[Line]]]) -> Table:
    lines = [line for _, side in sides for line in side]
    crossings = {ask.ways(line) for line in lines}
    words = {1: "One operation", 2: "Round trip"}.get(min(crossings) if len(crossings) == 1 else 0)
    words = words or "Round trip (put, get: one operation)"
    table = Table(f"per-byte-{key}", f"{words} per byte of payload: {what}", [Column("payload")])
    for name, _ in sides:
        table.columns += [Column(name, "ns/B"), Column("mean", "ns/B")]
    marks = ask.marks(measurement)
    for size in sorted({line.bytes for line in lines}):
        row = [ask.size_cell(size)]
        for _, side in sides:
            row += _per_byte_cells(ask.first(side, bytes=size), marks)
        table.add(*row)
    table.notes = marks.notes()
    return table


def _per_byte_cells(line: Line | None, marks: Footnotes) -> list[Cell]:
    seconds = None if line is None else ask.median(line)
    if line is None or seconds is None or line.summary is None or line.bytes <= 0:
        return [ask.not_run(line, marks), Cell("")]
    size, mean = line.bytes, line.summary.mean / line.bytes
    each = ask.cell_of(line, marks, _nanoseconds, lambda _: seconds / size)
    return [each, quantity(mean, _nanoseconds, tone="faint")]


def _nanoseconds(seconds: float) -> str:
    return significant(seconds * 1e9, 4 if seconds > 1e-10 else 3)


def ends(measurement: Measurement, brief: bool = False) -> Table | None:
    """Latency at the smallest size, bandwidth at the largest: one row for each level, exchange, pairs.

    `brief` leaves streams out, and where there are several levels all exchanges but one.
    """
    lines = ask.pick(measurement.lines, kind="ping")
    if brief:
        lines = [line for line in lines if line.pattern != "stream"] or lines
        names = list(map(ask.exchange, lines))
        if len({line.level for line in lines}) > 1:
            wanted = _PRIMARY if _PRIMARY in names else names[0]
            lines = [line for line, name in zip(lines, names, strict=True) if name == wanted]
    if not lines:
        return None
    table = Table(
        "latency-bandwidth",
        "Messages, one way, per pair: latency of the smallest, bandwidth of the largest",
        [
            *text_columns("level", "exchange"),
            *number_columns("pairs", "n", "latency"),
            Column("95 %", "interval"),
            Column("bandwidth", "GB/s"),
            Column("share"),
        ],
    )
    marks = ask.marks(measurement)
    groups = ask.grouped(lines, lambda line: (line.level, ask.exchange(line), line.pattern, line.pairs))
    order = {level: place for place, level in enumerate(ask.by_level(line.level for line in lines))}
    carriers, sizes = [], set()
    for (level, name, pattern, pairs), group in sorted(groups.items(), key=lambda item: order[item[0][0]]):
        measured = sorted(ask.ran(group), key=lambda line: line.bytes)
        words = f"{name}, stream" if pattern == "stream" else name
        if not measured:
            table.add(level, words, pairs, "", ask.not_run(group[0], marks), "", "", "")
            continue
        small, large = measured[0], measured[-1]
        sizes.add((small.bytes, large.bytes))
        carriers.append(large.carrier)
        latency = [ask.cell_of(small, marks, value=ask.one_way), Cell(_interval(small))]
        table.add(
            level,
            words,
            pairs,
            small.summary.n if small.summary else "",
            # A stream's seconds are the gap between two messages, and no latency.
            *(["", ""] if pattern == "stream" else latency),
            ask.cell_of(large, marks, giga, ask.pair_rate),
            quantity(large.share, percent, large.carrier),
        )
    told = [f"{size_text(low)} and {size_text(high)}" for low, high in sorted(sizes)]
    table.notes = [f"sizes: {'; '.join(told)}"] if told else []
    table.notes += [f"share of: {carrier}" for carrier in dict.fromkeys(filter(None, carriers))]
    table.notes += marks.notes()
    return table


def _interval(line: Line) -> str:
    interval, middle = ask.bounds(line), ask.median(line)
    if interval is not None and middle and interval[1] > 2 * middle:
        return ask.within(line)
    return (
        "" if interval is None else interval_text(interval[0] / ask.ways(line), interval[1] / ask.ways(line))
    )


def collectives(measurement: Measurement) -> Table | None:
    """Each collective beside its plain loop."""
    lines = ask.pick(measurement.lines, kind="collective")
    if not lines:
        return None
    table = Table(
        "collectives",
        "Collectives: the library's call compared with a plain loop of messages",
        [
            *text_columns("collective"),
            *number_columns("ranks", "size", "library", "95 %", "loop", "95 %", "loop/library"),
        ],
    )
    marks = ask.marks(measurement)
    several = len({line.level for line in lines}) > 1
    groups = ask.grouped(lines, lambda line: (line.name, line.level, line.ranks))
    for (name, level, ranks), group in groups.items():
        for size in sorted({line.bytes for line in group}):
            sides = [ask.first(group, bytes=size, pattern=pattern) for pattern in ("library", "loop")]
            cells = []
            for line in sides:
                cells += [ask.cell_of(line, marks), Cell("" if line is None else ask.within(line))]
            words = f"{name} ({level})" if several else name
            table.add(
                words,
                ranks,
                ask.size_cell(size),
                *cells,
                _ratio(*(ask.median(s) if s else None for s in sides)),
            )
    table.notes = marks.notes()
    return table


def _ratio(library: float | None, loop: float | None) -> Cell:
    ratio = loop / library if library and loop is not None else None
    tone = "" if ratio is None else "good" if ratio > 1.05 else "bad" if ratio < 0.95 else ""
    return quantity(ratio, times, tone=tone)


def matrices(measurement: Measurement) -> list[Table]:
    """Every pair of ranks: latency of small messages, bandwidth of large ones."""
    return [matrix_table(matrix) for matrix in measurement.matrices if matrix.seconds]


def matrix_table(matrix: PairMatrix) -> Table:
    """A row for each rank that sends."""
    small = matrix.bytes < ask.SMALL
    what = "Latency" if small else "Bandwidth"
    pair = "hosts" if matrix.level == "node" else "ranks"
    title = f"{what} of every pair of {pair}, {size_text(matrix.bytes)} one way, alone"
    unit = "µs" if small else "GB/s"
    key = "-".join(filter(None, ["pairs", matrix.level, str(matrix.bytes)]))
    names = matrix.ranks
    table = Table(key, title, text_columns("from") + number_columns(*names, unit=unit))
    for own, (name, row) in enumerate(zip(names, matrix.seconds, strict=False)):
        cells = enumerate(row[: len(names)])
        table.add(name, *[_pair(seconds, matrix.bytes, small, own == place) for place, seconds in cells])
    return table


def _pair(seconds: float | None, size: int, small: bool, own: bool) -> Cell:
    if own or seconds is None or not seconds > 0:
        return Cell("·", tone="faint")
    if small:
        return Cell(significant(seconds * 1e6), seconds, time_text(seconds))
    return Cell(giga(size / seconds), size / seconds, time_text(seconds))
