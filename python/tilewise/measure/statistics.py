"""What samples of several launches say: the median, how sure it is, and which samples stand apart.

A launch is one start of the ranks. Samples of one launch share its memory pages, its cores and its minute, so
they say little about the next launch: launches are the unit, samples only make each launch's median firmer.

    launch 0   s s s s s s ──▶ median ┐
    launch 1   s s s s s s ──▶ median ├─▶ mean ± Student's t · spread / √launches   (logarithms)
    launch 2   s s s s s s ──▶ median ┘
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tilewise.measure.result import Summary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.float64]

CONFIDENCE = 0.95

APART = 3.5
"""Modified z-scores above this are marked: Iglewicz and Hoaglin, How to Detect and Handle Outliers (1993)."""


def summarise(launches: list[list[float]]) -> tuple[Summary, list[tuple[int, int]]]:
    """Of seconds, a list for each launch; and the places (launch, sample) of those that stand apart.

    The median is that of all samples. Its interval is the union of two: Student's t over the logarithms of
    the launches' medians, which holds whatever samples of a launch have in common, and that of order
    statistics over all samples, which holds even where the launches agree by chance. One launch has only the
    second; of one sample both ends are the sample. Raises ValueError where there is no sample, or one is not
    finite. Deterministic; less than a millisecond for thousands of samples.
    """
    import numpy as np

    taken = [np.asarray(launch, dtype=np.float64) for launch in launches if len(launch)]
    if not taken:
        raise ValueError("there are no samples to summarise")
    everything = np.concatenate(taken)
    if not np.isfinite(everything).all():
        raise ValueError("a sample is not a finite number of seconds")
    median = float(np.median(everything))
    middles = np.array([np.median(launch) for launch in taken])
    low, high = order_interval(everything)
    if len(taken) > 1:
        below, above = launch_interval(middles)
        low, high = min(low, below), max(high, above)
    marked = apart(launches)
    least = float(middles.min())
    summary = Summary(
        n=len(everything),
        median=median,
        low=min(low, median),
        high=max(high, median),
        mean=float(everything.mean()),
        minimum=float(everything.min()),
        maximum=float(everything.max()),
        outliers=len(marked),
        spread=float(middles.max()) / least - 1 if least > 0 else 0.0,
    )
    return summary, marked


def launch_interval(middles: Samples) -> tuple[float, float]:
    """95 % of the middle of all launches there could be, from the medians of two or more.

    Student's t over logarithms: with three launches it reaches 2.5 of their standard deviations to each side.
    A bootstrap over three launches would reach one, and miss in a third of all cases. Times that are not
    positive (shorter than the clock's overhead) have no logarithm; then t is taken of the times.
    """
    import numpy as np
    from scipy.special import stdtrit  # type: ignore[import-untyped,unused-ignore]

    count = len(middles)
    positive = bool((middles > 0).all())
    values = np.log(middles) if positive else middles
    reach = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * float(values.std(ddof=1)) / math.sqrt(count)
    low, high = float(values.mean()) - reach, float(values.mean()) + reach
    return (math.exp(low), math.exp(min(high, 700.0))) if positive else (low, high)


def order_interval(samples: Samples) -> tuple[float, float]:
    """95 % of the median by order statistics, which assume no distribution; below six samples all of them."""
    import numpy as np
    from scipy.special import bdtr  # type: ignore[import-untyped,unused-ignore]

    ordered = np.sort(samples)
    count = len(ordered)
    tails = bdtr(np.arange(count // 2 + 1, dtype=np.float64), count, 0.5)
    place = max(int(np.searchsorted(tails, (1 - CONFIDENCE) / 2, side="right")), 1) - 1
    return float(ordered[place]), float(ordered[count - 1 - place])


def apart(launches: list[list[float]]) -> list[tuple[int, int]]:
    """Places of samples whose modified z-score exceeds 3.5, each against the median of its own launch.

    The scale is the median distance from those medians, in the launch or in all of them, whichever is
    larger: neither a slow launch nor an unsteady one is all outliers. Where more than half of the samples are
    equal (a coarse clock) it is the mean distance. Distances are of logarithms, since times have a long tail;
    nothing is marked below five samples.
    """
    import numpy as np

    rows = [np.asarray(row, dtype=np.float64) for row in launches]
    if sum(len(row) for row in rows) < 5:
        return []
    turned = np.log if all(bool((row > 0).all()) for row in rows) else np.asarray
    far = [np.abs(turned(row) - np.median(turned(row))) if len(row) else row for row in rows]
    common = _scale(np.concatenate(far))
    limits = [APART * max(common, _scale(one)) for one in far]
    return [
        (launch, int(sample))
        for launch, (one, limit) in enumerate(zip(far, limits, strict=True))
        if limit > 0
        for sample in np.flatnonzero(one > limit)
    ]


def _scale(distances: Samples) -> float:
    """Standard deviation that such distances from a median have where they are normal."""
    import numpy as np

    if not len(distances):
        return 0.0
    middle = float(np.median(distances))
    return middle / 0.6745 if middle > 0 else 1.2533 * float(distances.mean())
