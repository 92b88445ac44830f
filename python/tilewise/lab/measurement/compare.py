"""Says for each line of two measurements whether it became faster or slower, by a test and not by eye.

    line   launches before     launches after      d = difference of the means of logarithms
     …       y y y               y y y
    whole    d against what launches differ by, and what this machine drifts by between two measurements
    own      d less the middle of its neighbours (lines of its kind, nearly its size), against what launches
             differ by once all that the neighbours share is taken away

A line counts by either. Drift moves neighbours together, so only `whole` has to allow for it; a change of one
thing among many shows in `own`, where launches are firm and many lines tell how firm.

Design: docs/design/measuring.md.
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

import msgspec

from tilewise.lab.measurement.result import Line, Measurement
from tilewise.lab.statistics.intervals import DRIFT, drift_of, probability, student
from tilewise.lab.statistics.variances import Pair, false_discovery, pooled, shrunken

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


def judge_lines(
    rows: list[Pair], around: list[list[int]], least: float, drift: float, telling: int
) -> list[tuple[float, float, float | None]]:
    """For each row of one kind: the chance of its difference without a change, half its 95 % interval, and
    what its neighbours (`around`, places in `rows`) share. `least` and `drift` are logarithms."""
    import numpy as np

    whole = shrunken([pooled(row.residuals()) for row in rows], [row.freedom for row in rows])
    differences = np.array([row.difference for row in rows])
    middles = [float(np.median(differences[near])) if near else None for near in around]
    own_variance = shrunken(
        [pooled(_less(row, rows, near)) for row, near in zip(rows, around, strict=True)],
        [row.freedom for row in rows],
    )
    far, width = np.zeros(len(rows)), np.zeros(len(rows))
    for i, (row, near) in enumerate(zip(rows, around, strict=True)):
        if near:
            far[i] = differences[i] - (middles[i] or 0.0)
            width[i] = math.sqrt(own_variance.variance[i] * row.factor * (1 + 1.57 / len(near)))
    known = np.flatnonzero((width > 0) & np.isfinite(width))
    if len(known) >= telling:
        width[known] *= scatter(far[known] / width[known])
    judged = []
    for i, row in enumerate(rows):
        spread = whole.variance[i] * row.factor
        total = spread + 2 * drift * drift
        chance = 1.0
        reach = math.inf
        if row.freedom > 0:
            own = float(own_variance.variance[i]) * row.factor if around[i] else 0.0
            alone = max(spread - own, 0.0) ** 2 / row.freedom
            freedom = total**2 / (alone + own**2 / (row.freedom + own_variance.freedom))
            chance = probability(differences[i], math.sqrt(total), freedom)
            reach = student(row.freedom + whole.freedom) * math.sqrt(spread)
            if width[i] > 0 and far[i] * differences[i] > 0 and abs(differences[i]) > least:
                own_freedom = row.freedom + own_variance.freedom
                chance = min(chance, probability(float(far[i]), float(width[i]), own_freedom))
            chance = min(1.0, 2 * chance)
        judged.append((chance, reach, middles[i]))
    return judged


def scatter(z: Numbers) -> float:
    """How many times as wide as expected the middle of these lies, at least 1; those far off are left out."""
    import numpy as np

    near = np.abs(z - np.median(z))
    near = near[near <= 3 * max(1.0, 1.4826 * float(np.median(near)))]
    return max(1.0, 1.4826 * float(np.median(near)))


def _less(row: Pair, rows: list[Pair], near: list[int]) -> tuple[Numbers, Numbers]:
    """Residuals less the middle of what the neighbours' are in the same launch, where all have as many."""
    import numpy as np

    mine = row.residuals()
    if not near or any(rows[i].counts != row.counts for i in near):
        return mine
    theirs = [rows[i].residuals() for i in near]
    return (
        mine[0] - np.median([their[0] for their in theirs], axis=0),
        mine[1] - np.median([their[1] for their in theirs], axis=0),
    )


FASTER, SLOWER, SAME = "faster", "slower", "not distinguishable"

LEAST = 0.05
"""Differences of up to a twentieth are not worth a word, however sure."""

FALSE = 0.05
"""At most this share of the lines that are said to differ do not (expected; Benjamini and Hochberg, 1995)."""

_NEIGHBOURS = 5  # fewer do not tell what is shared
_TELLING = 10  # lines of a kind, for the width of what their differences scatter by
_PASSING = {"time", "load", "loadavg", "seconds", "pid", "cache_state", "memory_available"}


