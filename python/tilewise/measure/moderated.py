"""Tests for many lines with few launches each: lines lend each other variances, and share one error rate.

With three launches on each side a line's own variance has four degrees of freedom, too few to tell much. All
lines of a kind together say how variances are distributed; each line's own is drawn towards that, and gains
their degrees of freedom: the moderated t of Smyth, Statistical Applications in Genetics and Molecular Biology
3 (2004) 3. How far lines scatter that did not change is read off the middle of them: Efron,
Journal of the American Statistical Association 99 (2004) 96.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

_QUIET = 1e-3
"""Standard deviation that no line goes below: launches that agree better do so by chance or by the clock."""


class Row(msgspec.Struct, frozen=True):
    """A line's launches: logarithms of their medians, on each side."""

    first: list[float]
    second: list[float]

    @classmethod
    def of(cls, before: list[list[float]], after: list[list[float]]) -> Row:
        """Of raw samples, all positive."""
        import numpy as np

        sides = [[math.log(float(np.median(one))) for one in side if one] for side in (before, after)]
        return cls(sides[0], sides[1])

    @property
    def before(self) -> float:
        return sum(self.first) / len(self.first)

    @property
    def after(self) -> float:
        return sum(self.second) / len(self.second)

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def counts(self) -> tuple[int, int]:
        return len(self.first), len(self.second)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of its own variance."""
        return len(self.first) + len(self.second) - 2

    @property
    def factor(self) -> float:
        """Variance of the difference, for a variance of one of a launch."""
        return 1 / len(self.first) + 1 / len(self.second)

    def residuals(self) -> tuple[Numbers, Numbers]:
        """What each launch is off its side's mean."""
        import numpy as np

        return np.array(self.first) - self.before, np.array(self.second) - self.after


def judge(
    rows: list[Row], around: list[list[int]], least: float, drift: float, telling: int
) -> list[tuple[float, float, float | None]]:
    """Of each row of one kind: the chance of its difference without a change, half its 95 % interval, and
    what its neighbours (`around`, places in `rows`) share. `least` and `drift` are logarithms."""
    import numpy as np

    whole = squeezed(np.array([_variance(row.residuals()) for row in rows]), [row.freedom for row in rows])
    differences = np.array([row.difference for row in rows])
    middles = [float(np.median(differences[near])) if near else None for near in around]
    own_variance = squeezed(
        np.array([_variance(_less(row, rows, near)) for row, near in zip(rows, around, strict=True)]),
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
    found = []
    for i, row in enumerate(rows):
        spread = whole.variance[i] * row.factor
        total = spread + 2 * drift * drift
        chance = 1.0
        reach = math.inf
        if row.freedom > 0:
            own = float(own_variance.variance[i]) * row.factor if around[i] else 0.0
            alone = max(spread - own, 0.0) ** 2 / row.freedom
            freedom = total**2 / (alone + own**2 / (row.freedom + own_variance.freedom))
            chance = beyond(differences[i], math.sqrt(total), freedom)
            reach = quantile(row.freedom + whole.freedom) * math.sqrt(spread)
            if width[i] > 0 and far[i] * differences[i] > 0 and abs(differences[i]) > least:
                own_freedom = row.freedom + own_variance.freedom
                chance = min(chance, beyond(float(far[i]), float(width[i]), own_freedom))
            chance = min(1.0, 2 * chance)
        found.append((chance, reach, middles[i]))
    return found


def scatter(z: Numbers) -> float:
    """How many times as wide as expected the middle of these lies, at least 1; those far off are left out."""
    import numpy as np

    near = np.abs(z - np.median(z))
    near = near[near <= 3 * max(1.0, 1.4826 * float(np.median(near)))]
    return max(1.0, 1.4826 * float(np.median(near)))


def _less(row: Row, rows: list[Row], near: list[int]) -> tuple[Numbers, Numbers]:
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


def _variance(residuals: tuple[Numbers, Numbers]) -> float:
    freedom = len(residuals[0]) + len(residuals[1]) - 2
    sum_ = float((residuals[0] ** 2).sum() + (residuals[1] ** 2).sum())
    return max(sum_ / freedom, _QUIET**2) if freedom > 0 else math.nan


class Squeezed(msgspec.Struct, frozen=True):
    """Variances drawn towards what lines have in common, and the degrees of freedom that they gained."""

    variance: Numbers
    freedom: float


def squeezed(variances: Numbers, freedom: list[int]) -> Squeezed:
    """Smyth's moderated variances; nan where a line has none of its own. His method of moments: log(s²) has
    the variance ψ′(d/2) + ψ′(d₀/2), from which d₀ follows."""
    import numpy as np
    from scipy.special import digamma, polygamma  # type: ignore[import-untyped,unused-ignore]

    degrees = np.array(freedom, dtype=np.float64)
    known = (degrees > 0) & np.isfinite(variances)
    if known.sum() < 3:
        return Squeezed(variances, 0.0)
    d, s = degrees[known], variances[known]
    e = np.log(s) - digamma(d / 2) + np.log(d / 2)
    middle = float(e.mean())
    excess = float(e.var(ddof=1)) - float(polygamma(1, d / 2).mean())
    if excess <= 0:
        prior, common = 1e3, math.exp(middle)
    else:
        prior = min(2 * _inverse_trigamma(excess), 1e3)
        common = math.exp(middle + float(digamma(prior / 2)) - math.log(prior / 2))
    mixed = np.where(known, (degrees * variances + prior * common) / (degrees + prior), math.nan)
    return Squeezed(mixed, prior)


def _inverse_trigamma(value: float) -> float:
    """x with ψ′(x) = value, which falls from infinity to 0."""
    from scipy.optimize import brentq  # type: ignore[import-untyped,unused-ignore]
    from scipy.special import polygamma  # type: ignore[import-untyped,unused-ignore]

    return float(brentq(lambda x: float(polygamma(1, x)) - value, 1e-4, 1e8, maxiter=500))


def beyond(difference: float, deviation: float, freedom: float) -> float:
    """Chance of a difference so large, on either side, where there is none."""
    from scipy.special import stdtr  # type: ignore[import-untyped,unused-ignore]

    return 2 * float(stdtr(freedom, -abs(difference) / deviation)) if deviation > 0 else 1.0


def quantile(freedom: float) -> float:
    """Student's t of 95 % on both sides."""
    from scipy.special import stdtrit  # type: ignore[import-untyped,unused-ignore]

    return float(stdtrit(freedom, 0.975))


def false_discovery(chances: Numbers) -> Numbers:
    """Of each chance, the least false discovery rate at which it would count: Benjamini and Hochberg."""
    import numpy as np

    order = np.argsort(chances)
    count = len(chances)
    scaled = chances[order] * count / np.arange(1, count + 1)
    rates = np.empty(count)
    rates[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return rates
