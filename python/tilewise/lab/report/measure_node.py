"""Tables of one node: memory, arithmetic, fitted costs, levels, clock, disturbances, and every line."""

from __future__ import annotations

from tilewise.base.units import plural, rate_text
from tilewise.lab.measurement.lines import choices, sentences
from tilewise.lab.measurement.result import FittedCurve, Line, Measurement, Model
from tilewise.lab.report import measured as ask
from tilewise.lab.report.table import (
    Cell,
    Column,
    Footnotes,
    Table,
    finite,
    giga,
    interval_text,
    number_columns,
    percent,
    quantity,
    significant,
    size_text,
    text_columns,
    time_text,
)


def memory(measurement: Measurement) -> Table | None:
    """Streaming rates: array size × (operation, threads)."""
    lines = ask.pick(measurement.lines, kind="memory")
    if not lines:
        return None
    sides = list(ask.grouped(lines, lambda line: (line.name, line.threads)))
    table = Table("memory", "Memory: GB/s read and written, by size of one array", [Column("array")])
    marks, caches = ask.marks(measurement), cache_sizes(measurement)
    table.columns += text_columns("in") if caches else []
    table.columns += [Column(name, f"{threads} thr.") for name, threads in sides]
    for size in sorted({line.bytes for line in lines}):
        measured = [ask.first(lines, name=name, threads=threads, bytes=size) for name, threads in sides]
        where = [_levels(lines, size, caches)] if caches else []
        table.add(ask.size_cell(size), *where, *[_rate(line, marks) for line in measured])
    table.notes = marks.notes() + ask.certainty(lines)
    return table


def cache_sizes(measurement: Measurement) -> list[tuple[str, float]]:
    """Caches from small to large as `environment["caches"]` has them: name and bytes."""
    told = measurement.environment.get("caches")
    pairs = told.items() if isinstance(told, dict) else []
    sizes = [(str(name), float(size)) for name, size in pairs if isinstance(size, int | float) and size > 0]
    return sorted(sizes, key=lambda pair: pair[1])


def level_of(line: Line, caches: list[tuple[str, float]]) -> str:
    """The smallest cache that holds all arrays of the line's operation, or memory.

    Threads share the last cache; each has the others to itself.
    """
    touched = line.amount or float(line.bytes)
    for name, room in caches:
        owners = 1 if name == caches[-1][0] else max(1, line.threads)
        if touched <= owners * room:
            return name
    return "memory"


def _levels(lines: list[Line], size: int, caches: list[tuple[str, float]]) -> str:
    """The levels of all operations on arrays of `size` bytes, which have one to three arrays."""
    found = {level_of(line, caches) for line in lines if line.bytes == size}
    ordered = [name for name in [*(name for name, _ in caches), "memory"] if name in found]
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def compute(measurement: Measurement) -> Table | None:
    """Matrix products: size × (type, threads), and whether the choice between kernels is right."""
    lines = ask.pick(measurement.lines, kind="compute", series="seconds")
    if not lines:
        return None
    sides = list(ask.grouped(lines, lambda line: (line.name, line.dtype, line.threads)))
    several = len({name for name, _, _ in sides}) > 1
    columns = [Column("size")]
    for name, dtype, threads in sides:
        columns.append(Column(f"{name} {dtype}" if several else dtype, plural(threads, "thread")))
    table = Table("compute", "Arithmetic: GFLOP/s of products of square matrices", columns)
    marks = ask.marks(measurement)
    for size in sorted({line.size for line in lines}):
        measured = [
            ask.first(lines, name=name, dtype=dtype, threads=threads, size=size)
            for name, dtype, threads in sides
        ]
        table.add(Cell(f"{size}²", float(size)), *[_rate(line, marks) for line in measured])
    table.notes = [*marks.notes(), *ask.certainty(lines), *sentences(choices(measurement.lines))]
    return table


def memory_by_level(measurement: Measurement) -> Table | None:
    """The rate of copying for each level and number of threads."""
    lines, caches = ask.ran(ask.pick(measurement.lines, kind="memory")), cache_sizes(measurement)
    names = [line.name for line in lines]
    name = "copy" if "copy" in names else "".join(names[:1])
    rows = ask.grouped(ask.pick(lines, name=name), lambda line: level_of(line, caches))
    rooms = {level: f"{level}, {size_text(room)}" for level, room in caches}
    named = {rooms.get(level, level): rows[level] for level in [*rooms, "memory"] if level in rows}
    table = Table(
        "memory-by-level", f"Memory: GB/s of {name}, read and written, by level", text_columns("level")
    )
    table.notes = ["caches: the array that suits them best; memory: the largest"]
    return _by_threads(table, measurement, named)


def compute_by_type(measurement: Measurement) -> Table | None:
    """The best rate of each type and number of threads."""
    lines = ask.ran(ask.pick(measurement.lines, kind="compute", series="seconds"))
    title = "Arithmetic: GFLOP/s of matrix products, by type, at the best size"
    table = Table("compute-by-type", title, text_columns("type"))
    table.notes = sentences(choices(measurement.lines))
    return _by_threads(table, measurement, ask.grouped(lines, lambda line: line.dtype))


def _by_threads(table: Table, measurement: Measurement, rows: dict[str, list[Line]]) -> Table | None:
    if not rows:
        return None
    counts = sorted({line.threads for lines in rows.values() for line in lines})
    table.columns += number_columns(*(plural(count, "thread") for count in counts))
    marks = ask.marks(measurement)
    for name, lines in rows.items():
        cells: list[Cell | str] = []
        for count in counts:
            there = ask.pick(lines, threads=count)
            best = max(
                there, key=lambda line: (line.bytes * (name == "memory"), line.rate() or 0.0), default=None
            )
            cells.append(_rate(best, marks) if best else "")
        table.add(name, *cells)
    table.notes = [*marks.notes(), *table.notes]
    return table