class LineChange(msgspec.Struct, frozen=True, kw_only=True):
    """One line of both. `before` and `after` are seconds: geometric means of the launches' medians.

    `ratio` is after / before, above 1 where it became slower, in the 95 % interval `low` to `high` that
    launches alone give it (None where there is one launch a side). `q` is the least share of false
    discoveries at which it would count; `shared` the ratio that its neighbours have, None where there are too
    few. `launches` counts those of before and after.
    """

    key: str
    kind: str
    series: str
    word: str
    before: float
    after: float
    ratio: float
    low: float | None
    high: float | None
    q: float
    shared: float | None
    launches: tuple[int, int]
    labels_before: list[str] = []
    labels_after: list[str] = []


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Something about the surroundings that is not as it was; None where one side does not say."""

    name: str
    before: Any
    after: Any


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of every line. `counts` has how many lines got each word; `skipped` key and reason.

    `least` is the relative difference below which none counts, `false` the false discovery rate, `drift` the
    standard deviation that lines of a kind are allowed from one measurement to the next.
    """

    before: dict[str, str]
    after: dict[str, str]
    changes: list[LineChange]
    only_before: list[str]
    only_after: list[str]
    skipped: list[tuple[str, str]]
    environment: list[Difference]
    notes: list[str]
    counts: dict[str, int]
    least: float = LEAST
    false: float = FALSE
    drift: dict[str, float]


def compare(
    before: Measurement, after: Measurement, least: float = LEAST, drift: float | None = None
) -> Comparison:
    """All lines of both. `drift` replaces what is assumed of this machine. Some 0.1 s for 500 lines."""
    old, new = _by_key(before), _by_key(after)
    real = _is_real(before) and _is_real(after)
    allowed = {
        kind: drift if drift is not None else drift_of(kind, virtual=not real)
        for kind in ("ping", "collective", "file", "memory", "compute")
    }
    skipped = []
    pairs = []
    for key in old:
        if key in new:
            reason = _why_not(old[key], "before") or _why_not(new[key], "after")
            if reason:
                skipped.append((key, reason))
            else:
                pairs.append((old[key], new[key]))
    changes = _judge(pairs, least, allowed)
    return Comparison(
        before=_described(before),
        after=_described(after),
        changes=changes,
        only_before=[key for key in old if key not in new],
        only_after=[key for key in new if key not in old],
        skipped=skipped,
        environment=differences(before.environment, after.environment),
        notes=_notes(before, after, pairs, changes, allowed, least),
        counts={word: sum(change.word == word for change in changes) for word in (FASTER, SLOWER, SAME)},
        least=least,
        drift=allowed,
    )


def _by_key(measurement: Measurement) -> dict[str, Line]:
    """Lines by key; series of one point that share a key are told apart."""
    lines: dict[str, Line] = {}
    for line in measurement.lines:
        lines[line.key if line.key not in lines else f"{line.key}/{line.series}"] = line
    return lines


def _why_not(line: Line, side: str) -> str:
    if line.skipped:
        return f"not run {side}: {line.skipped}"
    if not any(line.launches):
        return f"no samples {side}"
    if min(min(launch) for launch in line.launches if launch) <= 0:
        return f"{side} it took no longer than reading the clock"
    return ""


def _judge(pairs: list[tuple[Line, Line]], least: float, drift: dict[str, float]) -> list[LineChange]:
    """A change for each pair of lines, in their order."""
    if not pairs:
        return []
    import numpy as np

    rows = [Pair.of(_medians(before), _medians(after)) for before, after in pairs]
    chance = np.ones(len(rows))
    reach = np.zeros(len(rows))
    shared: list[float | None] = [None] * len(rows)
    for kind in {before.kind for before, _ in pairs}:
        places = [i for i, (before, _) in enumerate(pairs) if before.kind == kind]
        ours = [rows[i] for i in places]
        around = _neighbours([pairs[i][0] for i in places])
        judgements = judge_lines(ours, around, math.log1p(least), drift.get(kind, DRIFT), _TELLING)
        for i, (p, width, middle) in zip(places, judgements, strict=True):
            chance[i], reach[i], shared[i] = p, width, middle
    rate = false_discovery(chance)
    return [
        LineChange(
            key=after.key,
            kind=after.kind,
            series=after.series,
            word=SAME
            if rate[i] > FALSE or abs(rows[i].difference) <= math.log1p(least)
            else SLOWER
            if rows[i].difference > 0
            else FASTER,
            before=math.exp(rows[i].before),
            after=math.exp(rows[i].after),
            ratio=math.exp(rows[i].difference),
            low=_ratio(rows[i].difference - reach[i]),
            high=_ratio(rows[i].difference + reach[i]),
            q=float(rate[i]),
            shared=None if shared[i] is None else math.exp(shared[i] or 0.0),
            launches=rows[i].counts,
            labels_before=before.labels,
            labels_after=after.labels,
        )
        for i, (before, after) in enumerate(pairs)
    ]


