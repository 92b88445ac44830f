"""A page as a value: facts, warnings and sections of tables and figures; `render` makes HTML of it."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tilewise.lab.report.style import Plot
from tilewise.lab.report.table import Table, significant, size_text, text_columns

_LONGEST = 80  # characters of a name


@dataclasses.dataclass(frozen=True)
class Fact:
    """A figure worth seeing first: what, how much, and under which circumstances."""

    name: str
    value: str
    note: str = ""


@dataclasses.dataclass
class Drawing:
    """A figure that is drawn already: an <svg> in the page's colours, with everything in it escaped.

    `alone` is the same as a file of its own, empty where there is none; `plot` is what a picture is made of;
    `timeline` is what a script draws in its place where scripts run; a wide one has a row for itself.
    """

    key: str
    title: str
    caption: str
    svg: str
    alone: str = ""
    wide: bool = False
    plot: Plot | None = None
    timeline: dict[str, Any] | None = None


@dataclasses.dataclass
class Section:
    """A part of a page: words first, then figures and tables; a folded one shows its title alone."""

    key: str
    title: str
    words: list[str] = dataclasses.field(default_factory=list)
    tables: list[Table] = dataclasses.field(default_factory=list)
    plots: list[Plot] = dataclasses.field(default_factory=list)
    drawings: list[Drawing] = dataclasses.field(default_factory=list)
    folded: bool = False

    @property
    def figures(self) -> list[Plot | Drawing]:
        """All figures in the order in which they are shown."""
        return [*self.drawings, *self.plots]

    @property
    def shared_notes(self) -> list[str]:
        """Footnotes that several tables have: they are shown once, above all of them."""
        counted = Counter(note for table in self.tables if table.rows for note in table.notes)
        return [note for note, count in counted.items() if count > 1]

    def empty(self) -> bool:
        """Tell whether there is nothing to show."""
        return not (self.words or self.tables or self.figures)


def section(key: str, title: str, words: Sequence[str], *parts: Table | Plot | Drawing | None) -> Section:
    """A section of `parts` of any kind, those that are None left out."""
    made = Section(key, title, list(words))
    for part in parts:
        if isinstance(part, Table):
            made.tables.append(part)
        elif isinstance(part, Plot):
            made.plots.append(part)
        elif part is not None:
            made.drawings.append(part)
    return made


@dataclasses.dataclass
class ReportPage:
    """A whole report."""

    title: str
    subtitle: str
    sections: list[Section]
    facts: list[Fact] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)

    def figures(self) -> list[Plot | Drawing]:
        """Every figure, in order."""
        return [figure for section in self.sections for figure in section.figures]

    def tables(self) -> list[Table]:
        """Every table, in order."""
        return [table for section in self.sections for table in section.tables]


class FileNames:
    """Names of a page's parts, for anchors and files: letters, digits and hyphens, each name once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def fresh(self, key: str) -> str:
        """`key` as a name that was not given yet."""
        base = re.sub(r"[^A-Za-z0-9]+", "-", key).strip("-")[:_LONGEST] or "part"
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}-{number}"
        self._taken.add(name)
        return name


def environment_table(told: dict[str, Any]) -> Table | None:
    """Every circumstance by its name; None where nothing is told."""
    table = Table("environment", "Environment", text_columns("what", ""))
    for name, value in flat(told):
        table.add(name, value)
    return table if table.rows else None


def flat(told: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """Flatten dictionaries and lists of them to pairs of a name that leads there and a text."""
    items = told.items() if isinstance(told, dict) else enumerate(told, 1)
    for name, value in items:
        plain = str(name) if before == "variables" else str(name).replace("_", " ")
        whole = f"{before} {plain}".strip()
        if isinstance(value, dict) or (
            isinstance(value, list) and any(isinstance(part, dict) for part in value)
        ):
            yield from flat(value, whole)
        else:
            parts = value if isinstance(value, list) else [value]
            sizes = before == "caches" and all(isinstance(part, int | float) for part in parts)
            shown = map(size_text if sizes else _said, parts)
            yield whole, " ".join(", ".join(shown).split())


def _said(value: Any) -> str:
    """A value for people: `–` for none, `yes` and `no` for a switch."""
    if value is None or isinstance(value, bool):
        return "–" if value is None else "yes" if value else "no"
    return significant(value, 4) if isinstance(value, float) else str(value)
