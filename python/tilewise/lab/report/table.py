"""A table as a value, and the cells that it is made of; `render/` takes it to every medium."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from tilewise.lab.report.numbers import finite, significant

_MARKS = ("*", "†", "‡", "§", "¶", "#")


@dataclasses.dataclass(frozen=True)
class Column:
    """One column. `unit` belongs to the title; numbers go to the right.

    `base` is the unit of the numbers behind its cells, where `unit` does not tell.
    """

    title: str
    unit: str = ""
    numbers: bool = True
    base: str = ""


@dataclasses.dataclass(frozen=True)
class Cell:
    """What stands in one place of a table.

    `value` is the number behind the text, in base units (for sorting and CSV), `spread` how far it may be
    off, which a page and Markdown show behind it (`±4 %`), `hint` what a page shows when the pointer is
    there, `mark` the footnote's sign, `tone` one of "", "faint", "good", "bad", "strong"; a terminal knows
    "warning" and "bar" besides. `data` is what a page says of it to programs, as `data-…`.
    """

    text: str
    value: float | None = None
    hint: str = ""
    mark: str = ""
    tone: str = ""
    data: Mapping[str, str] = dataclasses.field(default_factory=dict)
    spread: str = ""


@dataclasses.dataclass
class Table:
    """`title` says what is seen; `notes` are the footnotes under it. `key` is its file and page name.

    One that is `beside` the table before it stays next to that, where there is room.
    """

    key: str
    title: str
    columns: list[Column]
    rows: list[list[Cell]] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    folded: bool = False
    beside: bool = False

    def add(self, *cells: Cell | str | int) -> None:
        """Adds a row; words and counts become cells."""
        self.rows.append(
            [cell if isinstance(cell, Cell) else Cell(str(cell), _count(cell)) for cell in cells]
        )


def _count(value: str | int) -> float | None:
    return float(value) if isinstance(value, int) else None


def text_columns(*titles: str) -> list[Column]:
    """Columns of words."""
    return [Column(title, numbers=False) for title in titles]


def number_columns(*titles: str, unit: str = "") -> list[Column]:
    """Columns of numbers in one unit."""
    return [Column(title, unit) for title in titles]


def quantity(
    value: float | None,
    show: Callable[[float], str] = significant,
    hint: str = "",
    mark: str = "",
    tone: str = "",
) -> Cell:
    """A number as `show` writes it; an empty cell where there is none."""
    return Cell("" if value is None else show(value), finite(value), hint, mark, tone)


class Marks:
    """Footnotes of one table: each text once, with a sign of its own; those of `known` are told beforehand.

    Tables that know the same texts have the same signs for them.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._signs: dict[str, str] = {}
        self._used: set[str] = set()
        self.sign(*known)
        self._used.clear()

    def sign(self, *texts: str) -> str:
        """The signs of `texts`, joined in the order of the notes."""
        used = list(dict.fromkeys(filter(None, texts)))
        for text in used:
            number = len(self._signs)
            self._signs.setdefault(text, _MARKS[number] if number < len(_MARKS) else f"({number + 1})")
        self._used.update(used)
        return "".join(sign for text, sign in self._signs.items() if text in used)

    def notes(self) -> list[str]:
        """Each sign that was used, with its text."""
        return [f"{sign} {text}" for text, sign in self._signs.items() if text in self._used]
