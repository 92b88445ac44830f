"""Figures out of records, and which points and lines they were observed at.

seconds.total.max      samples.compute (a list: one a repetition)      seconds.input.max / seconds.total.max
"""

from __future__ import annotations

import math
import statistics
import statistics as plain
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.lab.study.expression import Expression, IncomputableError, Missing, Scope, short
from tilewise.lab.study.results import MeasuredPoint
from tilewise.lab.study.schema import Figures
from tilewise.lab.study.store import Entry


def follow(value: Any, path: str) -> Any:
    """Look up `path`; a list on the way is gone through item by item. Missing where nothing is."""
    walked = ""
    for name in path.split("."):
        walked = f"{walked}.{name}".lstrip(".")
        if isinstance(value, list):
            value = [follow(each, name) for each in value]
        elif isinstance(value, Mapping) and name in value:
            value = value[name]
        else:
            raise Missing(f"the record has no {walked}")
    if value is None:
        raise Missing(f"the record has no figure at {path}")
    return value


def scope_for(
    entry: Entry, line: Mapping[str, Any] | None = None, more: Mapping[str, Any] | None = None
) -> Scope:
    """Names in an expression: `more`, axes, the entry's own, then fields of the line and of the record."""
    own = {"run": entry.run, "launch": entry.launch, "command_seconds": entry.seconds}

    def look(name: str) -> Any:
        if name.startswith("line.") and line is not None:
            return follow(line, name.removeprefix("line."))
        for values in (more or {}, entry.axes, own):
            if name in values:
                return values[name]
        head = name.partition(".")[0]
        if line is not None and (head in line or name == "rate"):
            return _rate(line) if name == "rate" else follow(line, name)
        return follow(entry.record or {}, name)

    return look


def _rate(line: Mapping[str, Any]) -> float:
    """Amount that a line of a measurement moves or computes in a second."""
    return float(follow(line, "amount")) / float(follow(line, "summary.median"))


