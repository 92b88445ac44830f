"""What a source claims, one by one: it holds here, does not, or cannot be tested; and by which figure.

holds = "at('speedup', size=2048, ranks=4) > 2"      a cell of a table
        "all(column('share', 'collective') < 0.5)"   a column of it
        "value('seconds.input.max', run='text', size=largest) > 1"      a figure of points

Names such as `largest` stand for expressions, which the study has under `names`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.statistics.summary import aggregate as aggregated
from tilewise.study import claims_check
from tilewise.study.cells import Cell
from tilewise.study.expression import Expression, Missing, Scope
from tilewise.study.observations import observe
from tilewise.study.paths import reason_of
from tilewise.study.results import Results
from tilewise.study.schema import Claim, Figures, File
from tilewise.study.tables import Table

HOLDS, FAILS, UNTESTABLE = "holds here", "does not hold here", "not testable here"


class Verdict(msgspec.Struct, kw_only=True):
    """`verdict` is one of the three; `figure` is what decided, in `unit`; `reason` why it is untestable."""

    text: str
    verdict: str
    source: str = ""
    figure: float | None = None
    unit: str = ""
    holds: str = ""
    reason: str = ""
    note: str = ""


def judge(results: Results, tables: list[Table], claim: Claim) -> Verdict:
    """What can be said of `claim` here; untestable, with the reason, where it cannot be computed."""
    made = Verdict(
        text=claim.text,
        verdict=UNTESTABLE,
        source=claim.source,
        unit=claim.unit,
        holds=claim.holds,
        note=claim.note,
    )
    if claim.untestable:
        made.reason = claim.untestable
        return made
    functions = _functions(results, tables)
    cores = results.sessions[-1].environment.cores if results.sessions else 1
    names: dict[str, Any] = {"cores": cores}
    shared = results.study.file.names
    where = f"{results.study.path}: claim {claim.text[:40]!r}"

    def look(name: str) -> Any:
        if name not in names and name in shared:
            names[name] = Expression(shared[name], where, functions).value(above(name))
        if name not in names:
            known = ", ".join((*names, *shared))
            raise UsageError(f"{where}: there is no name {name!r}; expected one of {known}, functions")
        return names[name]

    def above(name: str) -> Scope:
        """What the expression of a name may use: those that stand above it, so that none goes round."""
        earlier = ["cores", *list(shared)[: list(shared).index(name)]]

        def look_above(other: str) -> Any:
            if other not in earlier:
                raise UsageError(f"{where}: {name} asks for {other!r}; expected one of {', '.join(earlier)}")
            return look(other)

        return look_above

    try:
        if claim.needs and not (needs := Expression(claim.needs, where, functions)).holds(look):
            made.reason = needs.explained(look)
            return made
        if claim.figure:
            names["figure"] = made.figure = Expression(claim.figure, where, functions).number(look)
        made.verdict = HOLDS if Expression(claim.holds, where, functions).holds(look) else FAILS
    except (Missing, UsageError) as error:
        made.verdict, made.reason = UNTESTABLE, reason_of(error, where)
    return made


def spelled(file: File, figure: str) -> list[str]:
    """A claim's figure, and what each name in it stands for: `["figure = …", "largest = …"]`."""
    said = [f"figure = {figure}"] if figure else []
    wanted = set(_names(figure))
    for name, text in reversed(file.names.items()):  # each may use those above it
        if name in wanted:
            wanted |= _names(text)
            said.append(f"{name} = {text}")
    return said


def _names(text: str) -> set[str]:
    try:
        return claims_check.read(text, "claims").names
    except UsageError:  # which the verdict tells
        return set()


def _functions(results: Results, tables: list[Table]) -> dict[str, Callable[..., Any]]:
    named = {table.name: table for table in tables}

    def table_of(name: str) -> Table:
        if name not in named:
            raise UsageError(f"there is no table {name!r}; tables: {', '.join(named)}")
        return named[name]

    def cell(table: str, row: Any, column: Any = None) -> float:
        return _figure(table_of(table), table_of(table).look(row, [] if column is None else column))

    def at(table: str, **labels: Any) -> float:
        whole = table_of(table)
        row = [_take(labels, name, whole.name) for name in whole.row_names]
        names = whole.column_names or (["column"] if any(whole.columns) else [])
        column = [_take(labels, name, whole.name) for name in names]
        if labels:
            raise ValueError(f"table {table} has no axis {next(iter(labels))!r}")
        return cell(table, row, column)

    def column(table: str, label: Any) -> list[float]:
        whole = table_of(table)
        return _there(whole, [whole.look(row, label) for row in whole.rows])

    def row(table: str, label: Any) -> list[float]:
        whole = table_of(table)
        return _there(whole, [whole.look(label, each) for each in whole.columns])

    def cells(table: str) -> list[float]:
        whole = table_of(table)
        return _there(whole, [each for line in whole.cells for each in line])

    def value(path: str, aggregate: str = "median", **labels: Any) -> float:
        points = [p for p in results.points if _called(p.run, p.axes, labels)]
        seen = observe(points, Figures(name="claim"), path)
        there = [each for each in seen if each.samples()]
        if not there:
            raise Missing(
                next((each.reason for each in seen if each.reason), f"there is no point with {labels}")
            )
        if len(there) > 1:
            raise ValueError(f"{len(there)} points have {labels}")
        return aggregated(there[0].samples(), aggregate)

    def axis(name: str, **labels: Any) -> list[Any]:
        points = [p for p in results.points if p.entries and _called(p.run, p.axes, labels)]
        values = [value for value in results.order(name) if any(p.axes.get(name) == value for p in points)]
        if not values:
            raise Missing(f"nothing was measured that has {name}")
        return values

    return {
        "cell": cell,
        "at": at,
        "column": column,
        "row": row,
        "cells": cells,
        "value": value,
        "axis": axis,
    }


def _called(run: str, axes: dict[str, Any], labels: dict[str, Any]) -> bool:
    return all((run if name == "run" else axes.get(name)) == value for name, value in labels.items())


def _take(labels: dict[str, Any], name: str, table: str) -> Any:
    if name not in labels:
        raise ValueError(f"table {table} also has {name!r}")
    return labels.pop(name)


def _figure(table: Table, cell: Cell) -> float:
    if cell.value is None:
        raise Missing(f"table {table.name}: {cell.reason}")
    return cell.value


def _there(table: Table, cells: list[Cell]) -> list[float]:
    values = [cell.value for cell in cells if cell.value is not None]
    if not values:
        raise Missing(f"table {table.name}: {cells[0].reason if cells else 'no cells'}")
    return values
