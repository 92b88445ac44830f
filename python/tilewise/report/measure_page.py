"""The page of a measurement: what was found, under which circumstances, every table and every figure."""

from __future__ import annotations

from collections.abc import Iterator

from tilewise.base.units import plural
from tilewise.measurement.result import Line, Measurement
from tilewise.report import measure_files, measure_messages, measure_node
from tilewise.report import measured as ask
from tilewise.report.environment import environment_table
from tilewise.report.figures.files import file_plots
from tilewise.report.figures.messages import matrix_plots, message_plots, model_plots
from tilewise.report.figures.node import node_plots
from tilewise.report.figures.style import Plot
from tilewise.report.measure_model import model_table
from tilewise.report.numbers import giga, significant, size_text, time_text
from tilewise.report.page import Fact, Page, Section, section
from tilewise.report.table import Table, number_columns, text_columns

_FACTS = 8


def page_of(measurement: Measurement) -> Page:
    """The page as a value."""
    told = measurement.environment
    host = str(told.get("host", "this machine"))
    mpi = " ".join(str(told.get("mpi_library", "")).split("\n")[0].split())
    words = [str(told.get("cpu", "")), mpi, measurement.time]
    return Page(
        title=f"Measured: {host}",
        subtitle=" · ".join(filter(None, words)),
        facts=_facts(measurement.lines)[:_FACTS],
        warnings=[*measurement.warnings, *ask.disturbed(measurement)],
        sections=list(_sections(measurement)),
    )


def plots_of(measurement: Measurement) -> Iterator[Plot]:
    """Every figure, in the order of a page."""
    for plots in (message_plots, matrix_plots, file_plots, node_plots, model_plots):
        yield from plots(measurement)


def _sections(measurement: Measurement) -> Iterator[Section]:
    of = measurement
    told = "Times are one way unless a title says otherwise: half a round trip of Send and Recv."
    words = [told] if ask.first(of.lines, kind="ping") else []
    ends, per_byte = measure_messages.ends(of), measure_messages.per_byte(of)
    yield section("messages", "Messages", words, ends, *per_byte, *message_plots(of))
    matrices = measure_messages.matrices(of)
    yield section("pairs", "Every pair of ranks", [], *matrices, *matrix_plots(of))
    yield section("collectives", "Collectives", [], measure_messages.collectives(of))
    files = [*measure_files.rank_block(of), *measure_files.strategies(of)]
    yield section("files", "Files", _cache_words(of), *files, *file_plots(of))
    memory, compute = measure_node.memory(of), measure_node.compute(of)
    yield section("node", "Memory and arithmetic", [], memory, compute, *node_plots(of))
    yield section("model", "Cost model", [], model_table(of.model), *model_plots(of))
    yield section("how", "How it was measured", _how(of), *_circumstances(of))
    yield section("lines", "All lines", [], measure_node.every_line(of) if of.lines else None)


def _facts(lines: list[Line]) -> list[Fact]:
    facts = []
    pings = [line for line in ask.ran(ask.pick(lines, kind="ping")) if line.pattern != "stream"]
    for level in ask.by_level(line.level for line in pings)[:2]:
        there = ask.pick(pings, level=level, pairs=min(line.pairs for line in ask.pick(pings, level=level)))
        there = ask.pick(there, name=there[0].name, buffer=there[0].buffer)
        small, large = min(there, key=lambda line: line.bytes), max(there, key=lambda line: line.bytes)
        where = f"{level}, {ask.exchange(small)}"
        facts.append(Fact("Latency", time_text(ask.one_way(small)), f"{where}, {size_text(small.bytes)}"))
        facts.append(
            Fact("Bandwidth", f"{giga(ask.pair_rate(large))} GB/s", f"{where}, {size_text(large.bytes)}")
        )
    for series, name in (("write_new", "First write"), ("read", "Read")):
        rated = [line for line in ask.ran(ask.pick(lines, kind="file", series=series)) if line.rate()]
        if rated:
            best = max(rated, key=lambda line: line.rate() or 0.0)
            note = f"{best.name}, {plural(best.ranks, 'rank')}, {size_text(best.bytes)} blocks"
            note += f", {best.cache} cache" if best.cache else ""
            facts.append(Fact(f"{name}, best", f"{giga(best.rate())} GB/s", note))
    copies = [line for line in ask.ran(ask.pick(lines, kind="memory", name="copy")) if line.rate()]
    if copies:
        far = max(copies, key=lambda line: (line.bytes, line.threads))
        note = f"{size_text(far.bytes)} arrays, {ask.threads_text(far.threads)}, read and written"
        facts.append(Fact("Memory copy", f"{giga(far.rate())} GB/s", note))
    products = [line for line in ask.ran(ask.pick(lines, kind="compute", series="seconds")) if line.rate()]
    if products:
        best = max(products, key=lambda line: (line.dtype == "float64", line.rate() or 0.0))
        note = f"{best.dtype}, {best.size}², {ask.threads_text(best.threads)}"
        facts.append(Fact("Arithmetic", f"{giga(best.rate())} GFLOP/s", note))
    return facts


def _cache_words(measurement: Measurement) -> list[str]:
    caches = {line.cache for line in ask.pick(measurement.lines, kind="file")}
    words = {
        "warm": "Warm: the file was just written, so reads may be served from memory.",
        "cold": "Cold: the file's pages were dropped from memory before each reading.",
        "direct": "Direct: reading and writing past the page cache.",
    }
    return [" ".join(text for name, text in words.items() if name in caches)] if caches & set(words) else []


def _how(measurement: Measurement) -> list[str]:
    counts = sorted({len(line.launches) for line in ask.ran(measurement.lines)})
    samples = [line.summary.n for line in measurement.lines if line.summary is not None]
    words = [f"Command: {' '.join(measurement.command)}; {significant(measurement.seconds)} s."]
    if samples:
        launches = "–".join(map(str, dict.fromkeys(counts[:1] + counts[-1:]))) or "no"
        words.append(
            f"Each line has the samples of {launches} launches ({min(samples)} to {max(samples)} samples), "
            "after warm-up samples that are not counted. A sample is the largest time of all ranks after a "
            "synchronised start; the interval bounds the median with 95 % confidence; outliers are marked, "
            "not dropped."
        )
    clock = measure_node.clock_text(measurement)
    return [*words, *([clock[0].upper() + clock[1:] + "."] if clock else [])]


def _circumstances(measurement: Measurement) -> list[Table | None]:
    skipped = Table("skipped", "Not run", number_columns("lines") + text_columns("reason"))
    left = (line for line in measurement.lines if line.skipped)
    for reason, lines in ask.grouped(left, lambda line: line.skipped).items():
        skipped.add(len(lines), reason)
    return [
        measure_node.levels(measurement),
        skipped if skipped.rows else None,
        measure_node.disturbances(measurement),
        environment_table(measurement.environment),
    ]
