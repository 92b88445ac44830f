"""Tables of one node: memory by size and threads, arithmetic, levels, clock, what disturbed, every line."""

from __future__ import annotations

from tilewise.measure.result import Line, Measurement
from tilewise.report import measured as ask
from tilewise.report.numbers import interval_text, percent, significant, time_text
from tilewise.report.table import Cell, Column, Marks, Table
from tilewise.units import plural

_BRIEF_ROWS = 5
_BRIEF_NAMES = ("copy", "triad")


def memory(measurement: Measurement, brief: bool = False) -> Table | None:
    """Streaming rates: array size × (operation, threads). `brief` keeps copy and triad, and some sizes."""
    lines = ask.pick(measurement.lines, kind="memory")
    if brief:
        lines = [line for line in lines if line.name in _BRIEF_NAMES] or lines
    if not lines:
        return None
    sides = list(ask.grouped(lines, lambda line: (line.name, line.threads)))
    columns = [Column("array"), *[Column(name, f"{threads} thr.") for name, threads in sides]]
    table = Table("memory", "Memory: GB/s read and written, by size of one array", columns)
    table.columns.insert(1, Column("in", numbers=False))
    marks, caches, sizes = Marks(), cache_sizes(measurement), sorted({line.bytes for line in lines})
    for size in _thinned(sizes) if brief else sizes:
        row = [ask.size_cell(size), Cell(fits(lines, size, caches))]
        for name, threads in sides:
            found = ask.pick(lines, name=name, threads=threads, bytes=size)
            row.append(_rate(found[0] if found else None, marks))
        table.rows.append(row)
    if not caches:
        table.columns.pop(1)
        table.rows = [[row[0], *row[2:]] for row in table.rows]
    table.notes = marks.notes() + ask.certainty(lines)
    return table


def cache_sizes(measurement: Measurement) -> list[tuple[str, float]]:
    """Caches from small to large as `environment["caches"]` has them: name and bytes."""
    told = measurement.environment.get("caches")
    pairs = told.items() if isinstance(told, dict) else []
    sizes = [(str(name), float(size)) for name, size in pairs if isinstance(size, int | float) and size > 0]
    return sorted(sizes, key=lambda pair: pair[1])


def fits(lines: list[Line], size: int, caches: list[tuple[str, float]]) -> str:
    """The smallest cache that holds what one operation on arrays of `size` bytes touches."""
    touched = max((line.amount for line in lines if line.bytes == size), default=0.0) or size
    return next((name for name, room in caches if touched <= room), "memory")


def compute(measurement: Measurement) -> Table | None:
    """Matrix products: size × (type, threads)."""
    lines = ask.pick(measurement.lines, kind="compute")
    if not lines:
        return None
    sides = list(ask.grouped(lines, lambda line: (line.name, line.dtype, line.threads)))
    several = len({name for name, _, _ in sides}) > 1
    columns = [Column("size")]
    for name, dtype, threads in sides:
        columns.append(Column(f"{name} {dtype}" if several else dtype, ask.threads_text(threads)))
    table = Table("compute", "Arithmetic: GFLOP/s of products of square matrices", columns)
    marks = Marks()
    for size in sorted({line.size for line in lines}):
        row = [Cell(f"{size}²", float(size))]
        for name, dtype, threads in sides:
            found = ask.pick(lines, name=name, dtype=dtype, threads=threads, size=size)
            row.append(_rate(found[0] if found else None, marks))
        table.rows.append(row)
    table.notes = marks.notes() + ask.certainty(lines)
    return table


def _rate(line: Line | None, marks: Marks) -> Cell:
    seconds = None if line is None else ask.median(line)
    if line is None or seconds is None:
        return ask.not_run(line, marks)
    cell = ask.rate_of(line, line.amount, seconds)
    return Cell(cell.text, cell.value, cell.hint, marks.sign(*line.labels))


def _thinned(sizes: list[int]) -> list[int]:
    if len(sizes) <= _BRIEF_ROWS:
        return sizes
    last = len(sizes) - 1
    return [sizes[round(place * last / (_BRIEF_ROWS - 1))] for place in range(_BRIEF_ROWS)]


def levels(measurement: Measurement) -> Table | None:
    """Where messages of each level ran, or why this machine lacks it."""
    if not measurement.levels:
        return None
    table = Table(
        "levels",
        "Levels: what two ranks share",
        [Column("level", numbers=False), Column("measured", numbers=False)],
    )
    for level in measurement.levels:
        where = f"on cores {', '.join(map(str, level.cpus))}" if level.cpus else "yes"
        table.add(level.name, Cell(f"missing: {level.missing}", tone="faint") if level.missing else where)
    return table


