"""Whether a statement about a figure is decided: where it holds for all of an interval, or for none of it.

fails ────────┤ threshold ├──────── holds
  ├──•──┤          ╎                        decided: it fails
             ├──•──╎──┤                     undecided
                   ╎        ├──•──┤         decided: it holds

The figure may be made of several points in any way, smooth or not. Each point's part is seen by giving it one
of its launches after the other; the parts are added as variances, as in `interval_of`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tilewise.lab.statistics.intervals import Interval, interval_of

DRIFT = 0.03
"""Standard deviation of a figure between two sessions on one machine, beside what its launches differ by."""

_VIRTUAL = {"ping": 0.25, "collective": 0.25}
_VIRTUAL_ELSE = 0.15

_STEPS = 200  # of an interval at which a statement is tried: a band narrower than one of them may be missed
_NORMAL = 1.96


def drift_of(kind: str, virtual: bool) -> float:
    """The drift of figures of a `kind` of measurement, or of jobs; more on a `virtual` machine.

    Its cores are moved about: latencies of the same program were 1.4 to 1.7 times as long ten minutes later
    (3.7 times with Open MPI), copies 1.2 times.
    """
    return _VIRTUAL.get(kind, _VIRTUAL_ELSE) if virtual else DRIFT


def moved_interval(figure: float, sides: Sequence[Sequence[float]], drift: float = 0.0) -> Interval | None:
    """95 % of `figure`; each side has what it would be if one point had had only one of its launches.

    Of a quotient of two points this is `ratio_interval`, of one point `launch_interval`, widened to hold
    `figure`, and by a relative `drift`. None where a side has a single launch: nobody knows what moves it.
    """
    if not sides:
        return figure, figure
    if figure > 0 and all(value > 0 for side in sides for value in side):
        interval = interval_of(lambda *moved: figure * math.prod(each / figure for each in moved), *sides)
    else:
        interval = interval_of(lambda *moved: figure + math.fsum(each - figure for each in moved), *sides)
    if interval is None:
        return None
    return drifted(figure, (min(figure, interval[0]), max(figure, interval[1])), drift)


def drifted(figure: float, interval: Interval, drift: float) -> Interval:
    """The interval with a drift in both directions added, as variances are."""
    low, high = interval
    if low > 0:
        below = math.hypot(math.log(figure / low), _NORMAL * drift)
        above = math.hypot(math.log(high / figure), _NORMAL * drift)
        return figure * math.exp(-below), figure * math.exp(above)
    more = _NORMAL * drift * abs(figure)
    return figure - math.hypot(figure - low, more), figure + math.hypot(high - figure, more)


def decided(
    holds: Callable[[float], bool], figure: float, interval: Interval, thresholds: Sequence[float] = ()
) -> bool | None:
    """Whether `holds` is true, or false, of everything in `interval`; None where it is true of a part of it.

    It is tried at the ends, at 200 places between them, and at those `thresholds` that lie inside.
    """
    low, high = interval
    tried = [figure, low, high, *(each for each in thresholds if low <= each <= high)]
    tried += [low + (high - low) * step / _STEPS for step in range(1, _STEPS)] if high > low else []
    said = {bool(holds(each)) for each in tried}
    return said.pop() if len(said) == 1 else None