def _rate(line: Line | None, marks: Footnotes) -> Cell:
    return ask.cell_of(line, marks, giga, Line.rate)


def levels(measurement: Measurement) -> Table | None:
    """Where messages of each level ran, or why this machine lacks it."""
    if not measurement.levels:
        return None
    table = Table("levels", "Levels: what two ranks share", text_columns("level", "measured"))
    for level in measurement.levels:
        where = f"on cores {', '.join(map(str, level.cpus))}" if level.cpus else "yes"
        table.add(level.name, Cell(f"missing: {level.missing}", tone="faint") if level.missing else where)
    return table


def disturbances(measurement: Measurement) -> Table | None:
    """Disturbances during each launch."""
    if not measurement.disturbances:
        return None
    table = Table("disturbances", "Disturbances during each launch", number_columns("launch"))
    table.columns += text_columns("of") + number_columns(
        "seconds", "stolen", "others", "slowdown", "switches"
    )
    table.columns += [Column("clock", "MHz"), *text_columns("labels")]
    for disturbance in measurement.disturbances:
        labels = [*disturbance.labels, *(["oversubscribed"] if disturbance.oversubscribed else [])]
        table.add(
            disturbance.launch,
            disturbance.what,
            quantity(disturbance.seconds),
            *[
                quantity(part, percent)
                for part in (disturbance.stolen, disturbance.others, disturbance.slowdown)
            ],
            quantity(disturbance.switches, lambda count: significant(count, 4)),
            ""
            if disturbance.megahertz is None
            else "–".join(f"{value:.0f}" for value in disturbance.megahertz),
            Cell(", ".join(dict.fromkeys(labels)) or "quiet", tone="bad" if labels else ""),
        )
    return table


def every_line(measurement: Measurement, brief: bool = False) -> Table:
    """All lines with what a reader needs to believe them; `brief` keeps what 80 columns hold."""
    table = Table("lines", "Every line: seconds of one operation", text_columns("line"), folded=True)
    table.columns += number_columns("n", "median", "95 %", "rate")
    if not brief:
        table.columns += text_columns("series") + number_columns(
            "interval", "mean", "least", "most", "outliers"
        )
        table.columns += number_columns("launches", "spread", "inner", "warm-up") + text_columns("cache")
        table.columns += number_columns("share") + text_columns("labels")
    marks = ask.marks(measurement)
    for line in measurement.lines:
        cells = _short(line, marks if brief else None)
        if not brief:
            cells += _long(line)
            cells += [""] * (len(table.columns) - 1 - len(cells))
            cells.append(line.skipped or "; ".join([*line.labels, *line.notes]))
        table.add(*cells)
    table.notes = marks.notes()
    return table


def _short(line: Line, marks: Footnotes | None) -> list[Cell | str | int]:
    if ask.median(line) is None or line.summary is None:
        return [line.key, ask.not_run(line, marks), "", "", ""]
    unit = "GFLOP/s" if line.unit == "flop" else "GB/s"
    rate = quantity(line.rate(), lambda rate: f"{giga(rate)} {unit}")
    return [line.key, line.summary.n, ask.cell_of(line, marks), ask.within(line), rate]


def _long(line: Line) -> list[Cell | str | int]:
    summary = line.summary
    if ask.median(line) is None or summary is None:
        return []
    return [
        line.series,
        interval_text(summary.low, summary.high),
        *[quantity(seconds, time_text) for seconds in (summary.mean, summary.minimum, summary.maximum)],
        summary.outliers,
        len(line.launches),
        quantity(summary.spread, percent),
        line.inner,
        line.warmup,
        line.cache,
        quantity(line.share, percent, line.carrier),
    ]


def clock_text(measurement: Measurement) -> str:
    """The clock's resolution and what reading it costs, subtracted from every sample."""
    told = [f"{name} {time_text(value)}" for name, value in measurement.clock.items()]
    return f"clock: {', '.join(told)} (overhead subtracted)" if told else ""


def model_table(model: Model) -> Table | None:
    """One row for each piece: seconds of one operation = α + bytes / β."""
    if not model.costs and model.injection is None and model.copy_rate is None:
        return None
    table = Table("model", "Cost model: seconds = α + bytes / β; errors on sizes left out of the fit", [])
    table.columns = [*text_columns("cost"), *number_columns("from", "α"), Column("β", "GB/s")]
    table.columns += number_columns("median", "largest", unit="error")
    for cost in model.costs:
        _rows(table, cost)
    if model.costs:
        table.notes.append("of a message one way, a collective, or one call on a block of a file")
    injection, copying = finite(model.injection), finite(model.copy_rate)
    if injection is not None:
        table.notes.append(f"all pairs between two nodes together: {rate_text(injection, 'B/s')} at most")
    if copying is not None:
        table.notes.append(f"memory copy on all cores, read and written: {rate_text(copying, 'B/s')}")
    return table


def _rows(table: Table, cost: FittedCurve) -> None:
    for place, piece in enumerate(cost.pieces):
        beta = Cell("∞")
        if piece.beta > 0:
            beta = quantity(1 / piece.beta, giga, f"{significant(piece.beta * 1e9)} ns/B")
        told = (cost.median_error, cost.largest_error) if place == 0 else (None, None)
        table.add(
            cost.key if place == 0 else "",
            quantity(piece.begin, lambda size: size_text(size) if size > 0 else "0 B"),
            quantity(piece.alpha, time_text),
            beta,
            *[quantity(error, percent) for error in told],
        )
