"""Two results of a study, point by point: faster, slower, or not distinguishable, by a test and not by eye.

Logarithms of the launches' figures are compared by a t whose variance is shrunken towards that of all
points, as the few launches of one say little of it (`tilewise.lab.statistics.variances`). A change is named
where the false discovery rate over all points allows for it; one below `LEAST` gets no name, however certain.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import plural
from tilewise.lab.statistics.variances import Pair, compare_pairs, false_discovery
from tilewise.lab.study.expression import Expression, Missing
from tilewise.lab.study.observations import figure_of, lines_of, numbers
from tilewise.lab.study.results import MeasuredPoint, Results
from tilewise.lab.study.store import Entry

LEAST = 0.05  # part of the time: a smaller change is no change
FALSE = 0.05  # part of the named changes that may be none
FASTER, SLOWER, SAME = "faster", "slower", "not distinguishable"
NOT_COMPARED = "not compared"


class PointChange(msgspec.Struct, kw_only=True):
    """One point, or one line of it, in both: medians over launches, new over old, and what that means.

    `verdict` is "not compared" where one side has no figure, or a single launch; `reason` says which.

    `low` and `high` bound the ratio with 95 % confidence, by what the launches of both sides differ by, with
    a variance shrunken towards that of all points. `p` is the probability of such a difference without a
    change, `q` the least false discovery rate over all points at which it counts.
    """

    run: str
    axes: dict[str, Any]
    line: str = ""
    old: float | None = None
    new: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    q: float | None = None
    verdict: str = NOT_COMPARED
    reason: str = ""
    launches: tuple[int, int] = (0, 0)


class ResultsComparison(msgspec.Struct, kw_only=True):
    """`differences` are those of the environments: numbers from two machines are no two versions."""

    metric: str
    changes: list[PointChange]
    differences: list[str]
    only_old: int = 0
    only_new: int = 0


def compare(old: Results, new: Results, metric: str = "") -> ResultsComparison:
    """Compares what both have; `metric` is the study's own for its stop, or `seconds.total.max`, if empty."""
    stop = next((run.stop for run in new.study.runs if run.stop is not None), None)
    metric = metric or (stop.metric if stop is not None else "seconds.total.max")
    Expression(metric, "--metric")  # says what is wrong with it before any launch is looked at
    olds, news = _samples(old, metric), _samples(new, metric)
    for side, points in ((old, olds), (new, news)):
        launches = sum(len(point.entries) for point in side.points)
        if launches and not any(samples for _, samples in points.values()):
            raise UsageError(f"{side.folder}: {plural(launches, 'launch')}, none with a figure at {metric!r}")
    changes = {key: _change(key[1], olds[key], seen) for key, seen in news.items() if key in olds}
    _decide([(each, olds[key][1], news[key][1]) for key, each in changes.items() if not each.reason])
    return ResultsComparison(
        metric=metric,
        changes=list(changes.values()),
        differences=_differences(old, new),
        only_old=len(olds.keys() - news.keys()),
        only_new=len(news.keys() - olds.keys()),
    )


_Seen = tuple[MeasuredPoint, list[float]]


def _samples(results: Results, metric: str) -> dict[tuple[str, str], _Seen]:
    """One figure a launch, by point and line."""
    of_point: dict[tuple[str, str], _Seen] = {}
    for point in results.points:
        of_point[(point.key, "")] = (point, [])
        for entry in point.entries:
            lines = lines_of(entry, {})
            for line in (*lines,) or (None,):
                name = f"{line.get('key')}/{line.get('series')}" if line is not None else ""
                samples = _of_launch(entry, metric) if line is None else _of_line(line)
                if samples:
                    of_point.setdefault((point.key, name), (point, []))[1].extend(samples)
    return {key: seen for key, seen in of_point.items() if seen[1] or (key[1] == "" and not seen[0].entries)}


def _of_launch(entry: Entry, metric: str) -> list[float]:
    figure = figure_of(metric, entry)
    return [] if figure is None else [figure]


def _of_line(line: Mapping[str, Any]) -> list[float]:
    """A measurement has launches of its own."""
    launches = line.get("launches")
    if not isinstance(launches, list):
        return []
    try:
        return [statistics.median(numbers(each)) for each in launches if each]
    except Missing:  # of foreign make
        return []


def _change(line: str, old: _Seen, new: _Seen) -> PointChange:
    made = PointChange(run=old[0].run, axes=old[0].axes, line=line)
    if not old[1] or not new[1]:
        made.reason = old[0].reason or new[0].reason or "no figure"
        return made
    made.old, made.new = statistics.median(old[1]), statistics.median(new[1])
    if min(*old[1], *new[1]) <= 0:
        made.reason = "a time of zero"
        return made
    made.ratio = made.new / made.old
    if len(old[1]) < 2 or len(new[1]) < 2:
        made.reason = "one launch does not show how launches differ"
        return made
    made.launches = (len(old[1]), len(new[1]))
    return made


def _decide(tested: list[tuple[PointChange, list[float], list[float]]]) -> None:
    """Tests all, and names a change where it is certain enough among so many, and large enough."""
    pairs = [Pair.of(old, new) for _, old, new in tested]
    told = compare_pairs(pairs)
    rates = false_discovery([each.probability for each in told])
    for (change, _, _), pair, each, rate in zip(tested, pairs, told, rates, strict=True):
        assert change.ratio is not None
        change.p, change.q = each.probability, rate
        change.low = min(change.ratio, math.exp(pair.difference - each.reach))
        change.high = max(change.ratio, math.exp(pair.difference + each.reach))
        certain = rate <= FALSE and abs(math.log(change.ratio)) >= math.log1p(LEAST)
        change.verdict = (SLOWER if change.ratio > 1 else FASTER) if certain else SAME


def _differences(old: Results, new: Results) -> list[str]:
    if not old.sessions or not new.sessions:
        return []
    one, two = (msgspec.to_builtins(each.sessions[-1].environment) for each in (old, new))
    return [
        f"{key}: {one.get(key, 'unknown')} → {two.get(key, 'unknown')}"
        for key in {**one, **two}
        if one.get(key) != two.get(key)
    ]