def disturbances(measurement: Measurement) -> Table | None:
    """What else happened during each launch."""
    if not measurement.disturbances:
        return None
    columns = [
        Column("launch"),
        Column("of", numbers=False),
        Column("seconds"),
        Column("stolen"),
        Column("others"),
        Column("slowdown"),
        Column("switches"),
        Column("clock", "MHz"),
        Column("labels", numbers=False),
    ]
    table = Table("disturbances", "What else happened during each launch", columns)
    for found in measurement.disturbances:
        clock = "" if found.megahertz is None else "–".join(f"{value:.0f}" for value in found.megahertz)
        switches = Cell("" if found.switches is None else significant(found.switches, 4), found.switches)
        parts = [
            Cell("" if part is None else percent(part), part)
            for part in (found.stolen, found.others, found.slowdown)
        ]
        labels = [*found.labels, *(["oversubscribed"] if found.oversubscribed else [])]
        tone = "bad" if labels else ""
        table.add(
            Cell(str(found.launch), float(found.launch)),
            found.what,
            Cell(significant(found.seconds), found.seconds),
            *parts,
            switches,
            clock,
            Cell(", ".join(dict.fromkeys(labels)) or "quiet", tone=tone),
        )
    return table


def every_line(measurement: Measurement, brief: bool = False) -> Table:
    """All lines with what a reader needs to believe them; `brief` keeps what 80 columns hold."""
    names = [("line", False), ("n", True), ("median", True), ("95 %", True), ("rate", True)]
    if not brief:
        words = {"labels", "series", "cache"}
        more = "series interval mean least most outliers launches spread inner warm-up cache share labels"
        names += [(name, name not in words) for name in more.split()]
    columns = [Column(name, numbers=numbers) for name, numbers in names]
    table = Table("lines", "Every line: seconds of one operation", columns, folded=True)
    marks = Marks()
    for line in measurement.lines:
        cells = _short(line, marks if brief else None)
        if not brief:
            rest = len(columns) - len(cells) - 1
            cells += _long(line) if ask.median(line) is not None else [Cell("")] * rest
            cells.append(Cell(line.skipped or "; ".join([*line.labels, *line.notes])))
        table.rows.append(cells)
    table.notes = marks.notes()
    return table


def _short(line: Line, marks: Marks | None) -> list[Cell]:
    seconds, rate = ask.median(line), line.rate()
    if seconds is None or line.summary is None:
        return [Cell(line.key), ask.not_run(line, marks), *[Cell("")] * 3]
    unit = "GFLOP/s" if line.unit == "flop" else "GB/s"
    return [
        Cell(line.key),
        Cell(str(line.summary.n), float(line.summary.n)),
        Cell(time_text(seconds), seconds, ask.hint(line), marks.sign(*line.labels) if marks else ""),
        Cell(ask.within(line)),
        Cell("" if rate is None else f"{significant(rate / 1e9)} {unit}", rate),
    ]


def _long(line: Line) -> list[Cell]:
    found = line.summary
    assert found is not None
    return [
        Cell(line.series),
        Cell(interval_text(found.low, found.high)),
        *[Cell(time_text(seconds), seconds) for seconds in (found.mean, found.minimum, found.maximum)],
        *[Cell(str(count), float(count)) for count in (found.outliers, len(line.launches))],
        Cell(percent(found.spread), found.spread),
        *[Cell(str(count), float(count)) for count in (line.inner, line.warmup)],
        Cell(line.cache),
        Cell("" if line.share is None else percent(line.share), line.share, line.carrier),
    ]


def clock_text(measurement: Measurement) -> str:
    """The clock's resolution and what reading it costs, subtracted from every sample."""
    told = [f"{name} {time_text(value)}" for name, value in measurement.clock.items()]
    return f"clock: {', '.join(told)} (overhead subtracted)" if told else ""


def disturbed_text(measurement: Measurement) -> list[str]:
    """One sentence for each label: on how many lines and launches it stands."""
    counts: dict[str, int] = {}
    for line in measurement.lines:
        for label in dict.fromkeys(line.labels):
            counts[label] = counts.get(label, 0) + 1
    return [
        f"{label}: {plural(count, 'line')} of {len(measurement.lines)}" for label, count in counts.items()
    ]
