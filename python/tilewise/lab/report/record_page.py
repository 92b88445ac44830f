"""The page of one job, or of several side by side: phases over ranks, what was moved, files, repetitions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import msgspec

from tilewise.base.units import bytes_text, plural, rate_text
from tilewise.lab.report.bars import StackedBar, stacks
from tilewise.lab.report.data_path import data_path, way_of
from tilewise.lab.report.explain import closing_lines, variant_line
from tilewise.lab.report.page import Drawing, Fact, ReportPage, environment_table, flat, section
from tilewise.lab.report.roofline import roofline
from tilewise.lab.report.style import PHASES, Plot
from tilewise.lab.report.table import (
    Cell,
    Table,
    giga,
    number_columns,
    percent,
    quantity,
    significant,
    text_columns,
    time_columns,
    time_text,
)
from tilewise.launch.record import Matrix, RankSeconds, Record

_LONGEST = 200  # characters of what a job found out
_PARTS = {
    "input": {"file": "reading files", "parse": "parsing", "distribute": "distributing"},
    "output": {"file": "writing files", "format": "formatting", "collect": "collecting"},
}
_NOTHING = {"0", "no", "–", ""}  # of what a job found out: zeros and the like need no line


def phases(record: Record) -> Table:
    """Seconds of each phase over ranks, with the parts of input and output."""
    table = Table("phases", "Time of each phase", text_columns("phase"))
    columns, shown = time_columns(("min", "mean", "max", "predicted"), [record.seconds.total.max])
    table.columns += columns + number_columns("share")
    whole = record.seconds.total.mean
    foreseen = record.predicted_seconds or {}

    def add(name: str, spread: RankSeconds, tone: str) -> None:
        values = (spread.min, spread.mean, spread.max)
        cells = [Cell(shown(value), value, time_text(value), tone=tone) for value in values]
        share = spread.mean / whole if whole > 0 else 0.0
        faint = tone if tone == "faint" else ""
        before = quantity(foreseen.get(name), shown)
        table.add(Cell(name, tone=tone), *cells, before, quantity(share, percent, tone=faint))

    for name in (*PHASES, "total"):
        spread: RankSeconds = getattr(record.seconds, name)
        add(name, spread, "strong" if name == "total" else "")
        for part, words in _PARTS.get(name, {}).items():
            inner: RankSeconds = getattr(spread, part)
            if inner.max > 0:
                add(f"– {words}", inner, "faint")
    ends = [quantity(each, shown) for each in (record.seconds.wall, foreseen.get("wall"))]
    table.add("whole command", "", "", *ends, "")
    table.notes = ["Over the ranks. A rank's phases add up to its total; overlapping work is counted once."]
    return table


def explained(record: Record) -> Table:
    """Closing lines of the command, and why the plan chose as it did."""
    table = Table("explained", "In words", text_columns("", ""))
    for label, text, *_ in closing_lines(record):
        table.add(label, text)
    table.add("chosen by", record.chosen_by + (f"; given: {', '.join(record.fixed)}" if record.fixed else ""))
    for place, reason in enumerate(record.reasons):
        table.add("" if place else "because", reason)
    above = {(row[0].text, row[1].text) for row in table.rows}
    for name, value in (pair for pair in flat(record.result) if pair not in above):
        if not set(value.split(", ")) <= _NOTHING:
            table.add(name, value if len(value) <= _LONGEST else f"{value[: _LONGEST - 1]}…")
    return table


def moved(record: Record) -> Table:
    """Bytes, messages, calls, operations, and how fast."""
    columns = text_columns("what") + number_columns("amount", "rate")
    table = Table("moved", "Data moved and work done", columns)
    told, rates = record.bytes, record.rates

    def add(name: str, value: Cell | int, rate: float | None = None, unit: str = "B/s") -> None:
        table.add(name, value, quantity(rate or None, lambda rate: rate_text(rate, unit)))

    add("read", quantity(told.read, bytes_text), rates.read_bytes_per_second)
    add("of that useful", quantity(told.useful, bytes_text))
    add("written", quantity(told.written, bytes_text), rates.written_bytes_per_second)
    add("exchanged", quantity(told.exchanged, bytes_text), rates.exchanged_bytes_per_second)
    add("most received by one rank", quantity(told.exchanged_max_rank, bytes_text))
    add("copied within the node", quantity(told.copied_in_node, bytes_text))
    add("messages", record.messages)
    add("read and write calls", record.io_calls)
    add(
        "operations",
        quantity(record.flops, lambda count: rate_text(count, "FLOP")),
        rates.flops_per_second,
        "FLOP/s",
    )
    return table


def files(record: Record) -> Table:
    """Inputs and outputs, and where they lay."""
    names = ("", "path", "format", "shape", "type", "order", "file system", "page cache before")
    table = Table("files", "Files", text_columns(*names))
    stored = {each.path: each for each in record.environment.storage}

    def add(role: str, matrix: Matrix) -> None:
        where = stored.get(matrix.path)
        shape = "×".join(map(str, matrix.shape)) + (f" × {matrix.planes} planes" if matrix.planes > 1 else "")
        place = (where.file_system, where.cache) if where else ("", "")
        table.add(role, matrix.path, matrix.format, shape, matrix.dtype, matrix.order, *place)

    for matrix in record.inputs:
        add("in", matrix)
    for matrix in record.outputs:
        add("out", matrix)
    return table


def ranks(record: Record) -> Table:
    """Where each rank ran, and the most memory that it had."""
    table = Table("ranks", "Ranks", number_columns("rank") + text_columns("host") + number_columns("node"))
    table.columns += text_columns("processors") + number_columns("memory")
    peaks = record.peak_rss_bytes.per_rank
    for place in record.placement:
        peak = peaks[place.rank] if place.rank < len(peaks) else None
        cpus = ", ".join(map(str, place.cpus)) if isinstance(place.cpus, list) else str(place.cpus)
        table.add(place.rank, place.host, place.node, cpus, quantity(peak, bytes_text))
    table.folded = len(table.rows) > 32
    return table


def samples(record: Record) -> Table:
    """Every repetition: the seconds of each phase on the slowest rank."""
    names = [name for name in (*PHASES, "total") if any(name in sample for sample in record.samples)]
    columns, shown = time_columns(names, [record.seconds.total.max])
    table = Table("samples", "Repetitions", number_columns("repetition") + columns)
    for place, sample in enumerate(record.samples, 1):
        table.add(place, *[quantity(sample.get(name), shown) for name in names])
    return table


def records_table(names: Sequence[str], found: Sequence[Record]) -> Table:
    """A row for each record: what it was, its phases, how fast, and whether it was verified."""
    table = Table("records", "Jobs", text_columns("record", "command", "shape", "how"))
    columns, shown = time_columns((*PHASES, "total", "wall"), (each.seconds.total.max for each in found))
    table.columns += columns
    table.columns += [*number_columns("arithmetic", unit="GFLOP/s"), *text_columns("check")]
    for name, record in zip(names, found, strict=True):
        shape = "×".join(map(str, record.outputs[0].shape)) if record.outputs else ""
        spreads = [getattr(record.seconds, phase).max for phase in (*PHASES, "total")]
        rate = quantity(record.rates.flops_per_second or None, giga)
        proof = record.verification
        said = Cell("none", tone="faint")
        if proof is not None:
            good = proof.passed and proof.share >= 1
            said = Cell(proof.verdict(), tone="good" if good else "faint" if proof.passed else "bad")
        seconds = [quantity(each, shown) for each in (*spreads, record.seconds.wall)]
        table.add(name, record.command, shape, variant_line(record), *seconds, rate, said)
    table.notes = [
        "Each phase is that of the slowest rank; the whole job runs from the first to the last barrier."
    ]
    return table


def disturbed(record: Record) -> list[str]:
    """Sentences on what may have slowed the job down; of shared cores there is a warning already."""
    seen = record.disturbance
    return [
        f"during {record.command}: {label}"
        for label in (seen.labels if seen is not None else record.labels)
        if label != "oversubscribed"
    ]


def meanwhile(record: Record) -> Table | None:
    """Observations of the machine while the job ran; None where the record does not say."""
    seen = record.disturbance
    if seen is None:
        return None
    table = Table("meanwhile", "During the job", text_columns("what") + number_columns(""))
    table.add("disturbed", ", ".join(seen.labels) or "no")
    shares = (
        ("cores' time for other programs", seen.others),
        ("cores' time stolen by a hypervisor", seen.stolen),
    )
    for name, share in shares:
        if share is not None:
            table.add(name, quantity(share, percent))
    if seen.ceiling is not None:
        low, high = (significant(each / 1000) for each in seen.ceiling)
        table.add("highest frequency allowed, before and after", f"{low} and {high} GHz")
    if seen.throttled is not None:
        table.add("times that heat slowed cores down", seen.throttled)
    return table


def proof_text(record: Record) -> str:
    """`freivalds: error 8.2e-16, at most 2.9e-14 is allowed`."""
    proof = record.verification
    if proof is None:
        return ""
    more = f"; {proof.unchecked}" if proof.unchecked else ""
    if proof.error is None or proof.tolerance is None:
        return f"{proof.method}{more}"
    return f"{proof.method}: error {proof.error:.1e}, at most {proof.tolerance:.1e} allowed{more}"


_IN_FULL = 8  # records: of more there is one table
_BARS = 40  # rows of a figure: more are in the table


def record_page(names: Sequence[str], records: Sequence[Record]) -> ReportPage:
    """The page of `records`, which lie in files called `names`; at least one."""
    if len(records) == 1:
        return _single(records[0])
    machines = dict.fromkeys(record.environment.host for record in records)
    commands = dict.fromkeys(record.command for record in records)
    parts = [records_table(names, records), *_compared(names, records)]
    sections = [section("records", "Records", [], *parts)]
    for place, (name, record) in enumerate(zip(names, records, strict=True), 1):
        if len(records) <= _IN_FULL:
            told = [phases(record), explained(record)]
            title = f"{name}: {record.command}"
            sections.append(section(f"record-{place}", title, [variant_line(record)], *told))
    return ReportPage(
        title=f"{plural(len(records), 'job')}: {', '.join(commands)}",
        subtitle=" · ".join(machines),
        sections=sections,
        warnings=list(dict.fromkeys(text for each in records for text in (*each.warnings, *disturbed(each)))),
    )


def _single(record: Record) -> ReportPage:
    of = record.environment
    names = ", ".join(os.path.basename(each.path) for each in record.outputs[:3])
    sizes = " → ".join(", ".join(map(_sized, part)) for part in (record.inputs, record.outputs) if part)
    several = samples(record) if len(record.samples) > 1 else None
    around = environment_table(msgspec.to_builtins(of))
    path = _path(record) if record.outputs else None
    sections = [
        section("time", "Where the time went", [], phases(record), moved(record), several, *_plots(record)),
        section("explained", "What was done", [], explained(record)),
        section("files", "Files and ranks", [], ranks(record), files(record), path),
        section("environment", "Environment", [], meanwhile(record), around),
    ]
    words = (sizes, of.host, of.cpu, " ".join(of.mpi_library.split()[:3]), of.time)
    return ReportPage(
        title=f"{record.command}: {names}" if names else record.command,
        subtitle=" · ".join(filter(None, words)),
        sections=sections,
        facts=list(_facts(record)),
        warnings=[*record.warnings, *disturbed(record)],
    )


def _sized(matrix: Matrix) -> str:
    return f"{os.path.basename(matrix.path)} {'×'.join(map(str, matrix.shape))}"


def _facts(record: Record) -> Iterator[Fact]:
    seconds = record.seconds
    yield Fact("Total", time_text(seconds.total.max), f"{time_text(seconds.wall)} with the launch")
    whole = seconds.total.mean or 1.0
    shares = {name: mean / whole for name, mean in _means(record).items()}
    most = max(shares, key=lambda name: shares[name])
    yield Fact("Largest phase", most, f"{percent(shares[most])} of a rank's time")
    if record.rates.flops_per_second:
        part = f"{percent(record.fraction_of_peak)} of peak" if record.fraction_of_peak else "while computing"
        yield Fact("Arithmetic", rate_text(record.rates.flops_per_second, "FLOP/s"), part)
    read, written = record.rates.read_bytes_per_second, record.rates.written_bytes_per_second
    if read or written:
        note = f"writing {rate_text(written, 'B/s')}" if read and written else ""
        yield Fact("Reading" if read else "Writing", rate_text(read or written or 0.0, "B/s"), note)
    node = f"{bytes_text(record.peak_rss_bytes.node_sum)} on the node"
    yield Fact("Memory", bytes_text(record.peak_rss_bytes.max_rank), f"of the largest rank; {node}")
    proof = record.verification
    if proof is not None:
        yield Fact("Check", proof.verdict(), proof_text(record))
    else:
        yield Fact("Check", "none", "--verify fast asks for it" if record.outputs else "")


def _plots(record: Record) -> list[Plot | None]:
    rows = [StackedBar("mean over ranks", _means(record))]
    title = "Phases"
    caption = "Each rank is in one phase at a time, so the phases of a rank add up to its total."
    if len(record.samples) > 1:
        for place, sample in enumerate(record.samples[:_BARS], 1):
            rows.append(StackedBar(f"repetition {place}", {name: sample.get(name, 0.0) for name in PHASES}))
        title = "Phases, and those of each repetition"
        caption = "Each phase of a repetition is that of the slowest rank; reading and writing happen once."
    return [stacks("phases", title, caption, rows), roofline("roofline", [record])]


def _compared(names: Sequence[str], records: Sequence[Record]) -> list[Plot | None]:
    shown = list(zip(names, records, strict=True))[:_BARS]
    rows = [StackedBar(name, _means(record), variant_line(record)) for name, record in shown]
    caption = "Mean over ranks."
    if len(records) > _BARS:
        caption += f" {len(records) - _BARS} more are in the table."
    return [stacks("records", "Where the time went", caption, rows), roofline("roofline", records)]


def _means(record: Record) -> dict[str, float]:
    return {name: getattr(record.seconds, name).mean for name in PHASES}


def _path(record: Record) -> Drawing:
    way = way_of(record)
    many = (
        f"Drawn for {way.drawn} of {record.variant.ranks} ranks." if way.drawn < record.variant.ranks else ""
    )
    return data_path("path", record.command, way, many)
