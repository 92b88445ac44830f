"""What was seen of each point: samples by launch, names to call it by, and which other one is its base."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.lab.study.expression import Expression, Missing
from tilewise.lab.study.paths import follow, lines_of, numbers, parsed, reason_of, scope_for
from tilewise.lab.study.results import Measured
from tilewise.lab.study.schema import Figures
from tilewise.lab.study.store import Entry

_COUNTS = ("messages", "bytes", "flops", "io_calls", "ranks_working")  # of a record
_COUNTED = ("result.sweeps", "result.sweep_messages", "result.sweep_bytes", "result.model_bytes")


class Observation(msgspec.Struct):
    """What was seen of one point, or of one of its lines: samples by launch, and names to call it by.

    A line is measured in several launches itself: `inner` has the figure of each, where it can be told.
    `counts`: the figure counts what a program does, which is the same in every launch.
    """

    point: Measured
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


def observe(points: list[Measured], wanted: Figures, value: str) -> list[Observation]:
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


def _lines(point: Measured, wanted: Mapping[str, Any], figure: Expression) -> list[Observation]:
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
    """Whether all that it is made of are counts, which do not differ from launch to launch."""
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

    def point(self, point: Measured, reason: str) -> None:
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
    """Whether an expression over its names holds; one that it does not have is a no.

    Raises UsageError where the expression makes no sense for its values.
    """
    if not where:
        return True
    try:
        return parsed(where).holds(each.label)
    except Missing:
        return False
