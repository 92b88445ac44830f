"""Tables of a record's page: phases over ranks, what was moved, files, ranks, repetitions; records beside."""

from __future__ import annotations

from collections.abc import Sequence

from tilewise.launch.record import Matrix, Record, Spread
from tilewise.report.explain import closing_lines, variant_line
from tilewise.report.figures.style import PHASES
from tilewise.report.numbers import percent, significant, time_text
from tilewise.report.table import Cell, Column, Table
from tilewise.units import bytes_text, rate_text

__all__ = ["Table", "explained", "files", "moved", "phases", "proof_text", "ranks", "records", "samples"]

_PARTS = {"input": ("file", "parse", "distribute"), "output": ("file", "format", "collect")}


def phases(record: Record) -> Table:
    """Seconds of each phase over ranks, with the parts of input and output."""
    table = Table("phases", "Seconds of each phase", [Column("phase", numbers=False)])
    table.columns += [Column(name, "s") for name in ("min", "mean", "max")] + [Column("share")]
    whole = record.seconds.total.mean
    for name in (*PHASES, "total"):
        spread: Spread = getattr(record.seconds, name)
        share = spread.mean / whole if whole > 0 else 0.0
        tone = "strong" if name == "total" else ""
        table.rows.append([Cell(name, tone=tone), *_numbers(spread, tone), Cell(percent(share), share)])
        for part in _PARTS.get(name, ()):
            inner: Spread = getattr(spread, part)
            if inner.max > 0:
                share = inner.mean / whole if whole > 0 else 0.0
                cells = _numbers(inner, "faint")
                name_of_part = Cell(f"of it {part}", tone="faint")
                table.rows.append([name_of_part, *cells, Cell(percent(share), share, tone="faint")])
    wall = record.seconds.wall
    table.add("whole command", "", "", Cell(significant(wall), wall), "")
    table.notes = ["Over the ranks. A rank's phases add up to its total; what overlaps is counted once."]
    return table


def _numbers(spread: Spread, tone: str) -> list[Cell]:
    values = (spread.min, spread.mean, spread.max)
    return [Cell(significant(value), value, time_text(value), tone=tone) for value in values]


def explained(record: Record) -> Table:
    """What the command says at its end, and why the plan chose as it did."""
    table = Table("explained", "In words", [Column("", numbers=False), Column("", numbers=False)])
    for line in closing_lines(record):
        table.add(line.plain[:10].strip(), line.plain[10:])
    table.add("chosen by", record.chosen_by + (f"; given: {', '.join(record.fixed)}" if record.fixed else ""))
    for place, reason in enumerate(record.reasons):
        table.add("" if place else "because", reason)
    for name, value in record.result.items():
        table.add(name.replace("_", " "), _short(value))
    return table


def _short(value: object) -> str:
    text = significant(value, 4) if isinstance(value, float) else str(value)
    return text if len(text) <= 200 else text[:199] + "…"


def moved(record: Record) -> Table:
    """Bytes, messages, calls, operations, and how fast."""
    table = Table(
        "moved",
        "What was moved and computed",
        [Column("what", numbers=False), Column("how much"), Column("rate")],
    )
    told, rates = record.bytes, record.rates
    rows: list[tuple[str, float, str, float | None, str]] = [
        ("read", told.read, bytes_text(told.read), rates.read_bytes_per_second, "B/s"),
        ("of that useful", told.useful, bytes_text(told.useful), None, ""),
        ("written", told.written, bytes_text(told.written), rates.written_bytes_per_second, "B/s"),
        ("exchanged", told.exchanged, bytes_text(told.exchanged), rates.exchanged_bytes_per_second, "B/s"),
        (
            "most that one rank received",
            told.exchanged_max_rank,
            bytes_text(told.exchanged_max_rank),
            None,
            "",
        ),
        ("copied in the node", told.copied_in_node, bytes_text(told.copied_in_node), None, ""),
        ("messages", record.messages, str(record.messages), None, ""),
        ("calls of reading and writing", record.io_calls, str(record.io_calls), None, ""),
        ("operations", record.flops, significant(record.flops), rates.flops_per_second, "FLOP/s"),
    ]
    for name, value, text, rate, unit in rows:
        speed = Cell(rate_text(rate, unit), rate) if rate else Cell("")
        table.add(name, Cell(text, float(value)), speed)
    return table


def files(record: Record) -> Table:
    """Inputs and outputs, and where they lay."""
    names = ("", "path", "format", "shape", "type", "order", "file system", "page cache before")
    table = Table("files", "Files", [Column(name, numbers=False) for name in names])
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
    table = Table("ranks", "Ranks", [Column("rank"), Column("host", numbers=False), Column("node")])
    table.columns += [Column("processors", numbers=False), Column("memory")]
    peaks = record.peak_rss_bytes.per_rank
    for place in record.placement:
        peak = peaks[place.rank] if place.rank < len(peaks) else None
        cells = [
            Cell(str(place.rank), float(place.rank)),
            Cell(place.host),
            Cell(str(place.node), float(place.node)),
        ]
        memory = Cell("") if peak is None else Cell(bytes_text(peak), float(peak))
        cpus = ", ".join(map(str, place.cpus)) if isinstance(place.cpus, list) else str(place.cpus)
        table.rows.append([*cells, Cell(cpus), memory])
    table.folded = len(table.rows) > 32
    return table


def samples(record: Record) -> Table:
    """Every repetition: the seconds of each phase on the slowest rank."""
    names = [name for name in (*PHASES, "total") if any(name in sample for sample in record.samples)]
    table = Table("samples", "Repetitions", [Column("repetition"), *[Column(name, "s") for name in names]])
    for place, sample in enumerate(record.samples, 1):
        cells = [Cell(significant(sample.get(name)), sample.get(name)) for name in names]
        table.rows.append([Cell(str(place), float(place)), *cells])
    return table


def records(names: Sequence[str], found: Sequence[Record]) -> Table:
    """A row for each record: what it was, its phases, how fast, and whether it was verified."""
    table = Table("records", "Jobs", [Column("record", numbers=False), Column("command", numbers=False)])
    table.columns += [Column("shape", numbers=False), Column("how", numbers=False)]
    table.columns += [Column(name, "s") for name in (*PHASES, "total", "wall")]
    table.columns += [Column("arithmetic", "GFLOP/s"), Column("check", numbers=False)]
    for name, record in zip(names, found, strict=True):
        shape = "×".join(map(str, record.outputs[0].shape)) if record.outputs else ""
        spreads = [getattr(record.seconds, phase).max for phase in (*PHASES, "total")] + [record.seconds.wall]
        rate = record.rates.flops_per_second
        proof = record.verification
        said = Cell("none", tone="faint")
        if proof is not None:
            good = proof.passed and proof.share >= 1
            said = Cell(proof.verdict(), tone="good" if good else "faint" if proof.passed else "bad")
        cells = [Cell(name), Cell(record.command), Cell(shape), Cell(variant_line(record))]
        cells += [Cell(significant(value), value) for value in spreads]
        table.rows.append([*cells, Cell(significant(rate / 1e9) if rate else "", rate), said])
    table.notes = ["Of each phase the slowest rank; of the whole job from the first to the last barrier."]
    return table


def proof_text(record: Record) -> str:
    """`freivalds: error 8.2e-16, at most 2.9e-14 is allowed`."""
    proof = record.verification
    if proof is None:
        return ""
    if proof.error is None or proof.tolerance is None:
        return proof.method
    return f"{proof.method}: error {proof.error:.1e}, at most {proof.tolerance:.1e} is allowed"
