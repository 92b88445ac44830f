"""Tables of a study as plain data: each cell a figure with interval and base, or why there is none.

observations (a point, or a line of one, with the samples of all launches)
    ── rows × columns ──▶ cells ── base, cell ──▶ speedups, shares, efficiency … ── also ──▶ further columns

A further column is an expression over the names of the others: `write * write_time`.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.lab.study.cells import (
    NOWHERE,
    FigureCell,
    Grid,
    arrange,
    cell,
    cell_or_reason,
    key_of,
    moves_of,
    ordered,
    placed,
    unit_shown,
)
from tilewise.lab.study.checks import check_figure
from tilewise.lab.study.expression import Expression, Missing
from tilewise.lab.study.observations import Bases, Lost, Observation, observe, parsed, reason_of
from tilewise.lab.study.points import StudyPoint
from tilewise.lab.study.results import MeasuredPoint, Results
from tilewise.lab.study.schema import FigureColumn, Further, Reference, Scale, Settings, TableWanted
from tilewise.lab.study.study import Study, expression, line_of

_MOST_LABELS = 10_000  # combinations of column axes that names are checked against


def name_of(axes: Sequence[str], label: Sequence[Any]) -> str:
    """`MPI-IO, split` is called MPI_IO_split, 4 of the axis ranks ranks_4; a column without a label value."""
    parts = []
    for place, value in enumerate(label):
        text = re.sub(r"\W+", "_", str(value)).strip("_")
        bare = isinstance(value, str) and not text[:1].isdigit()
        parts.append(text if bare or place >= len(axes) else f"{axes[place]}_{text}")
    return unicodedata.normalize("NFKC", "_".join(parts) or "value")  # as Python spells names


def column_names(axes: Sequence[str], labels: Sequence[Sequence[Any]]) -> dict[str, int]:
    """The place of each column by its name; of two that are called alike, none."""
    called = [name_of(axes, label) for label in labels]
    return {name: place for place, name in enumerate(called) if called.count(name) == 1}


def check_derived(study: Study, wanted: TableWanted) -> None:
    """Raises UsageError, before anything runs, for names that no column has and for a title twice.

    Columns that are fields of lines are known only once they are measured: of these only titles are checked.
    """
    where = f"{study.path}: tables {wanted.name}"
    columns = [wanted.columns] if isinstance(wanted.columns, str) else wanted.columns
    axes = [each for each in columns if isinstance(each, str)]
    titles = [[each.title] for each in columns if isinstance(each, FigureColumn)]
    known: list[list[Any]] = titles or [[]]
    if axes:
        known = [] if wanted.lines else column_labels(study, axes)
    certain = bool(known)
    rows = [wanted.rows] if isinstance(wanted.rows, str) else wanted.rows
    for each in wanted.also:
        if [each.title] in known:
            raise UsageError(
                f"{where}: two columns are named {each.title!r}{line_of(study.text, each.title)}"
            )
        rule = expression(study, each.value, f"tables {wanted.name}, also {each.title!r}")
        there = {*column_names(axes, known), *rows}
        lacking = sorted(rule.names - there)
        if lacking and certain:
            raise UsageError(
                f"{rule.where} asks for {lacking[0]!r}; expected one of {', '.join(sorted(there))}"
            )
        known = [*known, [each.title]]


def column_labels(study: Study, axes: list[str]) -> list[list[Any]]:
    """Every label that columns over `axes` may have at any scale; none where these are too many."""
    file = study.file
    changes = [*file.scales.values(), *(each for run in file.runs for each in run.scales.values())]
    places: list[Settings | Scale] = [file, *file.runs, *changes]
    values = []
    for axis in axes:
        values_of_axis = [value for place in places for value in place.axes.get(axis, [])]
        values_of_axis += [run.name for run in study.runs] if axis == "run" else []
        values.append(list({repr(value): value for value in values_of_axis}.values()))
    if math.prod(len(each) for each in values) > _MOST_LABELS:
        return []
    return [list(label) for label in itertools.product(*values)]


def derive_reference(told: Reference, rows: Sequence[str], also: Sequence[Further]) -> Reference:
    """The source's figures with the same further columns, where it has what these are made of."""
    columns, values = list(told.columns), [list(line) for line in told.values]
    for each in also:
        rule = parsed(each.value)
        places = column_names([], [label if isinstance(label, list) else [label] for label in columns])
        if not rule.names <= {*places, *rows}:
            continue
        for label, line in zip(told.rows, values, strict=True):
            scope = dict(zip(rows, label if isinstance(label, list) else [label], strict=False))
            scope |= {name: line[place] for name, place in places.items()}
            try:
                line.append(float(f"{rule.number(scope.__getitem__):.3g}"))
            except (Missing, UsageError, KeyError):
                line.append("")
        columns.append(each.title)
    return msgspec.structs.replace(told, columns=columns, values=values)


