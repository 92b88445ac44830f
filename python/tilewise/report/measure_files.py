"""Tables of files: report 4's, ranks × block, with first write, rewrite and read; strategies side by side."""

from __future__ import annotations

from tilewise.base.units import listing, plural
from tilewise.measurement.result import Line, Measurement
from tilewise.report import measured as ask
from tilewise.report.numbers import giga, percent, size_text, times
from tilewise.report.table import Cell, Column, Marks, Table, number_columns, quantity, text_columns

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
    amount = f", {max(counts)} blocks per rank" if len(counts) == 1 else ""
    table = Table(
        f"files-{number}", f"Files: {setting_text(lines[0])}{amount}", number_columns("ranks", "block")
    )
    shown = _shown(lines)
    names = [WORDS[series] for series in shown]
    table.columns += number_columns(*names, unit="time") + number_columns(*names, unit="GB/s")
    table.columns.append(Column("read/write"))
    marks = Marks()
    for ranks, size in _places(lines):
        place = ask.pick(lines, ranks=ranks, bytes=size)
        of_series = {series: ask.first(place, series=series) for series in shown}
        block = f"{place[0].blocks} × {size_text(size)}" if len(counts) > 1 else size_text(size)
        cells = [_seconds(line, place, marks) for line in of_series.values()] + [
            _rate(line) for line in of_series.values()
        ]
        table.add(ranks, Cell(block, float(size)), *cells, _read_over_write(of_series))
    table.notes = [
        *marks.notes(),
        "read / write: GB/s of reading over GB/s of the first write, as in report 4",
    ]
    table.notes += _shifts(lines) + ask.certainty(lines)
    return table


def _shown(lines: list[Line]) -> list[str]:
    """The series that are there: first write, rewrite, read."""
    return [series for series in WORDS if ask.first(lines, series=series)]


def per_rank(measurement: Measurement) -> list[Table]:
    """The same tables as GB/s of one rank, as in report 4's figure 5."""
    tables = []
    for number, lines in enumerate(settings(measurement), 1):
        title = f"Files, GB/s per rank: {setting_text(lines[0])}"
        table = Table(f"files-per-rank-{number}", title, number_columns("ranks", "block"))
        table.columns += number_columns(*(WORDS[series] for series in _shown(lines)), unit="GB/s per rank")
        for ranks, size in _places(lines):
            measured = [ask.first(lines, ranks=ranks, bytes=size, series=series) for series in _shown(lines)]
            table.add(ranks, ask.size_cell(size), *[_rate(line, ranks) for line in measured])
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
    line = lines[0]
    cache = f"{line.cache} cache" if line.cache else ""
    what = f"{plural(line.ranks, 'rank')}, {plural(line.blocks, 'block')} of {size_text(line.bytes)}"
    title = f"Strategies: {', '.join(filter(None, (what, line.buffer, cache)))}"
    table = Table(f"strategies-{number}", title, text_columns("strategy"))
    shown = _shown(lines)
    for series in shown:
        table.columns += [Column(WORDS[series], "time"), Column("", "GB/s")]
    copied = any("copy" in each.carrier for each in lines)
    table.columns.append(Column("read", "of copy" if copied else "share"))
    marks = Marks()
    for (name, layout), group in ask.grouped(lines, lambda line: (line.name, line.layout)).items():
        row = []
        for series in shown:
            measured = ask.first(group, series=series)
            row += [_seconds(measured, group, marks), _rate(measured)]
        read = ask.first(group, series="read")
        share = quantity(read.share, percent, read.carrier) if read else Cell("")
        table.add(strategy_text(name, layout), *row, share)
    carriers = dict.fromkeys(each.carrier for each in lines if each.carrier)
    table.notes = [f"share of: {carrier}" for carrier in carriers]
    table.notes += marks.notes() + _shifts(lines) + ask.certainty(lines)
    return table


def _places(lines: list[Line]) -> list[tuple[int, int]]:
    return sorted({(line.ranks, line.bytes) for line in lines})


def _seconds(line: Line | None, place: list[Line], marks: Marks) -> Cell:
    """The time of `line`, or the reason of whatever was not run at its place."""
    return ask.cell_of(line or next((other for other in place if other.skipped), None), marks)


def _rate(line: Line | None, ranks: int = 1) -> Cell:
    if line is None or ask.median(line) is None:
        return Cell("")
    return ask.cell_of(line, None, giga, lambda line: ask.rate(line, ranks))


def _read_over_write(of_series: dict[str, Line | None]) -> Cell:
    rates = {series: ask.rate(line) for series, line in of_series.items() if line is not None}
    write, read = rates.get("write_new") or rates.get("write"), rates.get("read")
    return quantity(read / write if write and read else None, times)


def _shifts(lines: list[Line]) -> list[str]:
    read = [line for line in lines if line.series == "read"]
    shifts = sorted({line.shift for line in read if line.shift})
    notes = [f"each of several ranks reads the blocks of rank + {shift}" for shift in shifts]
    if shifts and (own := sorted({line.ranks for line in read if not line.shift})):
        notes.append(f"with {listing(list(map(str, own)))} rank{'s' * (own != [1])}: its own blocks")
    checks = sorted({line.check for line in lines if line.check and line.check != "none"})
    return [*notes, *[f"checked: {check}" for check in checks], *_devices(lines)]


def _devices(lines: list[Line]) -> list[str]:
    """Which device the buffers of each rank were on: a note for each, of the most ranks that there are."""
    told = max((line.devices for line in lines), key=len, default=[])
    groups: dict[str, list[str]] = {}
    for rank, name in enumerate(told):
        groups.setdefault(name, []).append(str(rank))
    return [
        f"buffers of rank{'s' * (len(ranks) > 1)} {listing(ranks)}: {name}" for name, ranks in groups.items()
    ]
