"""Cells of a table: what falls into each, its figure with interval and base, or why there is none.

observations ── rows × columns ──▶ [[a, b], [], [c] …] ── base, cell ──▶ FigureCell, FigureCell …

A cell knows its moves: what its figure would be with one launch of a point alone.
    point a: launches 1.0 1.2        ──▶  rule(1.0, b)  rule(1.2, b)                 a: [ … ]
    point b: launches 3.0 2.8 3.1    ──▶  rule(a, 3.0)  rule(a, 2.8)  rule(a, 3.1)   b: [ … ]
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from tilewise.base.errors import UsageError
from tilewise.lab.statistics.intervals import Interval, interval_of
from tilewise.lab.statistics.summary import aggregate
from tilewise.lab.study.expression import Missing
from tilewise.lab.study.observations import Bases, Lost, Observation, fits, parsed, reason_of, unknown
from tilewise.lab.study.results import cores_of, labels_of, of_ratio
from tilewise.lab.study.schema import Figures

Moves = Mapping[str, Sequence[float]]


class Movable(Protocol):
    """A figure, and what it would be with single launches of each point that it is made of."""

    value: float | None
    moves: Moves


def placed(cell: Movable, point: str, launch: int) -> float | None:
    """The figure where `point` has only that launch; as it is where it does not depend on the point."""
    moved = cell.moves.get(point, ())
    return moved[launch] if launch < len(moved) else cell.value


def moves_of(rule: Callable[[str, int], float], cells: Iterable[Movable]) -> dict[str, list[float]]:
    """Values of `rule(point, launch)` for each launch of each point that one of `cells` depends on."""
    counts: dict[str, int] = {}
    for cell in cells:
        for point, moved in cell.moves.items():
            counts[point] = min(len(moved), counts.get(point, len(moved)))
    return {point: [rule(point, launch) for launch in range(count)] for point, count in counts.items()}


NOWHERE = "no such point"  # the reason of a cell that the study has no point for


class FigureCell(msgspec.Struct, kw_only=True):
    """A figure of `n` samples; `low` and `high` bound it with 95 % confidence, by a figure of each launch.

    `base` is what it was compared with: the bounds then hold what its launches differ by as well. They are
    None where one of the two has a single launch. `moves` has, by point, what `value` would be with one of
    its launches alone. `chosen` says which point was the best; `reason` why `value` is None;
    `labels` what a reader must know beside it.
    """

    value: float | None = None
    n: int = 0
    low: float | None = None
    high: float | None = None
    base: float | None = None
    chosen: str = ""
    reason: str = ""
    moves: Moves = {}
    labels: list[str] = []


def unit_shown(wanted: Figures, unit: str, value: str) -> str:
    """The unit of a cell whose `value` is in `unit`: a ratio to a base has none, or is said to be so many ×.

    Times are in seconds where the study does not say.
    """
    if wanted.base and not wanted.cell:
        return unit if unit == "×" else ""
    return unit or ("s" if is_time(value) and not wanted.cell else "")


def is_time(value: str) -> bool:
    """Tell whether `value` is a path to a time, or a sum of such."""
    times = [name.startswith(("seconds.", "samples.", "command_seconds")) for name in parsed(value).names]
    return bool(times) and all(times) and not set("*/<>=%[") & set(value)


Grid = tuple[list[list[Any]], list[list[Any]], list[list[FigureCell]]]
Order = Callable[[str], list[Any]]  # all values of an axis, in the order of the study
MakeCell = Callable[[list[Observation], Bases, Figures, dict[str, Any], str], FigureCell]


def arrange(
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
        lost.say(f"where asks for {name!r}, which no point here has")
    seen = _fitting(mine, wanted, lost if make is cell_or_reason else None)
    at: dict[str, list[Observation]] = {}
    labels: list[tuple[list[Any], list[Any]]] = []
    absent: list[Observation] = []
    for each in seen:
        try:
            row, column = ([each.label(name) for name in names] for names in (row_names, column_names))
        except Missing as missing:
            lost.point(each.point, each.reason or str(missing))
            absent.append(each)
            continue
        at.setdefault(key_of([row, column]), []).append(each)
        labels.append((row, column))
    rows = ordered(order, row_names, [row for row, _ in labels])
    missed = _columns_not_run(absent, {each.point.run for each in seen if each.launches}, column_names)
    columns = ordered(
        order, column_names, [column for _, column in labels] + [column for column, _ in missed if rows]
    )
    names = [*row_names, *column_names]
    cells = []
    for row in rows:
        line = []
        for column in columns:
            observations = at.get(key_of([row, column]), [])
            own = dict(zip(names, [*row, *column], strict=True))
            reason = next((why for label, why in missed if label == column), "") if not observations else ""
            line.append(
                FigureCell(reason=reason) if reason else make(observations, bases, wanted, own, where)
            )
        cells.append(line)
    return rows, columns, cells


def _columns_not_run(
    absent: list[Observation], there: set[str], column_names: list[str]
) -> list[tuple[list[Any], str]]:
    """Columns of runs of which nothing could be measured here, and why: they are shown, although empty."""
    found = []
    for each in absent:
        if each.reason and each.point.run not in there:
            with contextlib.suppress(Missing):
                found.append(([each.label(name) for name in column_names], each.reason))
    return found


def _fitting(every: list[Observation], wanted: Figures, lost: Lost | None) -> list[Observation]:
    """Select those for which `where` holds; why nobody can tell goes to `lost`, or is raised without one."""
    fitting = []
    for each in every:
        try:
            if fits(each, wanted.where):
                fitting.append(each)
            elif lost and wanted.lines and each.reason and unknown([each], parsed(wanted.where).names):
                lost.point(each.point, each.reason)  # it has none of the lines that are asked for
        except UsageError as error:
            if lost is None:
                raise
            lost.say(f"where: {reason_of(error)}")
    return fitting


def cell_or_reason(
    observations: list[Observation], bases: Bases, wanted: Figures, own: dict[str, Any], where: str
) -> FigureCell:
    """The cell of what was found; where it cannot be computed, it holds the reason."""
    try:
        return cell(observations, bases, wanted, own, where)
    except UsageError as error:
        return FigureCell(reason=reason_of(error, where), n=sum(len(each.samples()) for each in observations))


def cell(
    observations: list[Observation], bases: Bases, wanted: Figures, own: dict[str, Any], where: str
) -> FigureCell:
    """The cell whose row and column are `own`; UsageError, which begins with `where`, for several figures."""
    one = _one(observations, wanted, where, "cell")
    if one is None:
        reasons = [each.reason for each in observations if each.reason]
        return FigureCell(reason=reasons[0] if reasons else NOWHERE)
    samples = one.samples()
    made = FigureCell(
        value=aggregate(samples, wanted.aggregate),
        n=len(samples),
        chosen=_chosen(one, observations) if wanted.best else "",
        labels=_labels(one),
    )
    if wanted.base or wanted.cell:
        made = _compared(made, one, bases, wanted, own, where)
        if made.value is not None and made.base is not None:
            over_ranks = "ranks" in wanted.base and not wanted.cell
            interval = None if made.low is None or made.high is None else (made.low, made.high)
            made.labels += of_ratio(made.value, interval, cores_of(one.point), over_ranks)
        return made
    figures = _figures(one, wanted)
    _move(made, one, figures)
    return _bounded(made, interval_of(lambda figure: figure, figures))


def _figures(one: Observation, wanted: Figures) -> list[float]:
    """One figure of each launch, each an estimate of the cell's: of a sum, the whole if all were like it."""
    launches = [each for each in one.launches if each]
    if len(one.inner) > len(launches) and wanted.aggregate != "sum":
        launches = one.inner
    times = len(launches) if wanted.aggregate == "sum" else 1
    return [times * aggregate(each, wanted.aggregate) for each in launches]


