"""What `tilewise measure` prints: the answers, or with -v everything."""

from __future__ import annotations

import dataclasses

from tilewise.base.units import listing, plural
from tilewise.lab.measurement.result import Measurement
from tilewise.lab.report import measure_files, measure_messages, measure_node
from tilewise.lab.report import measured as ask
from tilewise.lab.report.measure_model import model_table
from tilewise.lab.report.render.terminal import Screen
from tilewise.lab.report.table import Table


def measure_tables(measurement: Measurement, verbose: bool = False) -> Screen:
    """What was found, for a terminal of 80 columns: what disturbed it first, each footnote once."""
    screen, told = Screen(), set[str]()
    for line in ask.disturbed(measurement):
        screen.line(line, "warning")
    _heading(screen, measurement, verbose)
    for table in everything(measurement, brief=True) if verbose else answers(measurement):
        screen.line()
        screen.table(dataclasses.replace(table, notes=[note for note in table.notes if note not in told]))
        told.update(table.notes)
    screen.line()
    _notes(screen, measurement, verbose, told)
    return screen


def answers(measurement: Measurement) -> list[Table]:
    """The few figures that most people measure for, a table for each kind."""
    single = {
        "ping": measure_messages.ends(measurement, brief=True) or measure_messages.collectives(measurement),
        "file": measure_files.fastest(measurement),
        "memory": measure_node.memory_by_level(measurement),  # also measured to compare others with
        "compute": measure_node.compute_by_type(measurement),
    }
    asked = measurement.kinds or single
    return [table for kind, table in single.items() if table is not None and kind in asked]


def everything(measurement: Measurement, brief: bool = False) -> list[Table]:
    """All tables, in the order of a page; `brief` leaves columns out that a terminal has no room for."""
    single = [
        measure_messages.ends(measurement),
        *measure_messages.per_byte(measurement),
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


def _heading(screen: Screen, measurement: Measurement, verbose: bool) -> None:
    told = measurement.environment
    cores = told.get("cores")
    mpi = " ".join(str(told.get("mpi_library", "")).split("\n")[0].split())
    first = [told.get("host"), told.get("cpu"), plural(cores, "core") if isinstance(cores, int) else "", mpi]
    screen.line(" · ".join(str(word) for word in first if word), "faint")
    for name, value in told.items() if verbose else ():
        if not isinstance(value, dict | list):
            screen.line(f"{name}: {value}", "faint")


def _notes(screen: Screen, measurement: Measurement, verbose: bool, told: set[str]) -> None:
    missing = [level for level in measurement.levels if level.missing]
    if verbose:
        screen.notes(filter(None, [measure_node.clock_text(measurement)]))
    elif missing:
        screen.notes([f"levels that are not here: {listing([level.name for level in missing])}"])
    skipped = ask.grouped((line for line in measurement.lines if line.skipped), lambda line: line.skipped)
    screen.notes(
        f"not run: {plural(len(lines), 'line')}: {reason}"
        for reason, lines in skipped.items()
        if not any(note.endswith(reason) for note in told)
    )
    screen.notes(measurement.warnings, "warning")
    whole = f"{plural(len(measurement.lines), 'line')} in {measurement.seconds:.0f} s"
    rest = measurement.time if verbose else "every table: -v; a page with figures: --html FILE"
    screen.notes([f"{whole}; {rest}"])