class FigureTable(msgspec.Struct, kw_only=True):
    """`cells[i][j]` belongs to `rows[i]`, `columns[j]`: values of the axes `row_names` and `column_names`.

    Where columns are figures, `column_names` is empty and `columns` are titles; `units` has one a column. The
    last columns are titles too where they are made out of those before, by the expressions `also`.
    """

    name: str
    title: str
    row_names: list[str]
    column_names: list[str]
    rows: list[list[Any]]
    columns: list[list[Any]]
    units: list[str]
    cells: list[list[FigureCell]]
    base: str = ""
    aggregate: str = "median"
    also: list[str] = []
    notes: list[str] = []
    reference: Reference | None = None

    def look(self, row: Any, column: Any) -> FigureCell:
        """The cell of a row and a column, each a value or a list of values; Missing where there is none."""
        return self.cells[self._place(self.rows, row, "row")][self._place(self.columns, column, "column")]

    def _place(self, labels: list[list[Any]], label: Any, what: str) -> int:
        wanted = label if isinstance(label, list) else [label]
        if wanted not in labels:
            raise Missing(f"table {self.name} has no {what} {', '.join(map(str, wanted))}")
        return labels.index(wanted)


def evaluate(results: Results, wanted: TableWanted) -> FigureTable:
    """The table that is wanted; a cell that cannot be computed holds the reason; without rows, its notes do.

    Where columns are both axes and figures, which `check` refuses, the figures are what is shown.
    """
    row_names, where = _list(wanted.rows), f"{results.study.path}: tables {wanted.name}"
    figures = (
        [each for each in wanted.columns if isinstance(each, FigureColumn)]
        if isinstance(wanted.columns, list)
        else []
    )
    named = wanted.columns if isinstance(wanted.columns, list) else [wanted.columns]
    column_names = [] if figures else [each for each in named if isinstance(each, str)]
    lost, order = Lost(), partial(results.order, runs=wanted.runs)

    def grid(value: str, lines: dict[str, Any]) -> Grid:
        own = msgspec.structs.replace(wanted, lines={**wanted.lines, **lines})
        seen = observe(results.points, own, value)
        bases = Bases(seen, tied(results.study))
        return arrange(order, seen, bases, own, row_names, column_names, where, lost, cell_or_reason)

    wholes = [grid(each.value, each.lines) for each in figures]
    if not figures:
        rows, columns, cells = grid(wanted.value, {})
        units = [unit_shown(wanted, wanted.unit, wanted.value)] * len(columns)
    else:
        rows = ordered(order, row_names, [row for whole in wholes for row in whole[0]])
        columns = [[each.title] for each in figures]
        units = [unit_shown(wanted, each.unit or wanted.unit, each.value) for each in figures]
        parts = [
            {key_of(row): line[0] for row, line in zip(whole[0], whole[2], strict=True)} for whole in wholes
        ]
        cells = [[part.get(key_of(row), FigureCell(reason=NOWHERE)) for part in parts] for row in rows]
    missing = lost.sentences()
    table = FigureTable(
        name=wanted.name,
        title=wanted.title or wanted.name,
        row_names=row_names,
        column_names=column_names,
        rows=rows,
        columns=columns,
        units=units,
        cells=cells,
        base=", ".join(f"{name} = {value}" for name, value in wanted.base.items()),
        aggregate=wanted.aggregate,
        notes=[*wanted.notes, *missing] if rows else missing or ["the study has no such point at this scale"],
        reference=wanted.reference and derive_reference(wanted.reference, row_names, wanted.also),
    )
    for each in wanted.also:
        _add(table, each)
    return table


def _add(table: FigureTable, further: Further) -> None:
    """A column more, made out of those that are there."""
    places = column_names(table.column_names, table.columns)
    rule = parsed(further.value)
    for row, line in zip(table.rows, table.cells, strict=True):
        there = {name: line[place] for name, place in places.items()}
        line.append(_made(rule, dict(zip(table.row_names, row, strict=True)), there))
    table.columns.append([further.title])
    table.units.append(further.unit)
    table.also.append(further.value)


