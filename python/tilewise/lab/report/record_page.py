"""The page of records: one in full (phases, words, check, bytes, files, environment), or several compared."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import msgspec

from tilewise.base.units import bytes_text, plural, rate_text
from tilewise.lab.report import record_tables as tables
from tilewise.lab.report.data_path import data_path, way_of
from tilewise.lab.report.environment import environment_table
from tilewise.lab.report.explain import variant_line
from tilewise.lab.report.figures.stacks import Stack, stacks
from tilewise.lab.report.figures.style import PHASES, Plot
from tilewise.lab.report.numbers import percent, time_text
from tilewise.lab.report.page import Drawing, Fact, Page, section
from tilewise.lab.report.roofline import roofline
from tilewise.launch.record import Matrix, Record

_IN_FULL = 8  # records: of more there is one table
_BARS = 40  # rows of a figure: more are in the table


def record_page(names: Sequence[str], records: Sequence[Record]) -> Page:
    """The page of `records`, which lie in files called `names`; at least one."""
    if len(records) == 1:
        return _single(records[0])
    machines = dict.fromkeys(record.environment.host for record in records)
    commands = dict.fromkeys(record.command for record in records)
    parts = [tables.records(names, records), *_compared(names, records)]
    sections = [section("records", "Records", [], *parts)]
    for place, (name, record) in enumerate(zip(names, records, strict=True), 1):
        if len(records) <= _IN_FULL:
            told = [tables.phases(record), tables.explained(record)]
            title = f"{name}: {record.command}"
            sections.append(section(f"record-{place}", title, [variant_line(record)], *told))
    return Page(
        title=f"{plural(len(records), 'job')}: {', '.join(commands)}",
        subtitle=" · ".join(machines),
        sections=sections,
        warnings=list(
            dict.fromkeys(text for each in records for text in (*each.warnings, *tables.disturbed(each)))
        ),
    )


def _single(record: Record) -> Page:
    of = record.environment
    names = ", ".join(os.path.basename(each.path) for each in record.outputs[:3])
    sizes = " → ".join(", ".join(map(_sized, part)) for part in (record.inputs, record.outputs) if part)
    several = tables.samples(record) if len(record.samples) > 1 else None
    around = environment_table(msgspec.to_builtins(of))
    sections = [
        section("time", "Where the time went", [], tables.phases(record), several, *_plots(record)),
        section("explained", "What was done", [], tables.explained(record), tables.moved(record)),
        section("path", "Data path", [], _path(record) if record.outputs else None),
        section("files", "Files and ranks", [], tables.files(record), tables.ranks(record)),
        section("environment", "Environment", [], tables.meanwhile(record), around),
    ]
    words = (sizes, of.host, of.cpu, " ".join(of.mpi_library.split()[:3]), of.time)
    return Page(
        title=f"{record.command}: {names}" if names else record.command,
        subtitle=" · ".join(filter(None, words)),
        sections=sections,
        facts=list(_facts(record)),
        warnings=[*record.warnings, *tables.disturbed(record)],
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
        yield Fact("Check", proof.verdict(), tables.proof_text(record))
    else:
        yield Fact("Check", "none", "--verify fast asks for it" if record.outputs else "")


def _plots(record: Record) -> list[Plot | None]:
    rows = [Stack("mean over ranks", _means(record))]
    title = "Phases"
    caption = "Each rank is in one phase at a time, so the phases of a rank add up to its total."
    if len(record.samples) > 1:
        for place, sample in enumerate(record.samples[:_BARS], 1):
            rows.append(Stack(f"repetition {place}", {name: sample.get(name, 0.0) for name in PHASES}))
        title = "Phases, and those of each repetition"
        caption = "Each phase of a repetition is that of the slowest rank; reading and writing happen once."
    return [stacks("phases", title, caption, rows), roofline("roofline", [record])]


def _compared(names: Sequence[str], records: Sequence[Record]) -> list[Plot | None]:
    shown = list(zip(names, records, strict=True))[:_BARS]
    rows = [Stack(name, _means(record), variant_line(record)) for name, record in shown]
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
