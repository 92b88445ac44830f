"""The page of a measurement: what was found, under which circumstances, every table and every figure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tilewise.lab.measurement.result import Measurement
from tilewise.lab.report import measure_files, measure_messages, measure_node
from tilewise.lab.report import measured as ask
from tilewise.lab.report.measure import answers
from tilewise.lab.report.measure_node import model_table
from tilewise.lab.report.measure_plots import file_plots, matrix_plots, message_plots, model_plots, node_plots
from tilewise.lab.report.page import Fact, ReportPage, Section, environment_table, section
from tilewise.lab.report.style import Plot
from tilewise.lab.report.table import Cell, Table, number_columns, significant, text_columns

# Of the answers: table, row (None: the best), title of the column (None: the last one), what it is called,
# its unit, titles of circumstances, which stand before it or first behind it.
_FACTS = (
    ("latency-bandwidth", 0, "latency", "Message latency", "", ("level", "exchange")),
    ("latency-bandwidth", 0, "bandwidth", "Message bandwidth", "GB/s", ("level", "exchange")),
    ("files", None, "first write", "First write", "GB/s", ("cache", "ranks", "by")),
    ("files", None, "after a pause", "First write after a pause", "GB/s", ("cache", "ranks")),
    ("files", None, "read", "Read", "GB/s", ("cache", "ranks", "by")),
    ("memory-by-level", -1, None, "Memory copy", "GB/s", ("level",)),
    ("compute-by-type", -1, None, "Arithmetic", "GFLOP/s", ("type",)),
)
_CACHES = {
    "warm": "Warm: the file was just written, so reads may be served from memory.",
    "cold": "Cold: the file's pages were dropped from memory before each reading.",
    "bypassed": "Bypassed: reading and writing past the page cache.",
}
_LOW = 2.7  # inches: four figures and the facts fit a screen


def page_of(measurement: Measurement) -> ReportPage:
    """The page as a value."""
    told = measurement.environment
    host = str(told.get("host", "this machine"))
    mpi = " ".join(str(told.get("mpi_library", "")).split("\n")[0].split())
    words = [str(told.get("cpu", "")), mpi, measurement.time]
    return ReportPage(
        title=f"Measured: {host}",
        subtitle=" · ".join(filter(None, words)),
        facts=list(_facts(measurement)),
        warnings=[*ask.disturbed(measurement), *measurement.warnings],
        sections=list(_sections(measurement)),
    )


def plots_of(measurement: Measurement) -> Iterator[Plot]:
    """Every figure, in the order of a page."""
    for plots in (message_plots, matrix_plots, file_plots, node_plots, model_plots):
        yield from plots(measurement)


def _sections(measurement: Measurement) -> Iterator[Section]:
    """The answers as pictures, then everything, folded."""
    of = measurement
    messages, node, files = list(message_plots(of)), list(node_plots(of)), list(file_plots(of))
    first = messages[:2] + node[:2]
    for plot in first:
        plot.figure.set_figheight(_LOW)
    first = files[-2:] if of.kinds == ["file"] else first  # the last ones have all strategies
    messages, node, files = (
        [plot for plot in plots if plot not in first] for plots in (messages, node, files)
    )
    words = ["Times are one way unless a title says otherwise: half a round trip of Send and Recv."]
    caches = {ask.state(line) for line in ask.pick(of.lines, kind="file")}
    ends, per_byte = measure_messages.ends(of), measure_messages.per_byte(of)
    told: list[Table | Plot] = [*measure_files.rank_block(of), *measure_files.strategies(of), *files]
    yield section("glance", "At a glance", [], *first)
    folded = [
        section("messages", "Messages", words if ends else [], ends, *per_byte, *messages),
        section("pairs", "Every pair of ranks", [], *measure_messages.matrices(of), *matrix_plots(of)),
        section("collectives", "Collectives", [], measure_messages.collectives(of)),
        section("files", "Files", [text for name, text in _CACHES.items() if name in caches], *told),
        section(
            "node", "Memory and arithmetic", [], measure_node.memory(of), measure_node.compute(of), *node
        ),
        section("model", "Cost model", [], model_table(of.model), *model_plots(of)),
        section("how", "How it was measured", _how(of), *_circumstances(of)),
        section("lines", "All lines", [], measure_node.every_line(of) if of.lines else None),
    ]
    yield from (dataclasses.replace(each, folded=True) for each in folded)


def _facts(measurement: Measurement) -> Iterator[Fact]:
    tables = {table.key: table for table in answers(measurement)}
    for key, row, wanted, name, unit, around in _FACTS:
        table = tables.get(key)
        titles = [column.title for column in table.columns] if table is not None else []
        if table is None or (wanted is not None and wanted not in titles):
            continue
        place = titles.index(wanted) if wanted is not None else len(titles) - 1

        def value(cells: list[Cell], place: int = place) -> float:
            return cells[place].value or 0.0

        there = table.rows[row] if row is not None else max(table.rows, key=value)
        words = []
        for title in around:
            at = titles.index(title, place if titles.index(title) > place else 0)
            words.append(f"{title} " * table.columns[at].numbers + there[at].text)
        words.append(table.title.partition("; ")[2] if wanted is not None else titles[place])
        if there[place].value is not None:
            text = f"{there[place].text} {unit}".rstrip()
            yield Fact(name, text + there[place].mark, ", ".join(filter(None, words)))


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
