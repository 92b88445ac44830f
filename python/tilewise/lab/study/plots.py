"""Plots of a study as plain data: curves with points, intervals and what is missing; nothing is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import plural
from tilewise.lab.study.cells import unit_shown
from tilewise.lab.study.checks import check_claim
from tilewise.lab.study.claims import judge
from tilewise.lab.study.expression import Expression, Missing
from tilewise.lab.study.observations import reason_of
from tilewise.lab.study.points import StudyPoint
from tilewise.lab.study.results import MeasuredPoint, Results
from tilewise.lab.study.schema import Figures, PlotWanted, Roof, SourceCurve, StudyClaim, TableWanted
from tilewise.lab.study.study import Study, expression
from tilewise.lab.study.tables import FigureTable, evaluate
from tilewise.lab.study.tables import check as check_table


class Bound(msgspec.Struct, kw_only=True):
    """A roof as it was measured here: one of `slope` and `height` is None."""

    label: str
    slope: float | None = None
    height: float | None = None


def bounds(
    results: Results, tables: Sequence[FigureTable], wanted: PlotWanted
) -> tuple[list[Bound], list[str]]:
    """The roofs of `wanted` that could be measured here, and why the others are missing."""
    made, missing = [], []
    for roof in wanted.roofs:
        told = judge(results, list(tables), _claim(roof))
        if told.figure is None:
            missing.append(f"no roof {roof.label}: {told.reason}")
        elif roof.slope:
            made.append(Bound(label=roof.label, slope=told.figure))
        else:
            made.append(Bound(label=roof.label, height=told.figure))
    return made, missing


def check_roofs(study: Study, wanted: PlotWanted) -> None:
    """Raises UsageError, before anything runs, for a roof that has no figure, or a wrong one."""
    for roof in wanted.roofs:
        where = f"{study.path}: plots {wanted.name}, the roof {roof.label!r}"
        if bool(roof.slope) == bool(roof.height):
            raise UsageError(f"{where} needs either a slope or a height")
        check_claim(study, _claim(roof), where)


def _claim(roof: Roof) -> StudyClaim:
    """Its figure is looked up as that of a claim is, names of the study included."""
    return StudyClaim(text=roof.label, figure=roof.slope or roof.height, holds="figure > 0")


class PlotSeries(msgspec.Struct, kw_only=True):
    """A curve; `low` and `high` are None of a single launch. What was not measured is absent.

    `names` has the value of the axis of each point whose `x` was computed; else it is empty.
    """

    label: str
    values: dict[str, Any]
    x: list[Any]
    y: list[float]
    low: list[float | None]
    high: list[float | None]
    names: list[Any] = []


class FigurePlot(msgspec.Struct, kw_only=True):
    """A figure: `kind` is line, bar, heat or scatter; `log` names the axes that are logarithmic.

    `table` has the same figures with x as rows and a column for each curve, so also the reasons of gaps.
    `references` are drawn dashed: curves of the source, or another figure of our points, called `beside`.
    """

    name: str
    title: str
    x_title: str
    y_title: str
    unit: str
    kind: str
    log: str
    series: list[PlotSeries]
    references: list[SourceCurve]
    ideal: PlotSeries | None
    table: FigureTable
    notes: list[str]
    roofs: list[Bound] = []
    beside: str = ""


_IDEAL = ("x", "first", "first_x")


def as_table(wanted: PlotWanted) -> TableWanted:
    """The table with the same figures: x as rows, a column for each curve."""
    shared = {name: getattr(wanted, name) for name in Figures.__struct_fields__}
    names = [wanted.series] if isinstance(wanted.series, str) else wanted.series
    return TableWanted(**shared, rows=wanted.x, columns=[*names])


def draw(results: Results, wanted: PlotWanted, tables: Sequence[FigureTable] = ()) -> FigurePlot:
    """The data of the plot that is wanted, with what roofs ask of `tables`; raises UsageError as these do."""
    table = evaluate(results, as_table(wanted))
    places = _places(results, wanted)
    series = []
    for place, values in enumerate(table.columns):
        there = [(row[0], cells[place]) for row, cells in zip(table.rows, table.cells, strict=True)]
        there = [(x, cell) for x, cell in there if cell.value is not None]
        named = dict(zip(table.column_names, values, strict=True))
        if places is not None:
            there = [(x, cell) for x, cell in there if places.look(x, values).value is not None]
        if there:
            names = [x for x, _ in there]
            series.append(
                PlotSeries(
                    label=", ".join(_said(name, value) for name, value in named.items()) or table.title,
                    values=named,
                    x=names if places is None else [places.look(x, values).value for x in names],
                    y=[float(cell.value) for _, cell in there if cell.value is not None],
                    low=[cell.low for _, cell in there],
                    high=[cell.high for _, cell in there],
                    names=[] if places is None else names,
                )
            )
    ideal, untold = _ideal(wanted, series, table, results)
    roofs, unmeasured = bounds(results, tables, wanted)
    return FigurePlot(
        name=wanted.name,
        title=table.title,
        x_title=wanted.x_title or wanted.x.replace("_", " "),
        y_title=wanted.y_title or table.title,
        unit=unit_shown(wanted, wanted.unit, wanted.value),
        kind=wanted.kind,
        log=wanted.log,
        series=series,
        references=[*wanted.references, *_beside(results, wanted, series)],
        beside=wanted.beside and wanted.beside_label,
        ideal=ideal,
        table=table,
        notes=[*table.notes, *untold, *unmeasured],
        roofs=roofs,
    )


def _beside(results: Results, wanted: PlotWanted, series: Sequence[PlotSeries]) -> list[SourceCurve]:
    """The other figure of the points of each curve: where a point has none, it is absent."""
    if not wanted.beside:
        return []
    other = evaluate(results, msgspec.structs.replace(as_table(wanted), value=wanted.beside))
    made = []
    for one in series:
        cells = [(x, other.look(x, [*one.values.values()]).value) for x in one.x]
        told = [(x, float(y)) for x, y in cells if y is not None]
        if told:
            x, y = map(list, zip(*told, strict=True))
            made.append(SourceCurve(label=one.label, source=wanted.beside_label, x=x, y=y))
    return made


def _places(results: Results, wanted: PlotWanted) -> FigureTable | None:
    """Where points stand that do not stand at their x: the same table, with that figure in its cells."""
    if not wanted.across:
        return None
    figure = msgspec.structs.replace(as_table(wanted), value=wanted.across, base={}, cell="", best="")
    return evaluate(results, figure)


def check(study: Study, points: list[StudyPoint], wanted: PlotWanted) -> None:
    """Raises UsageError, before anything runs, as for tables; and for names that an ideal line lacks."""
    check_table(study, points, as_table(wanted))
    if wanted.across:
        expression(study, wanted.across, f"plots {wanted.name}, across")
        if wanted.kind != "scatter" or wanted.base or wanted.best or wanted.ideal:
            raise UsageError(
                f"{study.path}: plots {wanted.name}: across is for points of kind 'scatter', without base, "
                "best and ideal"
            )
    if wanted.beside:
        expression(study, wanted.beside, f"plots {wanted.name}, beside")
        other = wanted.base or wanted.best or wanted.references or wanted.kind != "line"
        if other or not wanted.beside_label:
            raise UsageError(
                f"{study.path}: plots {wanted.name}: beside is for plots of kind 'line', with a "
                "beside_label, without base, best and references"
            )
    check_roofs(study, wanted)
    if wanted.ideal:
        rule = expression(study, wanted.ideal, f"plots {wanted.name}, ideal")
        runs = [run for run in study.runs if wanted.runs is None or run.name in wanted.runs]
        known = dict.fromkeys([*_IDEAL, *(axis for run in runs for axis in run.axes)])
        for name in sorted(rule.names - {*known}):
            raise UsageError(f"{rule.where} asks for {name!r}; expected one of {', '.join(known)}")


def _said(name: str, value: Any) -> str:
    return f"{name.replace('_', ' ')} {value}" if isinstance(value, (int, float)) else str(value)


def _ideal(
    wanted: PlotWanted, series: list[PlotSeries], table: FigureTable, results: Results
) -> tuple[PlotSeries | None, list[str]]:
    """The ideal line, an expression of `x`, of the first point of the first curve and of axes that have one
    value here; and why it has gaps."""
    if not wanted.ideal or not series:
        return None, []
    rule = Expression(wanted.ideal, f"{results.study.path}: plots {wanted.name}, ideal")
    made = PlotSeries(label=wanted.ideal_label, values={}, x=[], y=[], low=[], high=[])
    untold: dict[str, None] = {}
    points = [point for point in results.points if wanted.runs is None or point.run in wanted.runs]
    for (x,) in table.rows:
        if not any(x in each.x for each in series):
            continue
        names = dict(zip(_IDEAL, (x, series[0].y[0], series[0].x[0]), strict=True))

        def look(name: str, names: dict[str, Any] = names) -> Any:
            return names[name] if name in names else _only(points, name)

        try:
            y = rule.number(look)
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


def _only(points: list[MeasuredPoint], axis: str) -> Any:
    """The one value that `points` have on `axis`; UsageError where there are more, or none."""
    values = {repr(point.axes[axis]): point.axes[axis] for point in points if axis in point.axes}
    if len(values) != 1:
        raise UsageError(f"{axis} has {plural(len(values), 'value')} here, and not one")
    return next(iter(values.values()))
