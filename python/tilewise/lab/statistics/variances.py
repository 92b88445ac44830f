"""Many pairs of sides with few launches each: they lend each other variances, and share one error rate.

With three launches on each side the variance of a pair has four degrees of freedom, too few to tell much. All
pairs together say how variances are distributed; each one's own is shrunken towards that, and gains their
degrees of freedom: the moderated t of Smyth, Statistical Applications in Genetics and Molecular Biology 3
(2004) 3.

Design: docs/design/measuring.md.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from tilewise.lab.statistics.intervals import probability, student

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

QUIET = 1e-3
"""Standard deviation that none goes below: launches that agree better do so by chance or by the clock."""


class Pair(msgspec.Struct, frozen=True):
    """Logarithms of launches' figures on two sides, with at least one on each."""

    first: list[float]
    second: list[float]

    @classmethod
    def of(cls, before: Sequence[float], after: Sequence[float]) -> Pair:
        """Make a pair of one figure a launch, all positive."""
        return cls(list(map(math.log, before)), list(map(math.log, after)))

    @property
    def before(self) -> float:
        """The mean of the first side's logarithms."""
        return statistics.fmean(self.first)

    @property
    def after(self) -> float:
        """The mean of the second side's logarithms."""
        return statistics.fmean(self.second)

    @property
    def difference(self) -> float:
        """The logarithm of the ratio of geometric means, second over first."""
        return self.after - self.before

    @property
    def counts(self) -> tuple[int, int]:
        """Launches on each side."""
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
        """Distance of each launch from its side's mean."""
        import numpy as np

        return np.array(self.first) - self.before, np.array(self.second) - self.after


def pooled(residuals: tuple[Numbers, Numbers]) -> float:
    """The variance of a launch, which both sides share, from residuals of each; nan without freedom."""
    freedom = len(residuals[0]) + len(residuals[1]) - 2
    squares = float((residuals[0] ** 2).sum() + (residuals[1] ** 2).sum())
    return max(squares / freedom, QUIET**2) if freedom > 0 else math.nan


class Shrunken(msgspec.Struct, frozen=True):
    """Variances drawn towards what all have in common, and the degrees of freedom that each has gained."""

    variance: Numbers
    freedom: float


def shrunken(variances: Sequence[float] | Numbers, freedom: Sequence[int]) -> Shrunken:
    """Smyth's moderated variances; nan where there is none to begin with, as they are where fewer than three.

    His method of moments: log(s²) has the variance ψ′(d/2) + ψ′(d₀/2), from which d₀ follows. Few variances
    tell little of how much they differ: they are taken to differ by a standard error more than they seem to.
    """
    import numpy as np
    from scipy.special import digamma, polygamma  # type: ignore[import-untyped,unused-ignore]

    own, degrees = np.array(variances, dtype=np.float64), np.array(freedom, dtype=np.float64)
    known = (degrees > 0) & np.isfinite(own)
    if known.sum() < 3:
        return Shrunken(own, 0.0)
    d, s = degrees[known], own[known]
    e = np.log(s) - digamma(d / 2) + np.log(d / 2)
    middle = float(e.mean())
    spread = float(e.var(ddof=1))
    excess = spread * (1 + math.sqrt(2 / (len(e) - 1))) - float(polygamma(1, d / 2).mean())
    if excess <= 0:
        prior, common = 1e3, math.exp(middle)
    else:
        prior = min(2 * _inverse_trigamma(excess), 1e3)
        common = math.exp(middle + float(digamma(prior / 2)) - math.log(prior / 2))
    return Shrunken(np.where(known, (degrees * own + prior * common) / (degrees + prior), math.nan), prior)


def _inverse_trigamma(value: float) -> float:
    """x with ψ′(x) = value, which falls from infinity to 0."""
    from scipy.optimize import brentq  # type: ignore[import-untyped,unused-ignore]
    from scipy.special import polygamma  # type: ignore[import-untyped,unused-ignore]

    return float(brentq(lambda x: float(polygamma(1, x)) - value, 1e-4, 1e8, maxiter=500))


class Tested(msgspec.Struct, frozen=True):
    """Test of one pair: the probability of its difference without a change, and half its 95 % interval."""

    probability: float
    reach: float


def compare_pairs(pairs: Sequence[Pair]) -> list[Tested]:
    """Tests all, each by Student's t with its shrunken variance; 1 and infinity for one launch a side."""
    degrees = [pair.freedom for pair in pairs]
    common = shrunken([pooled(pair.residuals()) for pair in pairs], degrees)
    tested = []
    for pair, variance in zip(pairs, common.variance, strict=True):
        if pair.freedom <= 0:
            tested.append(Tested(1.0, math.inf))
            continue
        error, freedom = math.sqrt(float(variance) * pair.factor), pair.freedom + common.freedom
        tested.append(Tested(probability(pair.difference, error, freedom), student(freedom) * error))
    return tested


def false_discovery(probabilities: Sequence[float] | Numbers) -> list[float]:
    """Least false discovery rate at which each would count: Benjamini and Hochberg (1995)."""
    from scipy.stats import false_discovery_control  # type: ignore[import-untyped,unused-ignore]

    return [float(rate) for rate in false_discovery_control(probabilities)] if len(probabilities) else []