def _labels(one: Observation) -> list[str]:
    """Labels of its launches; what is counted does not suffer from others."""
    return [] if one.counts else labels_of(one.point)


def _move(made: FigureCell, one: Observation, moved: list[float]) -> None:
    """Adds what single launches of `one` make of the cell; a count that was counted once does not move."""
    if len(moved) > 1 or not one.counts:
        made.moves = {**made.moves, one.key: moved}


def _bounded(made: FigureCell, interval: Interval | None) -> FigureCell:
    """The cell with its interval, which holds the figure itself."""
    if interval is not None and made.value is not None:
        made.low, made.high = min(made.value, interval[0]), max(made.value, interval[1])
    return made


def _compared(
    made: FigureCell, one: Observation, bases: Bases, wanted: Figures, own: dict[str, Any], where: str
) -> FigureCell:
    """The cell as part of, or beside, its base."""
    base = None
    if wanted.base:
        if name := bases.unknown(wanted):
            return FigureCell(reason=f"no base: no point here has {name!r}", n=made.n)
        candidates = bases.of(one, own, wanted)
        base = _one(candidates, wanted, where, "base")
        if base is None:
            said = next((each.reason for each in candidates if each.reason), NOWHERE)
            return FigureCell(reason=f"no base: {said}", n=made.n)
        made.base = aggregate(base.samples(), wanted.aggregate)
        made.labels += [each for each in _labels(base) if each not in made.labels]
    rule = parsed(wanted.cell or "base / value")

    def at(value: float, base: float | None = made.base) -> float:
        names = {**own, "value": value, "base": base}

        def look(name: str) -> Any:
            if names.get(name) is None:
                raise UsageError(f"{where}: cell asks for {name!r}; expected one of {', '.join(names)}")
            return names[name]

        return rule.number(look)

    assert made.value is not None
    value = made.value
    try:
        made.value = at(value)
    except Missing as missing:
        return FigureCell(reason=reason_of(missing), n=made.n, base=made.base)
    figures = _figures(one, wanted)
    with contextlib.suppress(Missing, UsageError):  # what can be computed at the figure, and not beside it
        if base is None or "base" not in rule.names:
            _move(made, one, [at(each) for each in figures])
            return _bounded(made, interval_of(at, figures))
        if base is one:
            _move(made, one, [at(each, each) for each in figures])
            return _bounded(made, interval_of(lambda figure: at(figure, figure), figures))
        bases_ = _figures(base, wanted)
        _move(made, one, [at(each) for each in figures])
        _move(made, base, [at(value, each) for each in bases_])
        return _bounded(made, interval_of(at, figures, bases_))
    return made


