"""What `tilewise measure` prints: one screen, or with -v everything."""

from __future__ import annotations

from tilewise.base.units import plural
from tilewise.measurement.result import Measurement
from tilewise.report import measure_files, measure_messages, measure_node
from tilewise.report import measured as ask
from tilewise.report.measure_model import model_table
from tilewise.report.render.terminal import Screen
from tilewise.report.table import Table

_PRIMARY = "blocking"  # the exchange of report 1


def measure_tables(measurement: Measurement, verbose: bool = False) -> Screen:
    """What was found, for a terminal of 80 columns; one kind alone is told in full, all of them in brief."""
    screen = Screen()
    _heading(screen, measurement, verbose)
    for table in everything(measurement, brief=True) if verbose else _screen(measurement):
        screen.line()
        screen.table(table)
    screen.line()
    _notes(screen, measurement)
    return screen


def everything(measurement: Measurement, brief: bool = False) -> list[Table]:
    """All tables, in the order of a page; `brief` leaves columns out that a terminal has no room for."""
    single = [
        measure_messages.ends(measurement),
        *measure_messages.per_byte(measurement, brief),
        measure_messages.collectives(measurement),
        *measure_messages.matrices(measurement),
        *measure_files.rank_block(measurement),
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
    tables: list[Table | None] = [measure_messages.ends(measurement)]
    if alone:
        tables += _primary(measurement)
    tables.append(measure_messages.collectives(measurement, brief=not alone))
    if alone:
        tables += measure_messages.matrices(measurement, brief=True)
    tables += measure_files.rank_block(measurement)[: None if alone else 1]
    beside = measure_files.strategies(measurement)
    tables += [max(beside, key=lambda table: len(table.rows))] if beside else []
    tables += [measure_node.memory(measurement, brief=not alone), measure_node.compute(measurement)]
    return [table for table in tables if table is not None]


def _primary(measurement: Measurement) -> list[Table]:
    lines = [line for line in ask.pick(measurement.lines, kind="ping") if line.pattern != "stream"]
    names = list(dict.fromkeys(map(ask.exchange, lines)))
    wanted = _PRIMARY if _PRIMARY in names else (names or [""])[0]
    others = tuple(f"per-byte-{name}-" for name in names if name != wanted)
    tables = measure_messages.per_byte(measurement, brief=True)
    return [table for table in tables if not table.key.startswith(others)]


def _heading(screen: Screen, measurement: Measurement, verbose: bool) -> None:
    told = measurement.environment
    cores = told.get("cores")
    mpi = " ".join(str(told.get("mpi_library", "")).split("\n")[0].split())
    binding = f"binding: {told.get('binding', 'unknown')}"
    first = [told.get("host"), told.get("cpu"), plural(cores, "core") if isinstance(cores, int) else ""]
    for words in (first, [mpi, told.get("blas_kernel"), binding]):
        if any(words):
            screen.line(" · ".join(str(word) for word in words if word), "faint")
    count = plural(len(measurement.lines), "line")
    screen.line(f"{count} in {measurement.seconds:.0f} s, {measurement.time}", "faint")
    for name, value in told.items() if verbose else ():
        if not isinstance(value, dict | list):
            screen.line(f"{name}: {value}", "faint")


def _notes(screen: Screen, measurement: Measurement) -> None:
    screen.notes(f"{level.name}: {level.missing}" for level in measurement.levels if level.missing)
    skipped = ask.grouped((line for line in measurement.lines if line.skipped), lambda line: line.skipped)
    screen.notes(f"not run: {plural(len(lines), 'line')}: {reason}" for reason, lines in skipped.items())
    screen.notes([*measure_node.disturbed_text(measurement), *measurement.warnings], "warning")
    screen.notes(filter(None, [measure_node.clock_text(measurement)]))
