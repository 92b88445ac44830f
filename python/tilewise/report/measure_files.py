"""Tables of files: report 4's, ranks × block, with first write, rewrite and read; strategies side by side."""

from __future__ import annotations

from tilewise.measure.result import Line, Measurement
from tilewise.report import measured as ask
from tilewise.report.numbers import percent, size_text, time_text, times
from tilewise.report.table import Cell, Column, Marks, Table
from tilewise.units import listing, plural

WORDS = {"write_new": "first write", "write": "rewrite", "read": "read"}


def setting(line: Line) -> tuple[str, str, str, str, bool]:
    """What one of report 4's tables keeps the same: strategy, layout, buffer, cache, flushed or not."""
    return line.name, line.layout, line.buffer, line.cache, line.sync


def setting_text(line: Line) -> str:
    """`collective, interleaved, malloc, warm cache, flushed`."""
    words = [
        line.name,
        line.layout if line.layout != line.name else "",
        line.buffer,
        f"{line.cache} cache" if line.cache else "",
    ]
    return ", ".join(filter(None, [*words, "flushed" if line.sync else ""]))


def strategy_text(name: str, layout: str) -> str:
    """`positioned`, or `positioned, contiguous` where the layout is not the usual one."""
    return name if layout in ("", "interleaved", name) else f"{name}, {layout}"


def settings(measurement: Measurement) -> list[list[Line]]:
    """Lines of files, a list for each setting that was measured at several ranks or blocks."""
    groups = ask.grouped(ask.pick(measurement.lines, kind="file"), setting)
    for (name, layout, buffer, cache, sync), group in groups.items():
        if cache == "cold" and all(line.series == "read" for line in group):
            written = groups.get((name, layout, buffer, "warm", sync), [])
            group += [line for line in written if line.series != "read"]
    return [group for group in groups.values() if len(_places(group)) > 1]


def rank_block(measurement: Measurement) -> list[Table]:
    """Report 4's table of each setting: seconds and GB/s of all ranks together, read over write."""
    return [_rank_block(number, group) for number, group in enumerate(settings(measurement), 1)]


def _rank_block(number: int, lines: list[Line]) -> Table:
    counts = {line.blocks for line in lines}
    amount = f", {max(counts)} blocks a rank" if len(counts) == 1 else ""
    table = Table(
        f"files-{number}", f"Files: {setting_text(lines[0])}{amount}", [Column("ranks"), Column("block")]
    )
    shown = [series for series in WORDS if ask.pick(lines, series=series)]
    table.columns += [Column(WORDS[series], "time") for series in shown]
    table.columns += [Column(WORDS[series], "GB/s") for series in shown]
    table.columns.append(Column("read/write"))
    marks = Marks()
    for ranks, size in _places(lines):
        place = ask.pick(lines, ranks=ranks, bytes=size)
        found = {series: next(iter(ask.pick(place, series=series)), None) for series in shown}
        row = [Cell(str(ranks), float(ranks)), _block(place[0], len(counts) > 1)]
        row += [_seconds(line, place, marks) for line in found.values()]
        row += [_rate(line) for line in found.values()]
        table.rows.append([*row, _read_over_write(found)])
    table.notes = marks.notes()
    table.notes.append("read / write: GB/s of reading over GB/s of the first write, as in report 4")
    table.notes += _shifts(lines) + ask.certainty(lines)
    return table


def per_rank(measurement: Measurement) -> list[Table]:
    """The same tables as GB/s of one rank, as in report 4's figure 5."""
    tables = []
    for number, lines in enumerate(settings(measurement), 1):
        shown = [series for series in WORDS if ask.pick(lines, series=series)]
        table = Table(
            f"files-per-rank-{number}",
            f"Files, GB/s a rank: {setting_text(lines[0])}",
            [Column("ranks"), Column("block")],
        )
        table.columns += [Column(WORDS[series], "GB/s a rank") for series in shown]
        for ranks, size in _places(lines):
            place = ask.pick(lines, ranks=ranks, bytes=size)
            found = [next(iter(ask.pick(place, series=series)), None) for series in shown]
            cells = [_rate(line, ranks) for line in found]
            table.add(Cell(str(ranks), float(ranks)), ask.size_cell(size), *cells)
        tables.append(table)
    return tables


