"""Tables of a study as plain data: each cell a figure with interval and base, or why there is none.

observations (a point, or a line of one, with the samples of all launches)
    ── rows × columns ──▶ cells ── base, cell ──▶ speedups, shares, efficiency … ── also ──▶ further columns
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from tilewise.errors import UsageError
from tilewise.study import derived, statistics
from tilewise.study.expression import Expression, Missing
from tilewise.study.observations import Bases, Lost, Observation, fits, observe, unknown
from tilewise.study.paths import parsed, reason_of
from tilewise.study.points import Point
from tilewise.study.results import Measured, Results
from tilewise.study.schema import Figures, Further, Reference, TableWanted, Value, unit_shown
from tilewise.study.study import Study, expression, line_of

NOWHERE = "no such point"  # the reason of a cell that the study has no point for


class Cell(msgspec.Struct, kw_only=True):
    """A figure of `n` samples, with the 95 % interval over launches where there are several.

    `base` is what it was compared with, `chosen` says which point was the best; `reason` why `value` is None.
    """

    value: float | None = None
    n: int = 0
    low: float | None = None
    high: float | None = None
    base: float | None = None
    chosen: str = ""
    reason: str = ""


class Table(msgspec.Struct, kw_only=True):
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
    cells: list[list[Cell]]
    base: str = ""
    aggregate: str = "median"
    also: list[str] = []
    notes: list[str] = []
    reference: Reference | None = None

    def look(self, row: Any, column: Any) -> Cell:
        """The cell of a row and a column, each a value or a list of values; Missing where there is none."""
        return self.cells[self._place(self.rows, row, "row")][self._place(self.columns, column, "column")]

    def _place(self, labels: list[list[Any]], label: Any, what: str) -> int:
        wanted = label if isinstance(label, list) else [label]
        if wanted not in labels:
            raise Missing(f"table {self.name} has no {what} {', '.join(map(str, wanted))}")
        return labels.index(wanted)


Grid = tuple[list[list[Any]], list[list[Any]], list[list[Cell]]]
Order = Callable[[str], list[Any]]  # all values of an axis, in the order of the study
MakeCell = Callable[[list[Observation], Bases, Figures, dict[str, Any], str], Cell]


def evaluate(results: Results, wanted: TableWanted) -> Table:
    """The table that is wanted; a cell that cannot be computed holds the reason; without rows, its notes do.

    Where columns are both axes and figures, which `check` refuses, the figures are what is shown.
    """
    row_names, where = _list(wanted.rows), f"{results.study.path}: tables {wanted.name}"
    figures = (
        [each for each in wanted.columns if isinstance(each, Value)]
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
        return _grid(order, seen, bases, own, row_names, column_names, where, lost, _cell_or_reason)

    wholes = [grid(each.value, each.lines) for each in figures]
    if not figures:
        rows, columns, cells = grid(wanted.value, {})
        units = [unit_shown(wanted, wanted.unit)] * len(columns)
    else:
        rows = _ordered(order, row_names, [row for whole in wholes for row in whole[0]])
        columns = [[each.title] for each in figures]
        units = [unit_shown(wanted, each.unit or wanted.unit) for each in figures]
        parts = [
            {_key(row): line[0] for row, line in zip(whole[0], whole[2], strict=True)} for whole in wholes
        ]
        cells = [[part.get(_key(row), Cell(reason=NOWHERE)) for part in parts] for row in rows]
    missing = lost.sentences()
    table = Table(
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
        notes=[*wanted.notes, *missing] if rows else missing or ["no point of this is planned at this scale"],
        reference=wanted.reference and derived.beside(wanted.reference, row_names, wanted.also),
    )
    for each in wanted.also:
        _add(table, each)
    return table


def _add(table: Table, further: Further) -> None:
    """A column more, made out of those that are there."""
    places = derived.names(table.column_names, table.columns)
    rule = parsed(further.value)
    for row, line in zip(table.rows, table.cells, strict=True):
        there = {name: line[place] for name, place in places.items()}
        line.append(_made(rule, dict(zip(table.row_names, row, strict=True)), there))
    table.columns.append([further.title])
    table.units.append(further.unit)
    table.also.append(further.value)


def _made(rule: Expression, row: dict[str, Any], there: dict[str, Cell]) -> Cell:
    """What `rule` makes of the cells that are there; of how many samples is told by the one with fewest."""
    cells = [there[name] for name in rule.names if name in there]

    def look(name: str) -> Any:
        if name in there and there[name].value is None:
            raise Missing(there[name].reason)
        if name not in there and name not in row:
            raise Missing(f"there is no column {name!r} here")
        return there[name].value if name in there else row[name]

    try:
        return Cell(value=rule.number(look), n=min((cell.n for cell in cells), default=0))
    except (Missing, UsageError) as error:
        return Cell(reason=reason_of(error))


def check(study: Study, points: list[Point], wanted: TableWanted) -> None:
    """Raises UsageError, before anything runs, for unknown names and cells that would hold several points."""
    where = f"{study.path}: tables {wanted.name}"
    columns = wanted.columns if isinstance(wanted.columns, list) else [wanted.columns]
    names = [*_list(wanted.rows), *(each for each in columns if isinstance(each, str))]
    texts = [each.value for each in columns if isinstance(each, Value)]
    if texts and len(texts) < len(columns):
        raise UsageError(f"{where}: columns are either axes or figures, not both")
    for text in texts or [wanted.value]:
        expression(study, text, f"tables {wanted.name}")
    derived.check(study, wanted)
    asked = _names(study, wanted.where, wanted.name)
    runs = [run for run in study.runs if wanted.runs is None or run.name in wanted.runs]
    axes = {"run", *(axis for run in runs for axis in run.axes)}
    everywhere = {"run", *(axis for run in study.runs for axis in run.axes)}
    lines = wanted.lines or any(each.lines for each in columns if isinstance(each, Value))
    if not lines:  # whose fields are known only once they are measured
        _known(study, where, "no run has an axis", names, axes)
        _known(study, where, "where: no run has an axis", asked, axes)
        _known(study, where, "base: no run has an axis", wanted.base, everywhere)
    own = {*names, "value", *(["base"] if wanted.base else [])}
    _known(study, where, "cell has no", _names(study, wanted.cell, wanted.name), own)
    if lines:
        return
    seen = []
    for point in points:
        planned = Measured(key=point.key, run=point.run, axes=point.axes, entries=[], reason=point.reason)
        seen.append(Observation(planned, None, [] if point.reason else [[1.0]], point.reason))
    cell = msgspec.structs.replace(wanted, cell="1" if wanted.cell else "")
    rows = _list(wanted.rows)
    bases = Bases(seen, tied(study))
    _grid(lambda name: [], seen, bases, cell, rows, names[len(rows) :], where, Lost(), _cell)


def _names(study: Study, text: str, table: str) -> list[str]:
    return sorted(expression(study, text, f"tables {table}").names) if text else []


def _known(study: Study, where: str, said: str, names: Iterable[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise UsageError(
                f"{where}: {said} {name!r}{line_of(study.text, name)}; known are {', '.join(sorted(known))}"
            )


def tied(study: Study) -> dict[str, list[set[str]]]:
    """Groups of axes that are zipped, by run."""
    return {run.name: [set(group) for group in run.zip or ()] for run in study.runs}


def _grid(
    order: Order,
    every: list[Observation],
    bases: Bases,
    wanted: Figures,
    row_names: list[str],
    column_names: list[str],
    where: str,
    lost: Lost,
    make: MakeCell,
) -> Grid:
    """Labels of rows and of columns, and cells by `make`; why points have no place goes to `lost`."""
    mine = [each for each in every if wanted.runs is None or each.point.run in wanted.runs]
    asked = sorted(parsed(wanted.where).names) if wanted.where else []
    if any(each.launches for each in mine) and (name := unknown(mine, asked)):
        lost.say(f"where asks for {name!r}, which nothing here has")
    seen = _fitting(mine, wanted, lost if make is _cell_or_reason else None)
    at: dict[str, list[Observation]] = {}
    labels: list[tuple[list[Any], list[Any]]] = []
    for each in seen:
        try:
            row, column = ([each.label(name) for name in names] for names in (row_names, column_names))
        except Missing as missing:
            lost.point(each.point, each.reason or str(missing))
            continue
        at.setdefault(_key([row, column]), []).append(each)
        labels.append((row, column))
    rows = _ordered(order, row_names, [row for row, _ in labels])
    columns = _ordered(order, column_names, [column for _, column in labels])
    names = [*row_names, *column_names]
    cells = []
    for row in rows:
        line = []
        for column in columns:
            found = at.get(_key([row, column]), [])
            own = dict(zip(names, [*row, *column], strict=True))
            line.append(make(found, bases, wanted, own, where))
        cells.append(line)
    return rows, columns, cells


def _fitting(every: list[Observation], wanted: Figures, lost: Lost | None) -> list[Observation]:
    """Those for which `where` holds; why it cannot be told goes to `lost`, or is raised without one."""
    found = []
    for each in every:
        try:
            if fits(each, wanted.where):
                found.append(each)
            elif lost and wanted.lines and each.reason and unknown([each], parsed(wanted.where).names):
                lost.point(each.point, each.reason)  # it has none of the lines that are asked for
        except UsageError as error:
            if lost is None:
                raise
            lost.say(f"where: {reason_of(error)}")
    return found


def _cell_or_reason(
    found: list[Observation], bases: Bases, wanted: Figures, own: dict[str, Any], where: str
) -> Cell:
    try:
        return _cell(found, bases, wanted, own, where)
    except UsageError as error:
        return Cell(reason=reason_of(error, where), n=sum(len(each.samples()) for each in found))


def _cell(found: list[Observation], bases: Bases, wanted: Figures, own: dict[str, Any], where: str) -> Cell:
    one = _one(found, wanted, where, "cell")
    if one is None:
        reasons = [each.reason for each in found if each.reason]
        return Cell(reason=reasons[0] if reasons else NOWHERE)
    samples = one.samples()
    value = statistics.aggregate(samples, wanted.aggregate)
    bounds = statistics.interval(
        [statistics.aggregate(each, wanted.aggregate) for each in one.launches if each]
    )
    cell = Cell(value=value, n=len(samples), chosen=_chosen(one, found) if wanted.best else "")
    if bounds is not None:
        cell.low, cell.high = bounds
    return _compared(cell, one, bases, wanted, own, where)


def _compared(
    cell: Cell, one: Observation, bases: Bases, wanted: Figures, own: dict[str, Any], where: str
) -> Cell:
    """The cell as part of, or beside, its base."""
    if not wanted.base and not wanted.cell:
        return cell
    if wanted.base:
        if name := bases.unknown(wanted):
            return Cell(reason=f"no base: nothing here has {name!r}", n=cell.n)
        found = bases.of(one, own, wanted)
        base = _one(found, wanted, where, "base")
        if base is None:
            said = next((each.reason for each in found if each.reason), NOWHERE)
            return Cell(reason=f"no base: {said}", n=cell.n)
        cell.base = statistics.aggregate(base.samples(), wanted.aggregate)
    rule = parsed(wanted.cell or "base / value")

    def at(value: float) -> float:
        names = {**own, "value": value, "base": cell.base}

        def look(name: str) -> Any:
            if names.get(name) is None:
                raise UsageError(f"{where}: cell asks for {name!r}; known are {', '.join(names)}")
            return names[name]

        return rule.number(look)

    assert cell.value is not None
    try:
        ends = sorted(at(end) for end in (cell.low, cell.high) if end is not None and end > 0)
        cell.value = at(cell.value)
    except Missing as missing:
        return Cell(reason=reason_of(missing), n=cell.n, base=cell.base)
    cell.low, cell.high = (ends[0], ends[1]) if len(ends) == 2 else (None, None)
    return cell


def _one(found: list[Observation], wanted: Figures, where: str, what: str) -> Observation | None:
    """The one with samples, or the best of them."""
    there = [each for each in found if each.samples()]
    if len(there) > 1 and wanted.best:
        pick = min if wanted.best == "min" else max
        return pick(there, key=lambda each: statistics.aggregate(each.samples(), wanted.aggregate))
    if len(there) > 1:
        raise UsageError(
            f"{where}: a {what} holds {len(there)} figures, which differ in {_difference(there)}",
            'put that into rows, columns, where or runs; or say best = "min"',
        )
    return there[0] if there else None


def _difference(found: list[Observation]) -> str:
    one, two = found[:2]
    if one.point.run != two.point.run:
        return "run"
    differing = [axis for axis in one.point.axes if one.point.axes[axis] != two.point.axes.get(axis)]
    if not differing and one.line is not None and two.line is not None:
        differing = [
            k for k in one.line if k not in ("launches", "summary", "key") and one.line[k] != two.line.get(k)
        ]
    return ", ".join(differing) or "nothing"


def _chosen(one: Observation, found: list[Observation]) -> str:
    """What tells `one` from the others: its run, and of its axes those that say more, so one of a zip."""
    runs = {each.point.run for each in found}
    said = [one.point.run] if len(runs) > 1 else []
    alike = [each for each in found if each.point.run == one.point.run]
    for axis, value in one.point.axes.items():
        left = [each for each in alike if each.point.axes.get(axis) == value]
        if len(left) < len(alike):
            said.append(f"{axis} = {value}")
            alike = left
    return ", ".join(said)


def _ordered(order: Order, names: list[str], labels: list[list[Any]]) -> list[list[Any]]:
    """Labels once each, in the order of the study's axes; what is no axis goes by size, or by name."""
    unique = list({_key(label): label for label in labels}.values())
    orders = {name: order(name) for name in names}

    def place(label: list[Any]) -> list[tuple[int, float, str]]:
        found = []
        for name, value in zip(names, label, strict=True):
            known = orders[name]
            if value in known:
                found.append((0, float(known.index(value)), ""))
            elif isinstance(value, (int, float)):
                found.append((1, float(value), ""))
            else:
                found.append((2, 0.0, str(value)))
        return found

    return sorted(unique, key=place)


def _key(label: Any) -> str:
    return repr(label)


def _list(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
