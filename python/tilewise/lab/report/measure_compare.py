"""The comparison of two measurements as tables: what became faster or slower, and what else is different."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tilewise.base.units import plural
from tilewise.lab.measurement.compare import FASTER, SAME, SLOWER, Change, Comparison
from tilewise.lab.report.numbers import finite, percent, significant, time_text, times
from tilewise.lab.report.render.terminal import Screen
from tilewise.lab.report.table import Cell, Marks, Table, number_columns, quantity, text_columns

_TONES = {FASTER: "good", SLOWER: "bad"}
_SCREEN = 30  # lines: the rest by -v
_NAMED = 3  # keys of lines that only one side has


def comparison_tables(comparison: Comparison, verbose: bool = False) -> Screen:
    """What changed, with base times beside each ratio; `verbose` adds all that did not."""
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
    marks = Marks()
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
    """What about the machine or its software is not as it was."""
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


def _size(change: Change) -> float:
    ratio = finite(change.ratio)
    return max(ratio, 1 / ratio) if ratio is not None and ratio > 0 else 0.0


def _interval(change: Change) -> str:
    low, high = finite(change.low), finite(change.high)
    return "" if low is None or high is None else f"{significant(low)}–{significant(high)}"


def _why(change: Change) -> str:
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
