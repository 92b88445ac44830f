"""Names, numbers, units and bases of a study as its tables show them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilewise.lab.report.table import NONE, Cell, Column, significant, size_text, time_scale
from tilewise.lab.study.cells import NOWHERE, FigureCell, is_time
from tilewise.lab.study.evaluation import Evaluated
from tilewise.lab.study.results import SINGLE, Results
from tilewise.lab.study.schema import FigureColumn, Figures, TableWanted
from tilewise.lab.study.store import StudySession
from tilewise.lab.study.tables import FigureTable

SIZES = ("block", "bytes", "buffer")  # axes whose numbers are bytes
_BARE = 1000  # bytes: fewer need no unit to be read
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(-\d+)?")  # a folder's name


def labels(studies: Sequence[Evaluated]) -> list[str]:
    """The shortest that tells them apart: the machine, the day, the time, both, else the folder.

    One alone needs no name.
    """
    if len(studies) == 1:
        return [""]
    machines = [_machine(each.results) for each in studies]
    stamps = [date(each.results) for each in studies]
    if all(map(_STAMP.fullmatch, stamps)):
        days = [stamp[:10] for stamp in stamps]
        times = [stamp[11:16].replace("-", ":") for stamp in stamps]
        moments = [f"{day[5:]} {time}" for day, time in zip(days, times, strict=True)]
        both = [f"{machine} {moment}" for machine, moment in zip(machines, moments, strict=True)]
        candidates = [machines, days, times if len(set(days)) == 1 else moments, moments, both, stamps]
    else:
        candidates = [machines, stamps]
    for names in candidates:
        if len(set(names)) == len(studies) and all(names):
            return names
    return [each.results.folder for each in studies]


def date(results: Results) -> str:
    """When it was measured, as its folder says."""
    return os.path.basename(os.path.abspath(results.folder))


def last(results: Results) -> StudySession | None:
    """The newest session, whose environment is told."""
    return results.sessions[-1] if results.sessions else None


def _machine(results: Results) -> str:
    session = last(results)
    return session.environment.machine if session else ""


def named(names: Sequence[str], values: Sequence[Any]) -> str:
    """`ranks 2, io root`; of a figure's column, which has no names, its title."""
    if not names:
        return " ".join(map(str, values))
    return ", ".join(said(name, value) for name, value in zip(names, values, strict=True))


def said(name: str, value: Any) -> str:
    """`ranks 2`, but `root` for itself: words tell what they are."""
    plain = name.replace("_", " ").removeprefix("line.")
    return f"{plain} {worded(name, value)}" if isinstance(value, (int, float)) else str(value)


