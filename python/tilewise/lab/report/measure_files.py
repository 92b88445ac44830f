"""Tables of files: report 4's, ranks × block, with first write, rewrite and read; strategies side by side."""

from __future__ import annotations

from tilewise.base.units import listing, plural
from tilewise.lab.measurement.result import Line, Measurement
from tilewise.lab.report import measured as ask
from tilewise.lab.report.table import (
    Cell,
    Column,
    Footnotes,
    Table,
    giga,
    number_columns,
    percent,
    quantity,
    size_text,
    text_columns,
    times,
)

WORDS = {"write_new": "first write", "write": "rewrite", "read": "read"}
_RESTED = "write_rested"


def setting(line: Line) -> tuple[str, str, str, str, bool]:
    """Settings that one of report 4's tables keeps: strategy, layout, buffer, cache, flushed or not."""
    return line.name, line.layout, line.buffer, line.cache, line.sync


def setting_text(lines: list[Line]) -> str:
    """`collective, interleaved, malloc, cache warm, writes not flushed`."""
    line = lines[0]
    words = [line.name, line.layout if line.layout != line.name else "", line.buffer, ask.states(lines)]
    return ", ".join(filter(None, [*words, flushed_text(line)]))


def flushed_text(line: Line) -> str:
    """Say whether the time of a write includes the disk's."""
    return "writes flushed" if line.sync else "writes not flushed"


def strategy_text(line: Line) -> str:
    """`positioned`, or `positioned, contiguous` where the layout is not the usual one."""
    return line.name if line.layout in ("", "interleaved", line.name) else f"{line.name}, {line.layout}"


def fastest(measurement: Measurement) -> Table | None:
    """The fastest way to write and to read, for each state of the cache and number of ranks."""
    lines = ask.pick(measurement.lines, kind="file")
    if not lines:
        return None
    title = f"Files: the fastest way, GB/s of all ranks; {flushed_text(lines[0])}"
    table = Table("files", title, [*text_columns("cache"), *number_columns("ranks")])
    rested = [_RESTED] if ask.pick(lines, series=_RESTED) else []
    table.columns += [Column(WORDS["write_new"], "GB/s"), *text_columns("by")]
    table.columns += [Column("after a pause", "GB/s") for _ in rested]
    table.columns += [Column(WORDS["read"], "GB/s"), *text_columns("by")]
    marks = ask.marks(measurement)
    groups = ask.grouped(lines, lambda line: (ask.state(line), line.buffer.replace("malloc", ""), line.ranks))
    for (state, buffer, ranks), group in groups.items():
        cells = []
        for series in ("write_new", *rested, "read"):
            rated = [line for line in ask.pick(group, series=series) if line.rate()]
            best = max(rated, key=lambda line: line.rate() or 0.0, default=None)
            way = f"{best.name}, {size_text(best.bytes)}" if best else ""
            cells += [_rate(best or _skipped(group), marks), *[Cell(way)] * (series != _RESTED)]
        table.add(", ".join(filter(None, (state, buffer))), ranks, *cells)
    table.notes = marks.notes() + _devices(lines)
    if rested:
        table.notes.append(
            "after a pause: a first write 3 s after the last one, by positioned calls. By then the host has"
            " taken this virtual machine's free pages, and gives them back one by one: so a job writes that"
            " starts alone"
        )
    return table


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
    groups = enumerate(settings(measurement), 1)
    return [_rank_block(number, group, ask.marks(measurement)) for number, group in groups]


def _rank_block(number: int, lines: list[Line], marks: Footnotes) -> Table:
    counts = {line.blocks for line in lines}
    amount = f", {max(counts)} blocks per rank" if len(counts) == 1 else ""
    title = f"Files: {setting_text(lines)}{amount}"
    table = Table(f"files-{number}", title, number_columns("ranks", "block"))
    shown = _shown(lines)
    names = [WORDS[series] for series in shown]
    table.columns += number_columns(*names, unit="time") + number_columns(*names, unit="GB/s")
    table.columns.append(Column("read/write"))
    for ranks, size in _places(lines):
        place = ask.pick(lines, ranks=ranks, bytes=size)
        of_series = {series: ask.first(place, series=series) for series in shown}
        block = f"{place[0].blocks} × {size_text(size)}" if len(counts) > 1 else size_text(size)
        cells = [_seconds(line, place, marks) for line in of_series.values()] + [
            _rate(line) for line in of_series.values()
        ]
        head = Cell(block, float(size), mark=_remarked(place, marks))
        table.add(ranks, head, *cells, _read_over_write(of_series))
    table.notes = [
        *marks.notes(),
        "read / write: GB/s of reading over GB/s of the first write, as in report 4",
    ]
    table.notes += _shifts(lines) + ask.certainty(lines)
    return table


