"""The comparison of two measurements as tables: what became faster or slower, and what else is different."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from tilewise.errors import clean
from tilewise.measure.compare import FASTER, SAME, SLOWER, Change, Comparison
from tilewise.report.numbers import finite, percent, significant, time_text, times
from tilewise.report.table import Cell, Column, Marks, Table, on_terminal
from tilewise.units import plural

_TONES = {FASTER: "good", SLOWER: "bad"}
_SCREEN = 30  # lines: the rest by -v
_NAMED = 3  # keys of lines that only one side has


def comparison_tables(comparison: Comparison, verbose: bool = False) -> RenderableType:
    """What changed, with base times beside each ratio; `verbose` adds all that did not."""
    tables = [changes(comparison, verbose), surroundings(comparison)]
    shown = [on_terminal(table) for table in tables if table is not None]
    parts: list[RenderableType] = [_heading(comparison)]
    for table in shown:
        parts += [Text(""), table]
    notes = [Text("  " + clean(note), "yellow") for note in comparison.notes]
    notes += [Text("  " + clean(words), "dim") for words in _left_out(comparison, verbose)]
    return Group(*parts, *([Text("")] if notes else []), *notes)


def changes(comparison: Comparison, every: bool = True) -> Table | None:
    """A row for each line: the largest changes first, then (where wanted) those that cannot be told apart."""
    found = sorted(comparison.changes, key=lambda change: (change.word == SAME, -_size(change)))
    if not every:
        found = [change for change in found if change.word != SAME][:_SCREEN]
    if not found:
        return None
    columns = [
        Column("line", numbers=False),
        Column("before"),
        Column("after"),
        Column("after/before"),
        Column("95 %"),
        Column("", numbers=False),
    ]
    table = Table("comparison", "Lines that differ" if not every else "Every line of both", columns)
    marks = Marks()
    for change in found:
        mark = marks.sign(*change.labels_before, *change.labels_after)
        table.add(
            change.key,
            Cell(time_text(change.before), finite(change.before)),
            Cell(time_text(change.after), finite(change.after)),
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
    columns = [
        Column("surroundings", numbers=False),
        Column("before", numbers=False),
        Column("after", numbers=False),
    ]
    table = Table("surroundings", "What else is different", columns)
    for found in comparison.environment:
        sides = [
            "not said" if side is None else " ".join(str(side).split())
            for side in (found.before, found.after)
        ]
        table.add(found.name.replace("_", " "), *sides)
    return table


def _heading(comparison: Comparison) -> Text:
    counts = ", ".join(f"{comparison.counts.get(word, 0)} {word}" for word in (FASTER, SLOWER, SAME))
    text = Text(f"{plural(len(comparison.changes), 'line')} in both: {counts}", "bold")
    for name, side in (("before", comparison.before), ("after", comparison.after)):
        text.append(f"\n{name:6}  {clean(_described(side))}", "not bold dim")
    least, wrong = percent(comparison.least), percent(comparison.false)
    rule = f"\nnamed from {least} on; at most {wrong} of those named are expected to be so by chance"
    return text.append(rule, "not bold dim")


def _described(side: Mapping[str, str]) -> str:
    return " · ".join(" ".join(str(value).split()) for value in side.values() if value)


def _size(change: Change) -> float:
    ratio = finite(change.ratio)
    return max(ratio, 1 / ratio) if ratio is not None and ratio > 0 else 0.0


def _interval(change: Change) -> Cell:
    low, high = finite(change.low), finite(change.high)
    return Cell("" if low is None or high is None else f"{significant(low)}–{significant(high)}")


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
    reasons: dict[str, int] = {}
    for _, reason in comparison.skipped:
        reasons[reason] = reasons.get(reason, 0) + 1
    words += [f"not compared: {plural(count, 'line')}: {reason}" for reason, count in reasons.items()]
    differing = sum(change.word != SAME for change in comparison.changes)
    if not verbose and differing > _SCREEN:
        words.append(f"{differing - _SCREEN} more lines differ; -v shows them")
    return words
