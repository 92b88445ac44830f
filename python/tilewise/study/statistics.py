"""The little statistics that running and showing need: intervals of a figure over its launches."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from functools import lru_cache


def interval(samples: list[float]) -> tuple[float, float] | None:
    """A 95 % interval of what a further launch's figure is around: Student's t, a sample a launch.

    With the few launches that one can afford, order statistics say nothing: of three, the least and the
    greatest hold the median in 75 % of cases only. None for fewer than two samples.
    """
    if len(samples) < 2:
        return None
    centre, spread = statistics.fmean(samples), statistics.stdev(samples)
    half = student(len(samples) - 1) * spread / math.sqrt(len(samples))
    return centre - half, centre + half


def narrow(samples: list[float], relative: float) -> bool:
    """Whether the interval lies within `relative` of the median on both sides."""
    found = interval(samples)
    if found is None:
        return False
    centre = statistics.median(samples)
    return max(centre - found[0], found[1] - centre) <= relative * abs(centre)


@lru_cache(maxsize=256)
def student(degrees: int) -> float:
    """The two-sided 95 % quantile of Student's t distribution."""
    from scipy.special import stdtrit  # type: ignore[import-untyped,unused-ignore]

    return float(stdtrit(degrees, 0.975))


def aggregate(samples: list[float], how: str) -> float:
    """One figure of many: median, mean, min, max or sum."""
    known: dict[str, Callable[[list[float]], float]] = {
        "median": statistics.median,
        "mean": statistics.fmean,
        "min": min,
        "max": max,
        "sum": math.fsum,
    }
    return float(known[how](samples))


def chance(t: float, degrees: int) -> float:
    """How often Student's t is as far from zero as `t`, or farther."""
    from scipy.special import stdtr  # type: ignore[import-untyped,unused-ignore]

    return 2 * float(stdtr(degrees, -abs(t)))


def variance_of(groups: list[list[float]]) -> float:
    """The variance within groups, each around its own mean."""
    squares = math.fsum((x - statistics.fmean(group)) ** 2 for group in groups for x in group)
    return squares / (sum(map(len, groups)) - len(groups))