def _made(rule: Expression, row: dict[str, Any], there: dict[str, FigureCell]) -> FigureCell:
    """Apply `rule` to the cells that are there; the cell with fewest samples tells their number."""
    cells = [there[name] for name in rule.names if name in there]

    def look(name: str) -> Any:
        if name in there and there[name].value is None:
            raise Missing(there[name].reason)
        if name not in there and name not in row:
            raise Missing(f"there is no column {name!r} here")
        return there[name].value if name in there else row[name]

    def moved(point: str, launch: int) -> float:
        return rule.number(lambda name: placed(there[name], point, launch) if name in there else row[name])

    try:
        made = FigureCell(value=rule.number(look), n=min((cell.n for cell in cells), default=0))
    except (Missing, UsageError) as error:
        return FigureCell(reason=reason_of(error))
    with contextlib.suppress(Missing, UsageError):  # what can be computed of all launches, and not of each
        made.moves = moves_of(moved, cells)
    return made


def check(study: Study, points: list[StudyPoint], wanted: TableWanted) -> None:
    """Raises UsageError, before anything runs, for unknown names and cells that would hold several points."""
    where = f"{study.path}: tables {wanted.name}"
    columns = wanted.columns if isinstance(wanted.columns, list) else [wanted.columns]
    names = [*_list(wanted.rows), *(each for each in columns if isinstance(each, str))]
    texts = [each.value for each in columns if isinstance(each, FigureColumn)]
    if texts and len(texts) < len(columns):
        raise UsageError(f"{where}: columns are either axes or figures, not both")
    runs = [run for run in study.runs if wanted.runs is None or run.name in wanted.runs]
    lines = bool(wanted.lines) or any(each.lines for each in columns if isinstance(each, FigureColumn))
    base = wanted.base.get("run")
    read = [run for run in study.runs if run in runs or run.name == base]
    for text in texts or [wanted.value]:
        check_figure(study, text, f"tables {wanted.name}", read, lines)
    check_derived(study, wanted)
    asked = _names(study, wanted.where, wanted.name)
    axes = {"run", *(axis for run in runs for axis in run.axes)}
    everywhere = {"run", *(axis for run in study.runs for axis in run.axes)}
    if not lines:  # whose fields are known only once they are measured
        _known(study, where, "no run has an axis", names, axes)
        _known(study, where, "where: no run has an axis", asked, axes)
        _known(study, where, "base: no run has an axis", wanted.base, everywhere)
        _check_base(study, where, wanted.base)
    own = {*names, "value", *(["base"] if wanted.base else [])}
    _known(study, where, "cell has no", _names(study, wanted.cell, wanted.name), own)
    if lines:
        return
    seen = []
    for point in points:
        planned = MeasuredPoint(
            key=point.key, run=point.run, axes=point.axes, entries=[], reason=point.reason
        )
        seen.append(Observation(planned, None, [] if point.reason else [[1.0]], point.reason))
    plain = msgspec.structs.replace(wanted, cell="1" if wanted.cell else "")
    rows = _list(wanted.rows)
    bases = Bases(seen, tied(study))
    arrange(lambda name: [], seen, bases, plain, rows, names[len(rows) :], where, Lost(), cell)


def _check_base(study: Study, where: str, base: dict[str, Any]) -> None:
    """Raises UsageError where no point of any scale is the base."""
    for name, value in base.items():
        there = [label[0] for label in column_labels(study, [name])]
        if there and value not in there:
            place, known = line_of(study.text, "base = "), ", ".join(map(str, there))
            raise UsageError(f"{where}: base: no point has {name} = {value}{place}; it is one of {known}")


def _names(study: Study, text: str, table: str) -> list[str]:
    return sorted(expression(study, text, f"tables {table}").names) if text else []


def _known(study: Study, where: str, said: str, names: Iterable[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(
                f"{where}: {said} {name!r}{line_of(study.text, name)}; "
                f"expected one of {', '.join(sorted(known))}"
            )


def tied(study: Study) -> dict[str, list[set[str]]]:
    """Groups of axes that are zipped, by run."""
    return {run.name: [set(group) for group in run.zip or ()] for run in study.runs}


def _list(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
