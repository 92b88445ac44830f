"""Claims of a source, one by one: each holds here, fails, is undecided or cannot be tested, and why.

figure = "at('speedup', size=2048, ranks=4)"      a cell of a table
         "max(column('share', 'collective'))"     of a column of it
         "value('seconds.input.max', run='text', size=largest)"      a figure of points

Names such as `largest` stand for expressions, which the study has under `names`. A figure has an interval,
of all launches of all points that it is made of (`tilewise.lab.statistics.intervals`); a claim that holds in
part of it is undecided.

Design: docs/design/measuring.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import listing, plural
from tilewise.lab.measurement.result import has_simulated_devices
from tilewise.lab.statistics.intervals import decided, drift_of, drifted, moved_interval
from tilewise.lab.study import cells
from tilewise.lab.study.cells import FigureCell, moves_of, placed
from tilewise.lab.study.checks import CLAIM_FUNCTIONS, read_claim
from tilewise.lab.study.expression import Expression, Missing, Scope, short
from tilewise.lab.study.observations import Bases, observe, reason_of
from tilewise.lab.study.points import unmet
from tilewise.lab.study.results import MeasuredPoint, Results, environments_of
from tilewise.lab.study.schema import Figures, File, StudyClaim, condition_of
from tilewise.lab.study.tables import FigureTable


class Looked:
    """Answers the functions of one claim, and keeps every cell that it was asked for in `cells`.

    While `launch` names a point and one of its launches, figures are what they are with that launch alone.
    """

    def __init__(self, results: Results, tables: list[FigureTable]) -> None:
        self._results = results
        self._tables = {table.name: table for table in tables}
        self._values: dict[str, FigureCell] = {}
        self._seen: dict[int, FigureCell] = {}
        self.launch: tuple[str, int] | None = None

    @property
    def cells(self) -> list[FigureCell]:
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

    def _figure(self, cell: FigureCell) -> float:
        self._seen[id(cell)] = cell
        value = cell.value if self.launch is None else placed(cell, *self.launch)
        assert value is not None
        return value

    def _table(self, name: str) -> FigureTable:
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

    def _there(self, table: FigureTable, found: list[FigureCell]) -> list[float]:
        values = [self._figure(cell) for cell in found if cell.value is not None]
        if not values:
            raise Missing(f"table {table.name}: {found[0].reason if found else 'no cells'}")
        return values

    def _value(self, path: str, aggregate: str = "median", **labels: Any) -> float:
        name = repr((path, aggregate, sorted(labels.items())))
        if name not in self._values:
            self._values[name] = self._made(path, aggregate, labels)
        return self._figure(self._values[name])

    def _made(self, path: str, aggregate: str, labels: dict[str, Any]) -> FigureCell:
        """The cell of the one point that has these labels."""
        wanted = Figures(name="claim", aggregate=aggregate)
        points = [p for p in self._results.points if _matches(p.run, p.axes, labels)]
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
        called = [p for p in self._results.points if _matches(p.run, p.axes, labels)]
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


def _matches(run: str, axes: dict[str, Any], labels: dict[str, Any]) -> bool:
    return all((run if name == "run" else axes.get(name)) == value for name, value in labels.items())


def _take(labels: dict[str, Any], name: str, table: str) -> Any:
    if name not in labels:
        raise ValueError(f"table {table} also has {name!r}")
    return labels.pop(name)


HOLDS, FAILS, UNDECIDED, UNTESTABLE = "holds", "fails", "undecided", "untestable"
VERDICTS = {
    HOLDS: "holds here",
    FAILS: "does not hold here",
    UNDECIDED: "undecided here",
    UNTESTABLE: "not testable here",
}
"""Every verdict, with the words that people read."""


class Verdict(msgspec.Struct, kw_only=True):
    """`verdict` is one of `VERDICTS`; `figure` is what decided; `reason` why nothing is decided.

    `low` and `high` bound the figure with 95 % confidence. `n` are the launches of the point with fewest, of
    those that move the figure; None where it is made of none. `threshold` is the nearest number that the
    figure is compared with. `own`: all is computed from the source's own numbers. `points` are those whose
    launches move the figure. `settled`: it stays undecided however often these are launched.
    """

    claim: StudyClaim
    verdict: str
    figure: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    threshold: float | None = None
    reason: str = ""
    own: bool = False
    points: list[str] = []
    settled: bool = False


def judge(results: Results, tables: list[FigureTable], claim: StudyClaim) -> Verdict:
    """Judge `claim` by what was measured; untestable, with the reason, where it cannot be computed."""
    made = Verdict(claim=claim, verdict=UNTESTABLE)
    if claim.untestable or not claim.figure:
        made.reason = claim.untestable or "it has no figure to decide it by"
        return made
    made.own = _own(results.study.file, claim)
    try:
        _Judgement(results, tables, claim, made).judge()
        asked = [entry for point in results.points if point.key in made.points for entry in point.entries]
        if any(map(has_simulated_devices, environments_of(asked))):
            made.verdict, made.reason = UNTESTABLE, "its figures come from simulated devices"
    except (Missing, UsageError) as error:
        made.verdict, made.reason = UNTESTABLE, reason_of(error, _where(results, claim))
    return made


def _where(results: Results, claim: StudyClaim) -> str:
    return f"{results.study.path}: claim {claim.text[:40]!r}"


class _Judgement:
    """One claim's figure and condition, with all launches or with one of a point alone."""

    def __init__(self, results: Results, tables: list[FigureTable], claim: StudyClaim, made: Verdict) -> None:
        self._made = made
        self._looked = Looked(results, tables)
        self._functions = self._looked.functions()
        self._drifts = {point.key: _drift(point) for point in results.points}
        self._cores = results.sessions[-1].environment.cores if results.sessions else 1
        self._where = _where(results, claim)
        self._shared = results.study.file.names
        self._parsed: dict[str, Expression] = {}
        needs = condition_of(claim.needs)
        self._needs, self._needed = self._read(needs.holds) if needs.holds else None, needs.words
        self._figure = self._read(claim.figure)
        self._holds = self._read(claim.holds)

    def _read(self, text: str) -> Expression:
        if text not in self._parsed:
            self._parsed[text] = Expression(text, self._where, self._functions)
        return self._parsed[text]

    def judge(self) -> None:
        """Fills in the verdict; Missing or UsageError where it cannot be computed."""
        made = self._made
        scope = self._scope()
        if self._needs is not None and not self._needs.holds(scope):
            made.reason = unmet(self._needs, self._needed, scope)
            return
        self._looked.forget()
        figure = made.figure = self._figure.number(scope)
        scope = self._scope(figure)
        made.verdict = HOLDS if self._holds.holds(scope) else FAILS
        thresholds = self._holds.thresholds("figure", scope)
        made.threshold = min(thresholds, key=lambda each: abs(each - figure), default=None)
        self._decide(figure, thresholds)

    def _scope(self, figure: float | None = None) -> Scope:
        """Names of expressions as they are now; one may use those above it, so that none goes round."""
        names: dict[str, Any] = {"cores": self._cores, **({} if figure is None else {"figure": figure})}
        order = list(self._shared)

        def look(name: str) -> Any:
            if name not in names and name in self._shared:
                names[name] = self._read(self._shared[name]).value(above(name))
            if name not in names:
                known = ", ".join((*names, *order))
                raise UsageError(
                    f"{self._where}: there is no name {name!r}; expected one of {known}, functions"
                )
            return names[name]

        def above(name: str) -> Scope:
            earlier = ["cores", *order[: order.index(name)]]

            def look_above(other: str) -> Any:
                if other not in earlier:
                    raise UsageError(
                        f"{self._where}: {name} asks for {other!r}; expected one of {', '.join(earlier)}"
                    )
                return look(other)

            return look_above

        return look

    def _decide(self, figure: float, thresholds: list[float]) -> None:
        """Leave a claim undecided whose condition holds in a part of the interval of its figure."""
        made = self._made
        sides = self._sides(figure)
        drift = max((self._drifts[key] for key in made.points), default=0.0)
        interval = moved_interval(figure, list(sides.values()), drift)
        if interval is None:
            single = sum(len(side) < 2 for side in sides.values())
            said = f"a single launch of {plural(single, 'point')} does not show how launches differ"
            self._undecided(said if single else "its launches give no finite interval")
            return
        made.low, made.high = interval
        if decided(self._true_of, figure, interval, thresholds) is None:
            low, high = interval
            ends = listing([short(each) for each in sorted(set(thresholds)) if low <= each <= high])
            said = f"its 95 % interval reaches to both sides of {ends or 'what decides'}"
            alone = drifted(figure, (figure, figure), drift)
            bare = moved_interval(figure, list(sides.values())) or interval
            known = alone[0] <= bare[0] and bare[1] <= alone[1]
            made.settled = known and decided(self._true_of, figure, alone, thresholds) is None
            if made.settled:
                said += (
                    f"; more launches do not help, as sessions here differ by {100 * drift:.0f} % (deviation)"
                )
            self._undecided(said)

    def _true_of(self, figure: float) -> bool:
        return self._holds.holds(self._scope(figure))

    def _sides(self, figure: float) -> dict[str, list[float]]:
        """Figures with each launch of each point alone, for points that move the figure."""

        def moved(point: str, launch: int) -> float:
            self._looked.launch = (point, launch)
            try:
                return self._figure.number(self._scope())
            finally:
                self._looked.launch = None

        every = moves_of(moved, self._looked.cells)
        sides = {point: side for point, side in every.items() if len(side) < 2 or set(side) != {figure}}
        self._made.points = sorted({point.partition(" ")[0] for point in sides})
        self._made.n = min(map(len, (sides or every).values()), default=None)
        return sides

    def _undecided(self, reason: str) -> None:
        self._made.verdict, self._made.reason = UNDECIDED, reason


