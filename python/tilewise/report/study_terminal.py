"""Tables of a study as plain lines for a terminal or a pipe: a row a line, decimal points below each other.

Speedup over one rank; by ranks; compared with ranks = 1
size  base [ms]  1      2       4
─────────────────────────────────
256   166.6      1  1.512  0.7690
512   1429       1  1.568  1.120
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len

from tilewise.errors import clean
from tilewise.report.study_figures import Scales, base_of, base_place, is_further, plain, reasons, short
from tilewise.study.cells import Cell
from tilewise.study.schema import TableWanted
from tilewise.study.tables import Table

_GAP = "  "
_NARROW = 9  # columns: a head has no more lines than it needs
_NUMBER = re.compile(r"-?\d+(\.\d+)?(?= |$)")


def lines(table: Table, wanted: TableWanted, width: int = 0) -> Iterator[str]:
    """Title, rows and what there is to say of them; columns beyond `width`, where it is given, come below."""
    scales = Scales([table], wanted)
    if not table.rows:
        yield clean(table.title)
    else:
        yield from _grid(table, scales, width)
    for note in (*table.notes, *reasons([table])):
        yield f"  {clean(note)}"


def _grid(table: Table, scales: Scales, width: int) -> Iterator[str]:
    place = base_place(table)
    heads = [scales.column(table, column, _head(table, column)) for column in table.columns]
    units = {head.unit for head in heads}
    bracket = _bracket(table)
    said = [table.title if table.aggregate == "median" else f"{table.title} ({table.aggregate})"]
    by = f"by {', '.join(map(plain, table.column_names))}" if table.column_names else ""
    common = units.pop() if len(units) == 1 else ""
    said += filter(None, [", ".join(filter(None, (by, common and f"in {common}")))])
    said += [f"in brackets: {plain(bracket)}"] if bracket else []
    if table.base:
        said.append(scales.compared(table) if place == "title" else f"compared with {table.base}")
    yield clean("; ".join(said))
    labels = [[str(row[number]) for row in table.rows] for number in range(len(table.row_names))]
    above = scales.base("base")
    if place == "column":
        said_so = f"base [{above.unit}]" if above.unit else "base"
        labels = [["" if number else said_so, *cells] for number, cells in enumerate(labels)]
    fixed = [_left(plain(name), cells) for name, cells in zip(table.row_names, labels, strict=True)]
    if place == "row":
        cells = [scales.base_cell(base_of(table, row)).text for row in table.rows]
        fixed.append(_right(f"base [{above.unit}]" if above.unit else "base", cells))
    free = []
    for number, (head, column) in enumerate(zip(heads, table.columns, strict=True)):
        texts = [_text(row[number], table, column, scales, place, bracket) for row in table.cells]
        if place == "column":
            bases = [row[number].base for row in table.cells if row[number].base is not None]
            texts.insert(0, scales.base_cell(bases[0] if bases else None).text)
        heading = head.title if common or not head.unit else f"{head.title} [{head.unit}]"
        free.append(_right(heading, texts))
    for columns in _split(fixed, free, width):
        yield from _drawn(columns)


def _head(table: Table, column: list[Any]) -> str:
    # What is made out of other columns has a title, and so have figures; values of axes speak for themselves.
    return str(column[0]) if is_further(table, column) else ", ".join(map(str, column)) or "value"


def _text(cell: Cell, table: Table, column: list[Any], scales: Scales, place: str, bracket: str) -> str:
    if cell.value is None:
        return short(cell)
    text = scales.text(cell.value, table, column)
    if place == "cell" and cell.base is not None:
        text += f" (base {scales.base_text(cell.base)})"
    return f"{text} ({cell.chosen.removeprefix(f'{bracket} = ')})" if cell.chosen else text


def _bracket(table: Table) -> str:
    """The one axis that tells the chosen points of all cells apart; empty where there are several."""
    chosen = {cell.chosen for row in table.cells for cell in row if cell.chosen}
    axes = {each.partition(" = ")[0] if ", " not in each else "" for each in chosen if " = " in each}
    return axes.pop() if len(axes) == 1 and all(" = " in each for each in chosen) else ""


def _left(heading: str, cells: list[str]) -> list[str]:
    """A column with its head on top, padded on the right."""
    cells = [clean(cell).replace("\n", " ") for cell in cells]
    width = max(map(cell_len, [heading, *cells]))
    return [_pad(text, width) for text in (heading, *cells)]


def _right(heading: str, cells: list[str]) -> list[str]:
    """A column of figures: the head's lines, if need be several joined by a newline, then the cells."""
    cells = _aligned([clean(cell) for cell in cells])
    width = max(cell_len(cell) for cell in cells)
    words = textwrap.wrap(clean(heading), max(width, _NARROW), break_long_words=False, break_on_hyphens=False)
    width = max(width, *map(cell_len, words))
    head = "\n".join(" " * (width - cell_len(word)) + word for word in words)
    return [head, *(" " * (width - cell_len(cell)) + cell for cell in cells)]


def _aligned(cells: list[str]) -> list[str]:
    """Decimal points below each other, and what stands behind the numbers too."""
    found = [_NUMBER.match(cell) for cell in cells]
    behind = max((len(match[1] or "") for match in found if match), default=0)
    padded = [
        cell[: match.end()] + " " * (behind - len(match[1] or "")) + cell[match.end() :] if match else cell
        for cell, match in zip(cells, found, strict=True)
    ]
    width = max(
        (
            cell_len(cell) - match.start() - len(match[0])
            for cell, match in zip(padded, found, strict=True)
            if match
        ),
        default=0,
    )
    return [
        _pad(cell, len(match[0]) + width) if match else cell
        for cell, match in zip(padded, found, strict=True)
    ]


def _split(fixed: list[list[str]], free: list[list[str]], width: int) -> Iterator[list[list[str]]]:
    """As many columns beside the row's names as fit; all of them where no width is given."""
    used = sum(_wide(column) + len(_GAP) for column in fixed)
    some: list[list[str]] = []
    room = width - used
    for column in free:
        if some and width and room < _wide(column):
            yield [*fixed, *some]
            some, room = [], width - used
        some.append(column)
        room -= _wide(column) + len(_GAP)
    yield [*fixed, *some]


def _wide(column: list[str]) -> int:
    return max(cell_len(line) for text in column for line in text.splitlines() or [""])


def _drawn(columns: Sequence[list[str]]) -> Iterator[str]:
    heads = [column[0].splitlines() or [""] for column in columns]
    widths = [_wide(column) for column in columns]
    tall = max(map(len, heads))
    for number in range(tall):
        parts = [head[number - tall + len(head)] if number >= tall - len(head) else "" for head in heads]
        yield _GAP.join(map(_pad, parts, widths)).rstrip()
    yield "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
    for row in zip(*(column[1:] for column in columns), strict=True):
        yield _GAP.join(map(_pad, row, widths)).rstrip()


def _pad(text: str, width: int) -> str:
    return text + " " * (width - cell_len(text))
