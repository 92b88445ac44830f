"""The one layout of a terminal: lines, labelled lines and tables; coloured and wrapped on a terminal only.

       base
size     ms  1      2  4       units below heads; columns for which the terminal has no room come below
───────────────────────────
256   166.6  1  1.512  0.7690  decimal points below each other
512  1429    1  1.568  1.120
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tilewise.base.errors import clean

if TYPE_CHECKING:
    from rich.console import Console

    from tilewise.lab.report.table import Cell, Column, Table

Line = list[tuple[str, str]]  # pieces of text, each with its tone
_STYLES = {
    "faint": "dim",
    "good": "green",
    "bad": "red",
    "strong": "bold",
    "warning": "yellow",
    "wrong": "bold red",
    "bar": "cyan",
}
_GAP = "  "
_NARROW = 9  # columns: a head has no more lines than it needs
_NUMBER = re.compile(r"-?\d+(\.\d+)?(?=$| \()")  # what stands in brackets behind it is no unit
_UNIT = re.compile(r"(?<=\d) (?=[^\W\d]|%|×)")  # a number and its unit stay on one line
_PIPED = 400  # columns: a pipe has no width


class Screen:
    """Parts to be shown, laid out when it is known how wide the terminal is."""

    def __init__(self) -> None:
        self._parts: list[Callable[[int], Iterable[Line]]] = []
        self._told: set[str] = set()

    def line(self, text: str = "", tone: str = "") -> None:
        """A line of words, or several."""
        self._parts.append(lambda _: [[(line, tone)] for line in clean(text).split("\n")])

    def notes(self, texts: Iterable[str], tone: str = "faint") -> None:
        """Words that belong to what stands above them."""
        for text in texts:
            self.line(_GAP + text.replace("\n", " "), tone)

    def pairs(self, rows: Iterable[tuple[str, ...]], least: int = 0) -> None:
        """A line for each label and its words (and their tone); labels have at least `least` columns."""
        shown = [(clean(row[0]), clean(row[1]), row[2] if len(row) > 2 else "") for row in rows]
        wide = max([least, *(_wide(label) for label, _, _ in shown)]) + len(_GAP)
        self._parts.append(lambda width: _pairs(shown, wide, width))

    def table(self, table: Table) -> None:
        """A table under its title, with notes that no table above it had.

        Without rows the notes say why there are none.
        """
        if table.title:
            self.line(table.title, "strong")
        if table.rows:
            self._parts.append(lambda width: _grid(table, width))
        self.notes(note for note in table.notes if note not in self._told or not table.rows)
        self._told.update(table.notes)

    def lines(self, width: int = 0) -> Iterator[Line]:
        """All lines; with a `width` none is wider where it can be cut."""
        for part in self._parts:
            yield from part(width)

    def text(self, width: int = 0) -> str:
        """All lines as text without tones, each with its end."""
        whole = ("".join(text for text, _ in line).rstrip() for line in self.lines(width))
        return "".join(f"{line}\n" for line in whole)

    def __rich_console__(self, console: Console, options: Any) -> Iterator[Any]:
        from rich.text import Text

        for line in self.lines(options.max_width):
            yield Text.assemble(*((text, _STYLES.get(tone, "")) for text, tone in line))


def get_ready() -> None:
    """Imports what `show` will need, for a moment when there is time."""
    import rich.cells

    if sys.stdout.isatty():
        import rich.console
        import rich.text  # noqa: F401


def show(screen: Screen, plain: bool = False) -> None:
    """Prints on standard output, without colour or wrapping when that is no terminal or `plain` is set."""
    if sys.stdout.isatty() and not plain:
        _console(terminal=True, stderr=False).print(screen)
        return
    sys.stdout.write(screen.text())
    sys.stdout.flush()


def errors() -> Console:
    """Standard error: coloured and wrapped on a terminal only."""
    return _console(sys.stderr.isatty(), stderr=True)


def _console(terminal: bool, stderr: bool) -> Console:
    from rich.console import Console

    # highlight would colour every number, emoji would turn a path with :x: in it into a picture.
    width = None if terminal else _PIPED
    return Console(stderr=stderr, force_terminal=terminal, width=width, highlight=False, emoji=False)


def _wide(text: str) -> int:
    """How many columns `text` takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _padded(text: str, width: int, right: bool = False) -> str:
    room = " " * (width - _wide(text))
    return room + text if right else text + room


