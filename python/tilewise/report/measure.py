"""What `tilewise measure` prints: one screen, or with -v everything."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from tilewise.errors import clean
from tilewise.measure.result import Measurement
from tilewise.report import measure_files, measure_messages, measure_node
from tilewise.report import measured as ask
from tilewise.report.measure_model import model_table
from tilewise.report.table import Table, on_terminal
from tilewise.units import plural

_PRIMARY = "blocking"  # the exchange of report 1
_NOTE = "  "


def measure_tables(measurement: Measurement, verbose: bool = False) -> RenderableType:
    """What was found, for a terminal of 80 columns; one kind alone is told in full, all of them in brief."""
    tables = everything(measurement, brief=True) if verbose else _screen(measurement)
    parts: list[RenderableType] = [_heading(measurement, verbose)]
    for table in tables:
        parts += [Text(""), on_terminal(table)]
    notes = _notes(measurement)
    return Group(*parts, *([Text("")] if notes else []), *notes)


def everything(measurement: Measurement, brief: bool = False) -> list[Table]:
    """All tables, in the order of a page; `brief` leaves columns out that a terminal has no room for."""
    single = [
        measure_messages.ends(measurement),
        *measure_messages.per_byte(measurement, brief),
        measure_messages.collectives(measurement),
        *measure_messages.matrices(measurement),
        *measure_files.rank_block(measurement),
        *measure_files.per_rank(measurement),
        *measure_files.strategies(measurement),
        measure_node.memory(measurement),
        measure_node.compute(measurement),
        model_table(measurement.model),
        measure_node.levels(measurement),
        measure_node.disturbances(measurement),
        measure_node.every_line(measurement, brief) if measurement.lines else None,
    ]
    return [table for table in single if table is not None]


def _screen(measurement: Measurement) -> list[Table]:
    kinds = set(measurement.kinds) or {line.kind for line in measurement.lines}
    alone = len(kinds - {"collective"}) <= 1
    found: list[Table | None] = [measure_messages.ends(measurement)]
    if alone:
        found += _primary(measurement)
    found.append(measure_messages.collectives(measurement, brief=not alone))
    if alone:
        found += measure_messages.matrices(measurement, brief=True)
    found += measure_files.rank_block(measurement)[: None if alone else 1]
    beside = measure_files.strategies(measurement)
    found += [max(beside, key=lambda table: len(table.rows))] if beside else []
    found += [measure_node.memory(measurement, brief=not alone), measure_node.compute(measurement)]
    return [table for table in found if table is not None]


def _primary(measurement: Measurement) -> list[Table]:
    lines = [line for line in ask.pick(measurement.lines, kind="ping") if line.pattern != "stream"]
    names = list(dict.fromkeys(line.name for line in lines))
    wanted = _PRIMARY if _PRIMARY in names else (names or [""])[0]
    others = tuple(f"per-byte-{name}-" for name in names if name != wanted)
    tables = measure_messages.per_byte(measurement, brief=True)
    return [table for table in tables if not table.key.startswith(others)]


def _heading(measurement: Measurement, verbose: bool) -> Text:
    told = measurement.environment
    first = " · ".join(str(told[name]) for name in ("host", "cpu") if told.get(name))
    cores = told.get("cores")
    lines = [" · ".join(filter(None, [first, plural(cores, "core") if isinstance(cores, int) else ""]))]
    mpi = " ".join(str(told.get("mpi_library", "")).split("\n")[0].split())
    binding = f"binding: {told.get('binding', 'unknown')}"
    lines.append(" · ".join(filter(None, [mpi, str(told.get("blas_kernel", "")), binding])))
    count = plural(len(measurement.lines), "line")
    lines.append(f"{count} in {measurement.seconds:.0f} s, {measurement.time}")
    if verbose:
        lines += [f"{name}: {value}" for name, value in told.items() if not isinstance(value, dict | list)]
    return Text("\n".join(clean(line) for line in lines if line), "dim")


def _notes(measurement: Measurement) -> list[Text]:
    notes = []
    for level in measurement.levels:
        if level.missing:
            notes.append(Text(_NOTE + clean(f"{level.name}: {level.missing}"), "dim"))
    skipped = [line for line in measurement.lines if line.skipped]
    reasons = ask.grouped(skipped, lambda line: line.skipped)
    for reason, lines in reasons.items():
        notes.append(Text(_NOTE + clean(f"not run: {plural(len(lines), 'line')}: {reason}"), "dim"))
    notes += [Text(_NOTE + clean(text), "yellow") for text in measure_node.disturbed_text(measurement)]
    notes += [Text(_NOTE + clean(text), "yellow") for text in measurement.warnings]
    clock = measure_node.clock_text(measurement)
    return [*notes, *([Text(_NOTE + clean(clock), "dim")] if clock else [])]
