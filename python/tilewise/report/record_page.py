"""The page of records: one in full (phases, words, check, bytes, files, environment), or several compared."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import msgspec

from tilewise.launch.record import Matrix, Record
from tilewise.report import record_tables as tables
from tilewise.report.data_path import data_path, way_of
from tilewise.report.environment import environment_table
from tilewise.report.explain import variant_line
from tilewise.report.figures.stacks import Stack, stacks
from tilewise.report.figures.style import PHASES, Plot
from tilewise.report.numbers import percent, time_text
from tilewise.report.page import Drawing, Fact, Page, Section
from tilewise.report.roofline import roofline, work_of
from tilewise.units import bytes_text, plural, rate_text

_BARS = 40  # rows of a figure: more are in the table


def record_page(names: Sequence[str], records: Sequence[Record]) -> Page:
    """The page of `records`, which lie in files called `names`; at least one."""
    if len(records) == 1:
        return _single(records[0])
    machines = dict.fromkeys(record.environment.host for record in records)
    commands = dict.fromkeys(record.command for record in records)
    sections = [
        Section("records", "Records", [], [tables.records(names, records)], _compared(names, records)),
        *(
            Section(f"record-{place}", f"{name}: {record.command}", [variant_line(record)], _tables(record))
            for place, (name, record) in enumerate(zip(names, records, strict=True), 1)
            if len(records) <= 8
        ),
    ]
    return Page(
        title=f"{plural(len(records), 'job')}: {', '.join(commands)}",
        subtitle=" · ".join(machines),
        sections=sections,
        warnings=list(dict.fromkeys(text for record in records for text in record.warnings)),
    )


def _single(record: Record) -> Page:
    of = record.environment
    names = ", ".join(os.path.basename(each.path) for each in record.outputs[:3])
    sizes = " → ".join(", ".join(map(_sized, part)) for part in (record.inputs, record.outputs) if part)
    times = [tables.phases(record), *([tables.samples(record)] if len(record.samples) > 1 else [])]
    sections = [
        Section("time", "Where the time went", [], times, _plots(record)),
        Section("explained", "What was done", [], [tables.explained(record), tables.moved(record)]),
        Section("path", "Data path", [], [], [], list(_path(record))),
        Section("files", "Files and ranks", [], [tables.files(record), tables.ranks(record)]),
        Section("environment", "Environment", [], _environment(record)),
    ]
    return Page(
        title=f"{record.command}: {names}" if names else record.command,
        subtitle=" · ".join(
            filter(None, (sizes, of.host, of.cpu, " ".join(of.mpi_library.split()[:3]), of.time))
        ),
        sections=sections,
        facts=list(_facts(record)),
        warnings=list(record.warnings),
    )


def _sized(matrix: Matrix) -> str:
    return f"{os.path.basename(matrix.path)} {'×'.join(map(str, matrix.shape))}"


def _tables(record: Record) -> list[tables.Table]:
    return [tables.phases(record), tables.explained(record)]


def _environment(record: Record) -> list[tables.Table]:
    found = environment_table(msgspec.to_builtins(record.environment))
    return [found] if found is not None else []


def _facts(record: Record) -> Iterator[Fact]:
    seconds = record.seconds
    yield Fact("Total", time_text(seconds.total.max), f"{time_text(seconds.wall)} with the launch")
    whole = seconds.total.mean or 1.0
    shares = {name: getattr(seconds, name).mean / whole for name in PHASES}
    most = max(shares, key=lambda name: shares[name])
    yield Fact("Most of it", most, f"{percent(shares[most])} of the time of a rank")
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
        yield Fact("Check", "none", "--verify fast asks for it")


def _plots(record: Record) -> list[Plot]:
    seconds = record.seconds
    rows = [Stack("mean over ranks", {name: getattr(seconds, name).mean for name in PHASES})]
    caption = "Each rank is in one phase at a time, so that the phases of a rank add up to its total."
    plots = [stacks("phases", "Phases", caption, rows)] if len(record.samples) < 2 else []
    if len(record.samples) > 1:
        rows += [
            Stack(f"repetition {place}", {name: sample.get(name, 0.0) for name in PHASES})
            for place, sample in enumerate(record.samples[:_BARS], 1)
        ]
        caption = "Of a repetition each phase is that of the slowest rank; reading and writing happen once."
        plots.append(stacks("phases", "Phases, and those of each repetition", caption, rows))
    made = roofline("roofline", [work for work in [work_of(msgspec.to_builtins(record))] if work is not None])
    return [*plots, *([made] if made is not None else [])]


def _compared(names: Sequence[str], records: Sequence[Record]) -> list[Plot]:
    rows = [
        Stack(name, {phase: getattr(record.seconds, phase).mean for phase in PHASES}, variant_line(record))
        for name, record in zip(names[:_BARS], records[:_BARS], strict=True)
    ]
    caption = "Mean over ranks." + (
        f" {len(records) - _BARS} more are in the table." if len(records) > _BARS else ""
    )
    works = [work for record in records if (work := work_of(msgspec.to_builtins(record))) is not None]
    made = roofline("roofline", works)
    return [stacks("records", "Where the time went", caption, rows), *([made] if made is not None else [])]


def _path(record: Record) -> Iterator[Drawing]:
    variant = record.variant
    way = way_of(msgspec.to_builtins(record))
    if way is None:
        return
    many = (
        ""
        if variant.ranks == 4
        else f"Drawn for 4 ranks; there {'was' if variant.ranks == 1 else 'were'} {variant.ranks}."
    )
    yield data_path("path", record.command, *way, many)
