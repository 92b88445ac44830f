"""Plots of a study as plain data: curves with points, intervals and what is missing; nothing is drawn."""

from __future__ import annotations

from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.study.cells import unit_shown
from tilewise.study.expression import Expression, Missing
from tilewise.study.paths import reason_of
from tilewise.study.points import Point
from tilewise.study.results import Results
from tilewise.study.schema import Curve, Figures, PlotWanted, TableWanted
from tilewise.study.study import Study, expression
from tilewise.study.tables import Table, evaluate
from tilewise.study.tables import check as check_table


class Series(msgspec.Struct, kw_only=True):
    """A curve; `low` and `high` are None of a single launch. What was not measured is absent."""

    label: str
    values: dict[str, Any]
    x: list[Any]
    y: list[float]
    low: list[float | None]
    high: list[float | None]


class Plot(msgspec.Struct, kw_only=True):
    """A figure: `kind` is line, bar, heat or scatter; `log` names the axes that are logarithmic.

    `table` has the same figures with x as rows and a column for each curve, so also the reasons of gaps.
    """

    name: str
    title: str
    x_title: str
    y_title: str
    unit: str
    kind: str
    log: str
    series: list[Series]
    references: list[Curve]
    ideal: Series | None
    table: Table
    notes: list[str]


_IDEAL = ("x", "first", "first_x")


def as_table(wanted: PlotWanted) -> TableWanted:
    """The table with the same figures: x as rows, a column for each curve."""
    shared = {name: getattr(wanted, name) for name in Figures.__struct_fields__}
    names = [wanted.series] if isinstance(wanted.series, str) else wanted.series
    return TableWanted(**shared, rows=wanted.x, columns=[*names])


def draw(results: Results, wanted: PlotWanted) -> Plot:
    """The data of the plot that is wanted; raises UsageError as tables do."""
    table = evaluate(results, as_table(wanted))
    series = []
    for place, values in enumerate(table.columns):
        there = [(row[0], cells[place]) for row, cells in zip(table.rows, table.cells, strict=True)]
        there = [(x, cell) for x, cell in there if cell.value is not None]
        named = dict(zip(table.column_names, values, strict=True))
        if there:
            series.append(
                Series(
                    label=", ".join(_said(name, value) for name, value in named.items()) or table.title,
                    values=named,
                    x=[x for x, _ in there],
                    y=[float(cell.value) for _, cell in there if cell.value is not None],
                    low=[cell.low for _, cell in there],
                    high=[cell.high for _, cell in there],
                )
            )
    ideal, untold = _ideal(wanted, series, table, results.study.path)
    return Plot(
        name=wanted.name,
        title=table.title,
        x_title=wanted.x_title or wanted.x.replace("_", " "),
        y_title=wanted.y_title or table.title,
        unit=unit_shown(wanted, wanted.unit),
        kind=wanted.kind,
        log=wanted.log,
        series=series,
        references=wanted.references,
        ideal=ideal,
        table=table,
        notes=[*table.notes, *untold],
    )


def check(study: Study, points: list[Point], wanted: PlotWanted) -> None:
    """Raises UsageError, before anything runs, as for tables; and for names that an ideal line lacks."""
    check_table(study, points, as_table(wanted))
    if wanted.ideal:
        rule = expression(study, wanted.ideal, f"plots {wanted.name}, ideal")
        for name in sorted(rule.names - {*_IDEAL}):
            raise UsageError(f"{rule.where} asks for {name!r}; expected one of {', '.join(_IDEAL)}")


def _said(name: str, value: Any) -> str:
    return f"{name.replace('_', ' ')} {value}" if isinstance(value, (int, float)) else str(value)


def _ideal(
    wanted: PlotWanted, series: list[Series], table: Table, path: str
) -> tuple[Series | None, list[str]]:
    """The ideal line, an expression of `x` and of the first point of the first curve; and why it has gaps."""
    if not wanted.ideal or not series:
        return None, []
    rule = Expression(wanted.ideal, f"{path}: plots {wanted.name}, ideal")
    made = Series(label="ideal", values={}, x=[], y=[], low=[], high=[])
    untold: dict[str, None] = {}
    for (x,) in table.rows:
        if not any(x in each.x for each in series):
            continue
        names = dict(zip(_IDEAL, (x, series[0].y[0], series[0].x[0]), strict=True))
        try:
            y = rule.number(names.__getitem__)
        except Missing:
            continue
        except UsageError as error:
            untold[f"no ideal line: {reason_of(error, rule.where)}"] = None
            continue
        made.x.append(x)
        made.y.append(y)
        made.low.append(None)
        made.high.append(None)
    return (made if made.x else None), [*untold]