def _shown(lines: list[Line]) -> list[str]:
    """The series that are there: first write, rewrite, read."""
    return [series for series in WORDS if ask.first(lines, series=series)]


def beside(measurement: Measurement) -> list[list[Line]]:
    """Lines of several strategies at the same ranks and block, and those that no other table has."""
    lines = ask.pick(measurement.lines, kind="file")
    groups = ask.grouped(lines, lambda line: (line.ranks, line.bytes, line.buffer, line.cache, line.sync))
    several = [group for group in groups.values() if len({(line.name, line.layout) for line in group}) > 1]
    lone = {setting(line) for line in lines} - {setting(group[0]) for group in settings(measurement)}
    return several + [
        group for group in groups.values() if group not in several and setting(group[0]) in lone
    ]


def beside_text(lines: list[Line]) -> str:
    """`Strategies: 2 ranks, 64 blocks of 128 kB, malloc, writes not flushed`."""
    line = lines[0]
    what = f"{plural(line.ranks, 'rank')}, {plural(line.blocks, 'block')} of {size_text(line.bytes)}"
    return f"Strategies: {', '.join(filter(None, (what, line.buffer, flushed_text(line))))}"


def strategies(measurement: Measurement) -> list[Table]:
    """Strategies beside each other: the rates of each, and what the page cache had for its reads."""
    groups = enumerate(beside(measurement), 1)
    return [_strategies(number, group, ask.marks(measurement)) for number, group in groups]


def _strategies(number: int, lines: list[Line], marks: Footnotes) -> Table:
    table = Table(f"strategies-{number}", beside_text(lines), text_columns("strategy", "cache"))
    shown = _shown(lines)
    table.columns += number_columns(*(WORDS[series] for series in shown), unit="GB/s")
    copied = any("copy" in each.carrier for each in lines)
    table.columns.append(Column("read", "of copy" if copied else "share"))
    for group in ask.grouped(lines, lambda line: (line.name, line.layout)).values():
        read = ask.first(group, series="read")
        share = quantity(read.share, percent, read.carrier) if read else Cell("")
        head = Cell(strategy_text(group[0]), mark=_remarked(group, marks))
        rates = [_rate(ask.first(group, series=series) or _skipped(group), marks) for series in shown]
        table.add(head, ask.state(read or group[0]), *rates, share)
    carriers = dict.fromkeys(each.carrier for each in lines if each.carrier)
    table.notes = [f"share of: {carrier}" for carrier in carriers]
    table.notes += marks.notes() + _shifts(lines) + ask.certainty(lines)
    return table


def _places(lines: list[Line]) -> list[tuple[int, int]]:
    return sorted({(line.ranks, line.bytes) for line in lines})


def _remarked(lines: list[Line], marks: Footnotes) -> str:
    return marks.sign(*(remark for line in lines for remark in ask.remarks(line)))


def _seconds(line: Line | None, place: list[Line], marks: Footnotes) -> Cell:
    """The time of `line`, or the reason of whatever was not run at its place."""
    return ask.cell_of(line or _skipped(place), marks)


def _skipped(lines: list[Line]) -> Line | None:
    return next((line for line in lines if line.skipped), None)


def _rate(line: Line | None, marks: Footnotes | None = None) -> Cell:
    if line is None or (marks is None and ask.median(line) is None):
        return Cell("")
    return ask.cell_of(line, marks, giga, Line.rate)


def _read_over_write(of_series: dict[str, Line | None]) -> Cell:
    rates = {series: line.rate() for series, line in of_series.items() if line is not None}
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
