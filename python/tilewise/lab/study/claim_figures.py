"""Functions that claims ask for figures by: cells, rows and columns of tables, figures of points, axes.

at('speedup', ranks=4) ──▶ Cell ──▶ its value, or what it is where one point has one of its launches alone
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewise.base.errors import UsageError
from tilewise.base.units import listing
from tilewise.lab.study import cells
from tilewise.lab.study.cells import Cell
from tilewise.lab.study.expression import Missing
from tilewise.lab.study.moves import placed
from tilewise.lab.study.observations import Bases, observe
from tilewise.lab.study.results import Results
from tilewise.lab.study.schema import Figures
from tilewise.lab.study.tables import Table


class Looked:
    """Answers the functions of one claim, and keeps every cell that it was asked for in `cells`.

    While `launch` names a point and one of its launches, figures are what they are with that launch alone.
    """

    def __init__(self, results: Results, tables: list[Table]) -> None:
        self._results = results
        self._tables = {table.name: table for table in tables}
        self._values: dict[str, Cell] = {}
        self._seen: dict[int, Cell] = {}
        self.launch: tuple[str, int] | None = None

    @property
    def cells(self) -> list[Cell]:
        """Each once."""
        return list(self._seen.values())

    def forget(self) -> None:
        """Starts anew with what was asked for."""
        self._seen.clear()

    def functions(self) -> dict[str, Callable[..., Any]]:
        """By their names in claims."""
        return {
            "cell": self._cell,
            "at": self._at,
            "column": self._column,
            "row": self._row,
            "cells": self._cells,
            "value": self._value,
            "axis": self._axis,
        }

    def _figure(self, cell: Cell) -> float:
        self._seen[id(cell)] = cell
        value = cell.value if self.launch is None else placed(cell, *self.launch)
        assert value is not None
        return value

    def _table(self, name: str) -> Table:
        if name not in self._tables:
            raise UsageError(f"there is no table {name!r}; tables: {', '.join(self._tables)}")
        return self._tables[name]

    def _cell(self, table: str, row: Any, column: Any = None) -> float:
        found = self._table(table).look(row, [] if column is None else column)
        if found.value is None:
            raise Missing(f"table {table}: {found.reason}")
        return self._figure(found)

    def _at(self, table: str, **labels: Any) -> float:
        whole = self._table(table)
        row = [_take(labels, name, whole.name) for name in whole.row_names]
        names = whole.column_names or (["column"] if any(whole.columns) else [])
        column = [_take(labels, name, whole.name) for name in names]
        if labels:
            raise ValueError(f"table {table} has no axis {next(iter(labels))!r}")
        return self._cell(table, row, column)

    def _column(self, table: str, label: Any) -> list[float]:
        whole = self._table(table)
        return self._there(whole, [whole.look(row, label) for row in whole.rows])

    def _row(self, table: str, label: Any) -> list[float]:
        whole = self._table(table)
        return self._there(whole, [whole.look(label, each) for each in whole.columns])

    def _cells(self, table: str) -> list[float]:
        whole = self._table(table)
        return self._there(whole, [each for line in whole.cells for each in line])

    def _there(self, table: Table, found: list[Cell]) -> list[float]:
        values = [self._figure(cell) for cell in found if cell.value is not None]
        if not values:
            raise Missing(f"table {table.name}: {found[0].reason if found else 'no cells'}")
        return values

    def _value(self, path: str, aggregate: str = "median", **labels: Any) -> float:
        name = repr((path, aggregate, sorted(labels.items())))
        if name not in self._values:
            self._values[name] = self._made(path, aggregate, labels)
        return self._figure(self._values[name])

    def _made(self, path: str, aggregate: str, labels: dict[str, Any]) -> Cell:
        """The cell of the one point that has these labels."""
        wanted = Figures(name="claim", aggregate=aggregate)
        points = [p for p in self._results.points if _called(p.run, p.axes, labels)]
        seen = observe(points, wanted, path)
        there = [each for each in seen if each.samples()]
        if not there:
            said = next(
                (each.reason for each in seen if each.reason), f"there is no point with {_said(labels)}"
            )
            raise Missing(said)
        if len(there) > 1:
            raise ValueError(f"{len(there)} points have {_said(labels)}")
        return cells.cell(there, Bases([], {}), wanted, {}, "value")

    def _axis(self, name: str, **labels: Any) -> list[Any]:
        called = [p for p in self._results.points if _called(p.run, p.axes, labels)]
        points = [p for p in called if p.entries]
        values = [
            value for value in self._results.order(name) if any(p.axes.get(name) == value for p in points)
        ]
        if not values:
            reasons = (point.reason for point in called if point.reason)
            raise Missing(next(reasons, f"nothing was measured that has {name}"))
        return values


def _said(labels: dict[str, Any]) -> str:
    """`ranks 2 and size 64`."""
    return listing([f"{name.replace('_', ' ')} {value}" for name, value in labels.items()]) or "these figures"


def _called(run: str, axes: dict[str, Any], labels: dict[str, Any]) -> bool:
    return all((run if name == "run" else axes.get(name)) == value for name, value in labels.items())


def _take(labels: dict[str, Any], name: str, table: str) -> Any:
    if name not in labels:
        raise ValueError(f"table {table} also has {name!r}")
    return labels.pop(name)