def lines_of(entry: Entry, wanted: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The lines of a measurement whose fields are as wanted; a list stands for any of its values.

    The kind `matrix` has a line for each two ranks of a measured table of pairs. `each` is the path of a
    list, which has a line for each `item`, with its `number` from 1.
    """
    record = entry.record or {}
    cells = record.get("lines")
    if "each" in wanted:
        cells = _items(record, wanted["each"])
    elif wanted.get("kind") == "matrix":
        cells = _pairs(record.get("matrices"))
    lines = [line for line in cells if isinstance(line, Mapping)] if isinstance(cells, list) else []
    return [line for line in lines if all(_fits(line.get(key), value) for key, value in wanted.items())]


def _items(record: Mapping[str, Any], path: str) -> list[Mapping[str, Any]]:
    try:
        items = follow(record, path)
    except Missing:
        return []
    items = items if isinstance(items, list) else [items]
    return [
        {"each": path, "key": f"{path}/{number}", "series": "", "number": number, "item": item}
        for number, item in enumerate(items, 1)
    ]


def _pairs(matrices: Any) -> list[Mapping[str, Any]]:
    """The cells of tables of pairs as lines: `summary.median` are seconds of a message, one way."""
    made: list[Mapping[str, Any]] = []
    for matrix in matrices if isinstance(matrices, list) else []:
        own = {"kind": "matrix", "series": "", "level": matrix["level"] or "core", "bytes": matrix["bytes"]}
        for rank, row in enumerate(matrix["seconds"]):
            for partner, seconds in enumerate(row):
                if rank != partner and seconds is not None:
                    key = f"matrix/{own['level']}/{matrix['bytes']}B/{rank}/{partner}"
                    pair = {"key": key, "rank": rank, "partner": partner}
                    made.append({**own, **pair, "summary": {"median": seconds}})
    return made


def _fits(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, list) else bool(value == wanted)


FIGURE = "the figure"  # the place that messages name


@lru_cache(maxsize=512)
def parsed(text: str) -> Expression:
    """An expression that was checked when its study was read."""
    return Expression(text, FIGURE)


def reason_of(error: Missing | UsageError, where: str = "") -> str:
    """Why there is no figure, for a cell or a verdict: without the place and the expression."""
    said = f"it cannot be computed: {error.reason}" if isinstance(error, IncomputableError) else str(error)
    return said.removeprefix(f"{where}: ").removeprefix(f"{FIGURE}: ")


def numbers(value: Any) -> list[float]:
    """A figure's numbers, one or many; Missing where it is something else, or is not finite."""
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    try:
        if isinstance(value, (int, float)) and math.isfinite(value):
            return [float(value)]
    except OverflowError:  # more digits than a float's exponent has
        pass
    raise Missing(
        f"{short(value)} is not a finite number" if _counts(value) else f"{short(value)} is not a number"
    )


def _counts(value: Any) -> bool:
    return isinstance(value, (int, float))


def figure_of(text: str, entry: Entry) -> float | None:
    """The figure of one launch, the median where the launch has several; None where it has none.

    So it is where the figure cannot be computed of this launch; UsageError is for what is no expression.
    """
    figure = parsed(text)
    try:
        samples = numbers(figure.value(scope_for(entry)))
    except (Missing, UsageError):
        return None
    return plain.median(samples) if samples else None


_COUNTS = ("messages", "bytes", "flops", "io_calls", "ranks_working")  # of a record
_COUNTED = ("result.sweeps", "result.sweep_messages", "result.sweep_bytes", "result.model_bytes")


class Observation(msgspec.Struct):
    """Samples of one point, or of one of its lines, by launch, and names to call it by.

    A line is measured in several launches itself: `inner` has the figure of each, where it can be told.
    `counts`: the figure counts what a program does, which is the same in every launch.
    """

    point: MeasuredPoint
    line: Mapping[str, Any] | None
    launches: list[list[float]]
    reason: str = ""
    inner: list[list[float]] = []
    counts: bool = False

    @property
    def key(self) -> str:
        """Whose launches these are."""
        if self.line is None:
            return self.point.key
        return f"{self.point.key} {self.line.get('key')} {self.line.get('series')}"

    def label(self, name: str) -> Any:
        """The value of an axis, of `run`, or of a field of the line (also as `line.field`); else Missing."""
        if name == "run":
            return self.point.run
        if name.startswith("line.") and self.line is not None:
            return follow(self.line, name.removeprefix("line."))
        if name in self.point.axes:
            return self.point.axes[name]
        if self.line is not None:
            return follow(self.line, name)
        raise Missing(f"points of {self.point.run} have no {name}")

    def samples(self) -> list[float]:
        return [sample for launch in self.launches for sample in launch]


def observe(points: list[MeasuredPoint], wanted: Figures, value: str) -> list[Observation]:
    """Every point, or every wanted line of it, with the samples of `value`."""
    seen = []
    figure = parsed(value)
    for point in points:
        if wanted.lines and point.entries:
            seen += _lines(point, wanted.lines, figure)
            continue
        made = Observation(point, None, [], point.reason, counts=counted(figure))
        for entry in point.entries:
            _sample(made, figure, scope_for(entry))
        seen.append(made)
    return seen


def _lines(point: MeasuredPoint, wanted: Mapping[str, Any], figure: Expression) -> list[Observation]:
    """A line's launches come together by its key and series."""
    of_key: dict[str, Observation] = {}
    for entry in point.entries:
        for line in lines_of(entry, wanted):
            key = repr((line.get("key"), line.get("series")))
            made = of_key.setdefault(key, Observation(point, line, []))
            if line.get("skipped"):
                made.reason = f"not run: {line['skipped']}"
                continue
            _sample(made, figure, scope_for(entry, line))
            _sample_inner(made, figure, entry, line)
    return list(of_key.values())


def _sample(made: Observation, figure: Expression, scope: Any) -> None:
    try:
        made.launches.append(numbers(figure.value(scope)))
    except (Missing, UsageError) as error:
        made.reason = made.reason or reason_of(error)


def _sample_inner(made: Observation, figure: Expression, entry: Entry, line: Mapping[str, Any]) -> None:
    """The figure of each launch of the line itself, where no other statistic than the median is asked for."""
    launches, summary = line.get("launches"), line.get("summary")
    asked = {name.removeprefix("line.") for name in figure.names}
    if not isinstance(launches, list) or not isinstance(summary, Mapping):
        return
    if any(name.startswith("summary.") and name != "summary.median" for name in asked):
        return
    try:
        for launch in filter(None, launches):
            own = {**line, "summary": {**summary, "median": statistics.median(numbers(launch))}}
            made.inner.append(numbers(figure.value(scope_for(entry, own))))
    except (Missing, UsageError):
        made.inner.clear()


def counted(figure: Expression) -> bool:
    """Tell whether all that it is made of are counts, which do not differ from launch to launch."""
    counts = (name.partition(".")[0] in _COUNTS or name in _COUNTED for name in figure.names)
    return bool(figure.names) and all(counts)


class Lost:
    """Why points have no place in a table: each reason once, with the points of a run that it holds for."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}
        self._points: dict[tuple[str, str], dict[str, None]] = {}

    def say(self, text: str) -> None:
        """Adds a reason that is about no single point."""
        self._said[text] = None

    def point(self, point: MeasuredPoint, reason: str) -> None:
        """Adds a point that has no place."""
        axes = ", ".join([point.run, *(f"{name} = {axis}" for name, axis in point.axes.items())])
        self._points.setdefault((point.run, reason), {})[axes] = None

    def sentences(self) -> list[str]:
        """One for each reason."""
        made = list(self._said)
        for (run, reason), axes in self._points.items():
            made.append(
                f"{run}, {len(axes)} points: {reason}" if len(axes) > 1 else f"{next(iter(axes))}: {reason}"
            )
        return made


class Bases:
    """Finds observations by their names. A name that an observation does not have does not count.

    `tied` has, by run, axes that go together: where a base says one of them, the others follow.
    """

    def __init__(self, every: list[Observation], tied: Mapping[str, list[set[str]]]) -> None:
        self._every = every
        self._tied = tied
        self._indexes: dict[tuple[str, ...], _Index] = {}

    def of(self, one: Observation, own: Mapping[str, Any], wanted: Figures) -> list[Observation]:
        """The base of `one`: the point with the same names but for those that the base says.

        Where the best of several is wanted, so it is of the base: then only the cell's `own` names count.
        """
        runs = {one.point.run, wanted.base.get("run", one.point.run)}
        groups = [group for run in runs for group in self._tied.get(run, ())]
        follows = {name for group in groups if group & set(wanted.base) for name in group}
        goal = dict(own)
        if not wanted.best:
            goal |= {"run": one.point.run, **one.point.axes}
        goal = {**{name: value for name, value in goal.items() if name not in follows}, **wanted.base}
        bases = self._find(goal)
        if wanted.best and "run" not in goal and wanted.runs is not None:
            bases = [each for each in bases if each.point.run in wanted.runs]
        if wanted.best and wanted.where and not parsed(wanted.where).names & set(wanted.base):
            bases = [each for each in bases if fits(each, wanted.where)]
        return bases

    def unknown(self, wanted: Figures) -> str:
        """A name of the base that nothing here has, which would make every point its own base; or nothing."""
        return unknown(self._every, wanted.base)

    def _find(self, goal: Mapping[str, Any]) -> list[Observation]:
        names = tuple(sorted(goal))
        if names not in self._indexes:
            self._indexes[names] = _Index(self._every, names)
        index = self._indexes[names]
        sought = [repr(goal[name]) for name in names]
        matches = []
        for missing in index.patterns:
            key = tuple(None if no else text for no, text in zip(missing, sought, strict=True))
            matches += index.at.get(key, [])
        return matches


class _Index:
    """Observations by what some names are of each; `patterns` say which names some of them do not have."""

    def __init__(self, every: list[Observation], names: tuple[str, ...]) -> None:
        self.at: dict[tuple[str | None, ...], list[Observation]] = {}
        for each in every:
            self.at.setdefault(tuple(_label(each, name) for name in names), []).append(each)
        self.patterns = {tuple(label is None for label in labels) for labels in self.at}


def _label(each: Observation, name: str) -> str | None:
    try:
        return repr(each.label(name))
    except Missing:
        return None


def unknown(every: list[Observation], names: Iterable[str]) -> str:
    """The first of `names` that none of `every` has; empty where there is none."""
    return next((name for name in names if all(_label(each, name) is None for each in every)), "")


def fits(each: Observation, where: str) -> bool:
    """Tell whether an expression over its names holds; one that it does not have is a no.

    Raises UsageError where the expression makes no sense for its values.
    """
    if not where:
        return True
    try:
        return parsed(where).holds(each.label)
    except Missing:
        return False