def worded(name: str, value: Any) -> str:
    """A value of an axis: `16 MB` for 16000000 bytes, `yes` of a switch that is on, else as it is."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    size = name.removeprefix("line.") in SIZES and isinstance(value, int) and value >= _BARE
    return size_text(value) if size else str(value)


def telling(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """The axes that tell `points` apart, in their order: those with one value, or that follow another, go."""
    kept: list[str] = []
    told = 1
    for axis in dict.fromkeys(axis for point in points for axis in point):
        there = {repr([point.get(each) for each in (*kept, axis)]) for point in points}
        if len(there) > told:
            kept.append(axis)
            told = len(there)
    return kept


def base_unit(wanted: Figures) -> str:
    """The unit of what a ratio is made of, where paths (to times, or sums of them) or the study tell it."""
    columns = wanted.columns if isinstance(wanted, TableWanted) else []
    values = [each.value for each in columns if isinstance(each, FigureColumn)] or [wanted.value]
    if all(map(is_time, values)):
        return "s"
    return "" if wanted.cell or wanted.unit == "×" else wanted.unit


DIGITS, _OF_ONE = 4, 3  # of a figure, and of one that a single launch gave
_KNOWN = ("not run", "failed", "no base")  # how reasons begin that a cell can say itself
_MOST = 6  # reasons below a table
_LARGE = 1e5  # from here on, numbers without a unit are counted in thousands, millions …


class Scales:
    """How numbers of a table, or of the same one of several results, are written: a scale for each unit.

    `plainly` leaves times in seconds, as they are where another table of seconds stands beside this one.
    """

    def __init__(self, mine: Sequence[FigureTable], wanted: TableWanted, plainly: bool = False) -> None:
        self._base_unit = base_unit(wanted)
        bases = [base for each in mine for row in each.cells for base in _bases(row)]
        every = [(each, column) for each in mine for column in each.columns]
        timed = [pair for pair in every if unit_of(*pair) == "s"]
        times = [value for pair in timed for value in _values(*pair)]
        self._time = time_scale([] if plainly else times)
        self._base = time_scale(bases) if self._base_unit == "s" else _thousands(bases, self._base_unit)
        self._whole = {(id(each), repr(column)) for each, column in every if _whole(_values(each, column))}

    def column(self, table: FigureTable, column: list[Any], heading: str) -> Column:
        """The head of a column of figures."""
        unit = unit_of(table, column)
        unit, base = self._time[0] if unit == "s" else unit, unit
        if base_place(table) == "column" and not is_further(table, column):
            place = table.columns.index(column)
            mine = _bases([row[place] for row in table.cells])
            unit = f"{unit} of {self.base_text(mine.pop())}".lstrip() if mine else unit
        return Column(heading, unit, base=base)

    def base(self, heading: str) -> Column:
        """The head of a column of bases."""
        return Column(heading, self._base[0], base=self._base_unit or "as measured")

    def text(self, value: float, table: FigureTable, column: list[Any], digits: int = DIGITS) -> str:
        """A figure without its unit: all digits of whole numbers, else those that count."""
        if unit_of(table, column) == "s":
            return significant(value / self._time[1], digits)
        if (id(table), repr(column)) in self._whole:
            return str(int(value))
        return significant(value, digits)

    def base_cell(self, base: float | None) -> Cell:
        """A base, in the unit of its column."""
        return Cell(NONE if base is None else significant(base / self._base[1], DIGITS), base, tone="faint")

    def base_text(self, base: float) -> str:
        """A base with its unit."""
        text = significant(base / self._base[1], DIGITS)
        return f"{text}{'·' if self._base[0].startswith('10') else ' '}{self._base[0]}".rstrip()

    def compared(self, table: FigureTable) -> str:
        """`compared with ranks = 1 (166.6 ms)`, of a table that has one base."""
        (base,) = {base for row in table.cells for base in _bases(row)}
        return f"compared with {table.base} ({self.base_text(base)})"


def _thousands(values: list[float], unit: str) -> tuple[str, float]:
    sizes = [abs(value) for value in values if value]
    if not sizes or max(sizes) < _LARGE:
        return unit, 1.0
    power = min(12, 3 * int(math.log10(max(sizes)) // 3))
    return f"10{str(power).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))} {unit}".rstrip(), 10.0**power


def _values(table: FigureTable, column: list[Any]) -> list[float]:
    place = table.columns.index(column)
    return [row[place].value for row in table.cells if row[place].value is not None]  # type: ignore[misc]


def _whole(values: list[float]) -> bool:
    return all(value.is_integer() and abs(value) < 1e15 for value in values)


def number(value: float | None, digits: int = DIGITS) -> str:
    """A number that stands alone: a count with all its digits."""
    return str(int(value)) if value is not None and _whole([value]) else significant(value, digits)


def unit_of(table: FigureTable, column: list[Any]) -> str:
    """The unit that the study gives a column."""
    return table.units[table.columns.index(column)] if column in table.columns else ""


def plain(name: str) -> str:
    """An axis or a field in words."""
    return name.replace("_", " ").removeprefix("line.")


def is_further(table: FigureTable, column: list[Any]) -> bool:
    """Tell whether a column is made out of others."""
    return bool(table.also) and column in table.columns[-len(table.also) :]


def look(table: FigureTable, row: list[Any], column: list[Any]) -> FigureCell:
    """A cell; where this table has no such row or column, one that says so."""
    if row not in table.rows or column not in table.columns:
        return FigureCell(reason=NOWHERE)
    return table.cells[table.rows.index(row)][table.columns.index(column)]


def digits_of(cell: FigureCell) -> int:
    """As many digits as its interval leaves certain, and one: 2 at ±30 %, 3 at ±5 %."""
    reach = reach_of(cell)
    if reach is None:
        return _OF_ONE if SINGLE in cell.labels else DIGITS
    return min(DIGITS, max(2, 1 + math.ceil(-math.log10(reach)))) if reach > 0 else DIGITS


def reach_of(cell: FigureCell) -> float | None:
    """How far its interval reaches to the farther side, as part of the figure; None where it has none."""
    if (
        cell.value is None
        or cell.low is None
        or cell.high is None
        or not cell.low < cell.high
        or cell.value == 0
    ):
        return None
    return max(cell.value - cell.low, cell.high - cell.value) / abs(cell.value)


def base_place(table: FigureTable) -> str:
    """Where bases belong: in the `title` if there is one, over a `column`, to a `row`, else to the `cell`."""
    bases = [_bases(row) for row in table.cells]
    every = {base for row in bases for base in row}
    if len(every) < 2:
        return "title" if every else ""
    columns = zip(*(row[: len(row) - len(table.also)] for row in table.cells), strict=True)
    if all(len(_bases(column)) <= 1 for column in columns):
        return "column"
    return "row" if all(len(row) <= 1 for row in bases) else "cell"


def base_of(table: FigureTable, row: list[Any]) -> float | None:
    """The one base of a row."""
    return next(iter(_bases(table.cells[table.rows.index(row)])), None) if row in table.rows else None


def _bases(cells: Sequence[FigureCell]) -> set[float]:
    return {cell.base for cell in cells if cell.base is not None}


def short(cell: FigureCell) -> str:
    """Text of a cell without a figure; why is told below the table."""
    head = cell.reason.partition(":")[0]
    return NONE if cell.reason == NOWHERE else head if head in _KNOWN else "no figure"


def reasons(mine: Sequence[FigureTable]) -> list[str]:
    """Notes on why cells are empty."""
    cells = [cell for each in mine for row in each.cells for cell in row if cell.value is None]
    counted = dict.fromkeys(cell.reason for cell in cells if cell.reason)
    gap = [f"{NONE} means that the study has no such point"] if counted.pop(NOWHERE, 0) is None else []
    rest = [f"… and {len(counted) - _MOST} more reasons"] if len(counted) > _MOST else []
    return [*list(counted)[:_MOST], *rest, *gap]
