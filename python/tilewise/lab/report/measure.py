"""Tables that `tilewise measure` and `measure compare` print: the answers, or with -v everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tilewise.base.units import listing, plural
from tilewise.lab.measurement.compare import FASTER, SAME, SLOWER, Comparison, LineChange
from tilewise.lab.measurement.result import Measurement
from tilewise.lab.report import measure_files, measure_messages, measure_node
from tilewise.lab.report import measured as ask
from tilewise.lab.report.measure_node import model_table
from tilewise.lab.report.table import (
    Cell,
    Footnotes,
    Table,
    finite,
    number_columns,
    percent,
    quantity,
    significant,
    text_columns,
    time_text,
    times,
)
from tilewise.lab.report.terminal import Screen


def measure_tables(measurement: Measurement, verbose: bool = False) -> Screen:
    """Show a measurement on a terminal of 80 columns: what disturbed it first, each footnote once."""
    screen, told = Screen(), set[str]()
    for line in ask.disturbed(measurement):
        screen.line(line, "warning")
    _heading(screen, measurement, verbose)
    for table in everything(measurement, brief=True) if verbose else answers(measurement):
        screen.line()
        screen.table(table)
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


_TONES = {FASTER: "good", SLOWER: "bad"}
_SCREEN = 30  # lines: the rest by -v
_NAMED = 3  # keys of lines that only one side has


def comparison_tables(comparison: Comparison, verbose: bool = False) -> Screen:
    """Show what changed, with base times beside each ratio; `verbose` adds all that did not."""
    screen = Screen()
    counts = ", ".join(f"{comparison.counts.get(word, 0)} {word}" for word in (FASTER, SLOWER, SAME))
    screen.line(f"{plural(len(comparison.changes), 'line')} in both: {counts}", "strong")
    sides = (("before", comparison.before), ("after", comparison.after))
    screen.pairs((name, _described(side), "faint") for name, side in sides)
    least, wrong = percent(comparison.least), percent(comparison.false)
    rule = f"only changes of at least {least} are named; at most {wrong} of those are expected to be false"
    screen.line(rule, "faint")
    for table in (changes(comparison, verbose), surroundings(comparison)):
        if table is not None:
            screen.line()
            screen.table(table)
    screen.line()
    screen.notes(comparison.notes, "warning")
    screen.notes(_left_out(comparison, verbose))
    return screen


def changes(comparison: Comparison, every: bool = True) -> Table | None:
    """A row for each line: the largest changes first, then (where wanted) those that cannot be told apart."""
    shown = sorted(comparison.changes, key=lambda change: (change.word == SAME, -_size(change)))
    if not every:
        shown = [change for change in shown if change.word != SAME][:_SCREEN]
    if not shown:
        return None
    columns = (
        text_columns("line") + number_columns("before", "after", "after/before", "95 %") + text_columns("")
    )
    table = Table("comparison", "Lines that differ" if not every else "Every line of both", columns)
    marks = Footnotes()
    for change in shown:
        mark = marks.sign(*change.labels_before, *change.labels_after)
        table.add(
            change.key,
            quantity(change.before, time_text),
            quantity(change.after, time_text),
            Cell(times(change.ratio), finite(change.ratio)),
            _interval(change),
            Cell(change.word, None, _why(change), mark, _TONES.get(change.word, "faint")),
        )
    table.notes = marks.notes()
    return table


def surroundings(comparison: Comparison) -> Table | None:
    """Differences in the machine or its software."""
    if not comparison.environment:
        return None
    table = Table("surroundings", "Other differences", text_columns("surroundings", "before", "after"))
    for difference in comparison.environment:
        sides = [
            "unknown" if side is None else " ".join(str(side).split())
            for side in (difference.before, difference.after)
        ]
        table.add(difference.name, *sides)
    return table


def _described(side: Mapping[str, str]) -> str:
    return " · ".join(" ".join(str(value).split()) for value in side.values() if value)


def _size(change: LineChange) -> float:
    ratio = finite(change.ratio)
    return max(ratio, 1 / ratio) if ratio is not None and ratio > 0 else 0.0


def _interval(change: LineChange) -> str:
    low, high = finite(change.low), finite(change.high)
    return "" if low is None or high is None else f"{significant(low)}–{significant(high)}"


def _why(change: LineChange) -> str:
    shared = "" if change.shared is None else f"; its neighbours: {times(change.shared)}"
    return f"q = {significant(change.q, 2)}, {change.launches[0]} and {change.launches[1]} launches{shared}"


def _left_out(comparison: Comparison, verbose: bool) -> list[str]:
    words = []
    for where, keys in (("before", comparison.only_before), ("after", comparison.only_after)):
        if keys:
            named = keys if verbose else keys[:_NAMED]
            more = f" and {len(keys) - len(named)} more" if len(keys) > len(named) else ""
            words.append(f"only {where}: {', '.join(named)}{more}")
    reasons = Counter(reason for _, reason in comparison.skipped)
    words += [f"not compared: {plural(count, 'line')}: {reason}" for reason, count in reasons.items()]
    differing = sum(change.word != SAME for change in comparison.changes)
    if not verbose and differing > _SCREEN:
        words.append(f"{differing - _SCREEN} more lines differ; -v shows them")
    return words