def _pairs(rows: Sequence[tuple[str, str, str]], wide: int, width: int) -> Iterator[Line]:
    for label, text, tone in rows:
        room = width - wide
        parts = _wrapped(text, room) if 10 < room < _wide(text) else [text]
        for place, part in enumerate(parts):
            yield [(_padded("" if place else label, wide), "faint"), (part, tone)]


def _wrapped(text: str, room: int) -> list[str]:
    """Lines of at most `room` columns, but for what cannot be cut: numbers with their units, paths."""
    whole = _UNIT.sub("\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(whole, room, break_on_hyphens=False, break_long_words=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _grid(table: Table, width: int) -> Iterator[Line]:
    """Heads and rows; columns of numbers beyond `width` come below, behind the columns of words once more."""
    columns = [
        _column(column, [row[place] for row in table.rows]) for place, column in enumerate(table.columns)
    ]
    lead = next((place for place, one in enumerate(table.columns) if one.numbers), len(columns))
    fixed, free = columns[: lead or 1], columns[lead or 1 :]
    used = sum(_across(column) for column in fixed)
    if width and used > width:
        yield from _stacked(table, width)
        return
    some, room = list(fixed), width - used
    for column in free:
        if width and len(some) > len(fixed) and room < _across(column) - len(_GAP):
            yield from _drawn(some, bool(table.title))
            some, room = list(fixed), width - used
        some.append(column)
        room -= _across(column)
    yield from _drawn(some, bool(table.title))


def _stacked(table: Table, width: int) -> Iterator[Line]:
    """Each row as lines, a column each, where not even the columns of words have room beside each other."""
    titles = [clean(column.title) for column in table.columns]
    wide = max(map(_wide, titles)) + len(_GAP)
    for row in table.rows:
        yield []
        labelled = zip(titles, table.columns, row, strict=True)
        yield from _pairs(
            [
                (title, clean(f"{cell.text}{cell.mark} {column.unit}".strip()), cell.tone)
                for title, column, cell in labelled
                if cell.text
            ],
            wide,
            width,
        )


_Drawn = tuple[list[str], list[tuple[str, str, str]]]  # of a column: lines of its head; text, tone, mark


def _column(column: Column, cells: Sequence[Cell]) -> _Drawn:
    """A column, all of whose lines are as wide as the widest."""
    texts = [clean(cell.text).replace("\n", " ") for cell in cells]
    texts = _aligned(texts) if column.numbers else texts
    marked = max((_wide(cell.mark) for cell in cells), default=0)
    wide = max((_wide(text) + marked for text in texts), default=0)
    title, room = clean(column.title), max(wide, _NARROW)
    head = textwrap.wrap(title, room, break_long_words=False, break_on_hyphens=False)
    head += [clean(column.unit)] if column.unit else []
    wide = max([wide, *map(_wide, head)])
    rows = [
        (_padded(text, wide - marked, column.numbers), cell.tone, _padded(cell.mark, marked))
        for text, cell in zip(texts, cells, strict=True)
    ]
    return [_padded(line, wide, column.numbers) for line in head] or [" " * wide], rows


def _aligned(texts: list[str]) -> list[str]:
    """Decimal points below each other, and what stands in brackets behind the numbers too."""
    matches = [_NUMBER.match(text) for text in texts]
    points = max((len(match[1] or "") for match in matches if match), default=0)
    split = [
        (match[0] + " " * (points - len(match[1] or "")), text[match.end() :]) if match else (text, "")
        for match, text in zip(matches, texts, strict=True)
    ]
    behind = max(_wide(rest) for _, rest in split)
    return [
        number + _padded(rest, behind) if match else number
        for match, (number, rest) in zip(matches, split, strict=True)
    ]


def _across(column: _Drawn) -> int:
    return _wide(column[0][0]) + len(_GAP)


def _drawn(columns: Sequence[_Drawn], ruled: bool) -> Iterator[Line]:
    tall = max(len(head) for head, _ in columns)
    for number in range(tall):
        yield _joined(
            [
                [(head[number - tall] if number >= tall - len(head) else " " * _wide(head[0]), "faint")]
                for head, _ in columns
            ]
        )
    if ruled:
        yield [("─" * (sum(map(_across, columns)) - len(_GAP)), "faint")]
    for cells in zip(*(rows for _, rows in columns), strict=True):
        yield _joined([[(text, tone), (mark, "warning")] for text, tone, mark in cells])


def _joined(pieces: Sequence[Line]) -> Line:
    line = [piece for each in pieces for piece in (*each, (_GAP, ""))]
    while line and not line[-1][0].strip():
        line.pop()
    return [*line[:-1], (line[-1][0].rstrip(), line[-1][1])] if line else line