def _drift(point: MeasuredPoint) -> float:
    """Part by which a figure of `point` may differ in another session; an unknown machine may be virtual."""
    record = point.entries[-1].record or {} if point.entries else {}
    around, kinds = record.get("environment"), record.get("kinds")
    virtual = not isinstance(around, Mapping) or around.get("virtual") is not False
    listed = [kind for kind in kinds if isinstance(kind, str)] if isinstance(kinds, list) else []
    return max(drift_of(kind, virtual) for kind in (*listed, ""))


def _own(file: File, claim: StudyClaim) -> bool:
    """Tell whether nothing that was measured here is asked for."""
    texts = [claim.figure, claim.holds, condition_of(claim.needs).holds]
    asked = set(_called(texts))
    for name, text in reversed(file.names.items()):  # each may use those above it
        if name in {each for given in texts for each in _names(given)}:
            texts.append(text)
            asked |= set(_called([text]))
    return not asked & set(CLAIM_FUNCTIONS)


def _called(texts: Iterable[str]) -> Iterable[str]:
    for text in filter(None, texts):
        try:
            yield from (call.function for call in read_claim(text, "claims").calls)
        except UsageError:  # which the verdict tells
            continue


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
        return read_claim(text, "claims").names
    except UsageError:  # which the verdict tells
        return set()
