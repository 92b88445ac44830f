"""95 % intervals over launches: of a figure, of a ratio, and of any expression of several figures.

launch 0   s s s s s s ──▶ figure ┐
launch 1   s s s s s s ──▶ figure ├─▶ mean ± Student's t · deviation / √launches   (logarithms)
launch 2   s s s s s s ──▶ figure ┘

Design: docs/design/measuring.md.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import truediv
from typing import NamedTuple

CONFIDENCE = 0.95

Interval = tuple[float, float]


class _Side(NamedTuple):
    """The mean of a side's launches, as logarithms or not, its standard error and its degrees of freedom."""

    mean: float
    error: float
    freedom: int
    logarithms: bool

    def at(self, errors: float) -> float:
        """The figure that lies so many standard errors from the mean."""
        value = self.mean + errors * self.error
        return _exp(value) if self.logarithms else value


def launch_interval(figures: Sequence[float]) -> Interval | None:
    """95 % of what launches are around, from one figure of each; None for fewer than two.

    Student's t over logarithms, so that it bounds the geometric mean, which is the median where logarithms
    are symmetric. With three launches it reaches 2.5 of their standard deviations to each side: a bootstrap
    would reach one, and miss in a third of all cases. Where a figure is not positive, t is taken of the
    figures themselves.
    """
    return interval_of(lambda figure: figure, figures)


def ratio_interval(above: Sequence[float], below: Sequence[float]) -> Interval | None:
    """95 % of `above` / `below`, from one figure of each launch; None where a side has fewer than two.

    Both sides' variances count, and need not be the same: of logarithms, Welch's t, or Cochran's where one
    side has more launches.
    """
    return interval_of(truediv, above, below)


def interval_of(rule: Callable[..., float], *sides: Sequence[float]) -> Interval | None:
    """95 % of what `rule` makes of several independent sides, from one figure of each launch of a side.

    None where a side has fewer than two launches, or figures that are not finite. Each side in turn is moved
    by its standard error, for the degrees of freedom, and then as far as Student's t reaches; the squares of
    what that moves the result by are added up, on each side of it. Results are taken as logarithms where the
    rule is straighter on these, as ratios and products are. Raises what `rule` raises.
    """
    seen = [_side(figures) for figures in sides]
    known = [side for side in seen if side is not None]
    if len(known) < len(seen):
        return None
    centres = [side.at(0) for side in known]
    centre = rule(*centres)

    def moved(errors: float) -> list[Interval]:
        """Values of the rule with each side moved down and up, sorted."""
        bounds = []
        for place, side in enumerate(known):
            ends = [rule(*centres[:place], side.at(e), *centres[place + 1 :]) for e in (-errors, errors)]
            bounds.append((min(ends), max(ends)))
        return bounds

    ends = moved(1)
    scale = _straighter(centre, ends)
    parts = [((scale(high) - scale(low)) / 2) ** 2 for low, high in ends]
    if not math.isfinite(centre + math.fsum(parts)):
        return None
    if not any(parts):
        return centre, centre
    ends = moved(_student_of(parts, [side.freedom for side in known]))
    if not math.isfinite(sum(map(sum, ends))):
        return None
    if min(low for low, _ in ends) <= 0:
        scale = float
    below, above = (
        math.hypot(*(max(sign * (scale(centre) - scale(each[i])), 0.0) for each in ends))
        for i, sign in enumerate((1, -1))
    )
    back = _exp if scale is math.log else float
    return back(scale(centre) - below), back(scale(centre) + above)


def _student_of(parts: list[float], freedom: list[int]) -> float:
    """Student's t for a sum of variances, `parts`, each with its own degrees of `freedom`.

    Welch and Satterthwaite's for sides of as many launches each; of others these hold the truth in 88 % of
    cases at worst (simulated), and Cochran's mean of the sides' own t, weighted by their parts, in 95 %.
    """
    whole = math.fsum(parts)
    if min(freedom) == max(freedom):
        return student(freedom[0] * whole**2 / math.fsum(part**2 for part in parts))
    return math.fsum(part * student(own) for part, own in zip(parts, freedom, strict=True)) / whole


def narrow(figures: Sequence[float], relative: float) -> bool:
    """Tell whether the interval over launches lies within `relative` of their median on both sides."""
    interval = launch_interval(figures)
    if interval is None:
        return False
    centre = statistics.median(figures)
    return max(centre - interval[0], interval[1] - centre) <= relative * abs(centre)


def order_interval(samples: Sequence[float]) -> Interval:
    """95 % of the median of what one launch's samples are drawn from, by order statistics.

    They assume no distribution. Below six samples, it is all of them.
    """
    import numpy as np
    from scipy.special import bdtr  # type: ignore[import-untyped,unused-ignore]

    ordered = sorted(samples)
    count = len(ordered)
    tails = bdtr(np.arange(count // 2 + 1, dtype=np.float64), count, 0.5)
    place = max(int(np.searchsorted(tails, (1 - CONFIDENCE) / 2, side="right")), 1) - 1
    return float(ordered[place]), float(ordered[count - 1 - place])


@lru_cache(maxsize=1024)
def student(freedom: float) -> float:
    """The quantile of Student's t that leaves 5 % outside, half on each side."""
    from scipy.special import stdtrit  # type: ignore[import-untyped,unused-ignore]

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def probability(difference: float, error: float, freedom: float) -> float:
    """Probability of a difference so large or larger, to either side, by chance; 1 without an `error`."""
    from scipy.special import stdtr  # type: ignore[import-untyped,unused-ignore]

    return 2 * float(stdtr(freedom, -abs(difference) / error)) if error > 0 else 1.0


def _side(figures: Sequence[float]) -> _Side | None:
    if len(figures) < 2 or not all(map(math.isfinite, figures)):
        return None
    logarithms = min(figures) > 0
    values = list(map(math.log, figures)) if logarithms else list(figures)
    error = statistics.stdev(values) / math.sqrt(len(values))
    return _Side(statistics.fmean(values), error, len(values) - 1, logarithms)


def _straighter(centre: float, ends: list[Interval]) -> Callable[[float], float]:
    """`math.log` where the centre is nearer to the middle of its ends as logarithms, else `float`."""
    if centre <= 0 or min(low for low, _ in ends) <= 0:
        return float
    bent = math.fsum(abs(low + high - 2 * centre) for low, high in ends) / centre
    bent_logarithms = math.fsum(abs(math.log(low / centre) + math.log(high / centre)) for low, high in ends)
    return math.log if bent_logarithms <= bent else float


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))


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
    """Tell whether `holds` is true or false of all of `interval`; None where it is true of a part.

    It is tried at the ends, at 200 places between them, and at those `thresholds` that lie inside.
    """
    low, high = interval
    tried = [figure, low, high, *(each for each in thresholds if low <= each <= high)]
    tried += [low + (high - low) * step / _STEPS for step in range(1, _STEPS)] if high > low else []
    said = {bool(holds(each)) for each in tried}
    return said.pop() if len(said) == 1 else None
