"""A table as a value: the same rows on a terminal, in a page, as CSV and as Markdown."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import textwrap

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from tilewise.errors import clean

_MARKS = ("*", "†", "‡", "§", "¶", "#")


@dataclasses.dataclass(frozen=True)
class Column:
    """One column. `unit` stands under the title; numbers go to the right.

    `base` is the unit of the numbers behind its cells, where `unit` does not tell.
    """

    title: str
    unit: str = ""
    numbers: bool = True
    base: str = ""


@dataclasses.dataclass(frozen=True)
class Cell:
    """What stands in one place of a table.

    `value` is the number behind the text, in base units (for sorting and CSV), `hint` what a page shows when
    the pointer is there, `mark` the footnote's sign, `tone` one of "", "faint", "good", "bad", "strong".
    """

    text: str
    value: float | None = None
    hint: str = ""
    mark: str = ""
    tone: str = ""


@dataclasses.dataclass
class Table:
    """`title` says what is seen; `notes` are the footnotes under it. `key` is its file and page name."""

    key: str
    title: str
    columns: list[Column]
    rows: list[list[Cell]] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    folded: bool = False

    def add(self, *cells: Cell | str) -> None:
        """Adds a row; words become cells."""
        self.rows.append([Cell(cell) if isinstance(cell, str) else cell for cell in cells])


class Marks:
    """Footnotes of one table: each text once, with a sign of its own."""

    def __init__(self) -> None:
        self._signs: dict[str, str] = {}

    def sign(self, *texts: str) -> str:
        """The signs of `texts`, joined."""
        signs = []
        for text in dict.fromkeys(filter(None, texts)):
            number = len(self._signs)
            fresh = _MARKS[number] if number < len(_MARKS) else f"({number + 1})"
            signs.append(self._signs.setdefault(text, fresh))
        return "".join(signs)

    def notes(self) -> list[str]:
        """Each sign with its text."""
        return [f"{sign} {text}" for text, sign in self._signs.items()]


_BASE = {"ns/B": "s/B", "GB/s": "B/s", "µs": "s", "time": "s", "interval": "", "error": "part"}
_TONES = {"": "", "faint": "dim", "good": "green", "bad": "red", "strong": "bold"}


def on_terminal(table: Table) -> RenderableType:
    """`table` for rich; no markup is read from its words."""
    shown = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, column in enumerate(table.columns):
        cells = max((len(row[place].text + row[place].mark) for row in table.rows), default=0)
        # Headings break before cells do: rich would narrow both.
        words = textwrap.wrap(clean(column.title), max(cells, 1), break_long_words=False)
        header = Text("\n".join(words))
        if column.unit:
            header.append(f"\n{clean(column.unit)}", "dim")
        shown.add_column(
            header, justify="right" if column.numbers else "left", vertical="bottom", overflow="fold"
        )
    for row in table.rows:
        shown.add_row(*[_cell(cell) for cell in row])
    title = Text(clean(table.title), "bold")
    notes = [Text("  " + clean(note), "dim") for note in table.notes]
    return Group(title, shown, *notes)


def _cell(cell: Cell) -> Text:
    text = Text(clean(cell.text), _TONES[cell.tone])
    if cell.mark:
        text.append(cell.mark, "yellow")
    return text


def as_csv(table: Table) -> str:
    """`table` for a spreadsheet: base units where a number stands behind a cell, else its words."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow([_heading(column, column.base or _base(column.unit)) for column in table.columns])
    for row in table.rows:
        writer.writerow([repr(cell.value) if cell.value is not None else _tame(cell.text) for cell in row])
    return lines.getvalue()


def as_markdown(table: Table) -> str:
    """`table` for a README."""
    lines = [f"**{_plain(table.title)}**", ""]
    lines.append("| " + " | ".join(_plain(_heading(column, column.unit)) for column in table.columns) + " |")
    lines.append("|" + "|".join("--:" if column.numbers else ":--" for column in table.columns) + "|")
    lines += ["| " + " | ".join(_plain(cell.text + cell.mark) for cell in row) + " |" for row in table.rows]
    return "\n".join([*lines, "", *[f"{_plain(note)}  " for note in table.notes]]) + "\n"


def _heading(column: Column, unit: str) -> str:
    return f"{column.title} ({unit})" if unit else column.title


def _base(unit: str) -> str:
    """The unit of the numbers behind a column's cells."""
    first, space, rest = unit.partition(" ")
    return _BASE.get(first, first) + space + rest


def _tame(text: str) -> str:
    # A spreadsheet runs a cell that begins like a formula.
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def _plain(text: str) -> str:
    return re.sub(r"([\\|<>*_`\[\]])", r"\\\1", clean(text).replace("\n", " "))