def _medians(line: Line) -> list[float]:
    return [statistics.median(launch) for launch in line.launches if launch]


def _ratio(logarithm: float) -> float | None:
    return math.exp(max(min(logarithm, 700.0), -700.0)) if math.isfinite(logarithm) else None


def _neighbours(lines: list[Line]) -> list[list[int]]:
    """For each line, find places of lines like it of up to three times its size; up to sixteen where few."""
    like: dict[tuple[object, ...], list[tuple[int, float]]] = {}
    for place, line in enumerate(lines):
        like.setdefault(_family(line), []).append((place, math.log2(max(line.bytes, line.size, 1))))
    neighbours: list[list[int]] = [[] for _ in lines]
    for family in like.values():
        for place, size in family:
            for octaves in (math.log2(3), 4.0):
                neighbours[place] = [o for o, other in family if o != place and abs(other - size) <= octaves]
                if len(neighbours[place]) >= _NEIGHBOURS:
                    break
            else:
                neighbours[place] = []
    return neighbours


def _family(line: Line) -> tuple[object, ...]:
    series = line.series if line.kind in ("file", "compute") else ""
    return (line.level, line.pairs, line.ranks, line.threads, series)


def _is_real(measurement: Measurement) -> bool:
    """Tell whether it is known to come from a machine that is not virtual."""
    return measurement.environment.get("virtual") is False


def _described(measurement: Measurement) -> dict[str, str]:
    host = measurement.environment.get("host", "")
    return {
        "time": measurement.time,
        "host": str(host),
        "tilewise": measurement.tilewise,
        "command": " ".join(measurement.command),
    }


def differences(before: dict[str, Any], after: dict[str, Any], prefix: str = "") -> list[Difference]:
    """List differences of two environments by name; what differs every time (`time` …) is left out."""
    differing: list[Difference] = []
    for name in [*before, *(name for name in after if name not in before)]:
        if name in _PASSING:
            continue
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            differing += differences(old, new, f"{prefix}{name}.")
        elif old != new:
            differing.append(Difference(name=prefix + name, before=old, after=new))
    return differing


def _notes(
    before: Measurement,
    after: Measurement,
    pairs: list[tuple[Line, Line]],
    changes: list[LineChange],
    drift: dict[str, float],
    least: float,
) -> list[str]:
    """Notes for the reader: nothing in common, single launches, disturbances, kinds that moved as one."""
    notes = []
    if not pairs:
        notes.append("The two measurements have no line in common.")
    single = sum(max(change.launches) < 2 for change in changes)
    if single:
        notes.append(f"{single} lines have one launch on each side, which cannot show how launches vary.")
    for side, measurement in (("before", before), ("after", after)):
        said = sorted(
            {
                label.partition(" (")[0]
                for disturbance in measurement.disturbances
                for label in disturbance.labels
            }
        )
        if said:
            count = sum(bool(disturbance.labels) for disturbance in measurement.disturbances)
            total = len(measurement.disturbances)
            notes.append(f"Disturbed {side} ({', '.join(said)}): {count} of {total} launches.")
    for kind in dict.fromkeys(change.kind for change in changes):
        ours = sorted(change.ratio for change in changes if change.kind == kind)
        ratio = ours[len(ours) // 2]
        same = all(change.word == SAME for change in changes if change.kind == kind)
        if len(ours) >= _TELLING and abs(math.log(ratio)) > math.log1p(least) and same:
            notes.append(
                f"All of {kind} moved together ({ratio:.2f} times as long in the median), as measurements "
                f"here may ({drift.get(kind, DRIFT):.0%} standard deviation); measure again, alternating."
            )
    return notes