def strategies(measurement: Measurement) -> list[Table]:
    """Strategies beside each other, where several were measured at the same ranks, block and setting."""
    lines = ask.pick(measurement.lines, kind="file")
    groups = ask.grouped(lines, lambda line: (line.ranks, line.bytes, line.buffer, line.cache, line.sync))
    wanted = [group for group in groups.values() if len({(line.name, line.layout) for line in group}) > 1]
    lone = {setting(line) for line in lines} - {setting(group[0]) for group in settings(measurement)}
    wanted += [group for group in groups.values() if group not in wanted and setting(group[0]) in lone]
    return [_strategies(number, group) for number, group in enumerate(wanted, 1)]


def _strategies(number: int, lines: list[Line]) -> Table:
    first = lines[0]
    shown = [series for series in WORDS if ask.pick(lines, series=series)]
    cache = f", {first.cache} cache" if first.cache else ""
    buffer = f", {first.buffer}" if first.buffer else ""
    what = f"{plural(first.ranks, 'rank')}, {plural(first.blocks, 'block')} of {size_text(first.bytes)}"
    title = f"Strategies: {what}{buffer}{cache}"
    table = Table(f"strategies-{number}", title, [Column("strategy", numbers=False)])
    for series in shown:
        table.columns += [Column(WORDS[series], "time"), Column("", "GB/s")]
    table.columns.append(
        Column("read", "of copy" if any("copy" in line.carrier for line in lines) else "share")
    )
    marks = Marks()
    for (name, layout), group in ask.grouped(lines, lambda line: (line.name, line.layout)).items():
        row = [Cell(strategy_text(name, layout))]
        share = Cell("")
        for series in shown:
            line = next(iter(ask.pick(group, series=series)), None)
            row += [_seconds(line, group, marks), _rate(line)]
            if line is not None and series == "read" and line.share is not None:
                share = Cell(percent(line.share), line.share, line.carrier)
        table.rows.append([*row, share])
    table.notes = [
        f"share of: {text}" for text in dict.fromkeys(line.carrier for line in lines if line.carrier)
    ]
    table.notes += marks.notes() + _shifts(lines) + ask.certainty(lines)
    return table


def _places(lines: list[Line]) -> list[tuple[int, int]]:
    return sorted({(line.ranks, line.bytes) for line in lines})


def _block(line: Line, counted: bool) -> Cell:
    size = size_text(line.bytes)
    return Cell(f"{line.blocks} × {size}" if counted else size, float(line.bytes))


def _seconds(line: Line | None, place: list[Line], marks: Marks) -> Cell:
    seconds = None if line is None else ask.median(line)
    if line is None or seconds is None:
        reasons = [line] if line is not None else [other for other in place if other.skipped]
        return ask.not_run(reasons[0] if reasons else None, marks)
    return Cell(time_text(seconds), seconds, ask.hint(line), marks.sign(*line.labels))


def _rate(line: Line | None, ranks: int = 1) -> Cell:
    seconds = None if line is None else ask.median(line)
    if line is None or seconds is None:
        return Cell("")
    return ask.rate_of(line, line.amount / ranks, seconds)


def _read_over_write(found: dict[str, Line | None]) -> Cell:
    rates = {series: line.rate() for series, line in found.items() if line is not None and ask.median(line)}
    write, read = rates.get("write_new", rates.get("write")), rates.get("read")
    return Cell(times(read / write), read / write) if write and read else Cell("")


def _shifts(lines: list[Line]) -> list[str]:
    read = [line for line in lines if line.series == "read"]
    shifts = sorted({line.shift for line in read if line.shift})
    notes = [f"each of several ranks reads the blocks of the rank {shift} further on" for shift in shifts]
    if shifts and (own := sorted({line.ranks for line in read if not line.shift})):
        notes.append(f"with {listing(list(map(str, own)))} rank{'s' * (own != [1])}: its own blocks")
    checks = sorted({line.check for line in lines if line.check and line.check != "none"})
    return [*notes, *[f"checked: {check}" for check in checks]]