def _one(observations: list[Observation], wanted: Figures, where: str, what: str) -> Observation | None:
    """The one with samples, or the best of them."""
    there = [each for each in observations if each.samples()]
    if len(there) > 1 and wanted.best:
        pick = min if wanted.best == "min" else max
        return pick(there, key=lambda each: aggregate(each.samples(), wanted.aggregate))
    if len(there) > 1:
        raise UsageError(
            f"{where}: a {what} holds {len(there)} figures, which differ in {_difference(there)}",
            'name it in rows, columns, where or runs; or set best = "min"',
        )
    return there[0] if there else None


def _difference(observations: list[Observation]) -> str:
    one, two = observations[:2]
    if one.point.run != two.point.run:
        return "run"
    differing = [axis for axis in one.point.axes if one.point.axes[axis] != two.point.axes.get(axis)]
    if not differing and one.line is not None and two.line is not None:
        differing = [
            k for k in one.line if k not in ("launches", "summary", "key") and one.line[k] != two.line.get(k)
        ]
    return ", ".join(differing) or "nothing"


def _chosen(one: Observation, observations: list[Observation]) -> str:
    """Name what tells `one` from the others: its run, and the axes that say more, so one of a zip."""
    runs = {each.point.run for each in observations}
    said = [one.point.run] if len(runs) > 1 else []
    alike = [each for each in observations if each.point.run == one.point.run]
    for axis, value in one.point.axes.items():
        left = [each for each in alike if each.point.axes.get(axis) == value]
        if len(left) < len(alike):
            said.append(f"{axis} = {value}")
            alike = left
    return ", ".join(said)


def ordered(order: Order, names: list[str], labels: list[list[Any]]) -> list[list[Any]]:
    """Labels once each, in the order of the study's axes; what is not an axis goes by size, or by name."""
    unique = list({key_of(label): label for label in labels}.values())
    orders = {name: order(name) for name in names}

    def place(label: list[Any]) -> list[tuple[int, float, str]]:
        keys = []
        for name, value in zip(names, label, strict=True):
            known = orders[name]
            if value in known:
                keys.append((0, float(known.index(value)), ""))
            elif isinstance(value, (int, float)):
                keys.append((1, float(value), ""))
            else:
                keys.append((2, 0.0, str(value)))
        return keys

    return sorted(unique, key=place)


def key_of(label: Any) -> str:
    """Key by which a label, which may be a list, is looked up."""
    return repr(label)
