"""Medians, their intervals and what stands apart: against known distributions, scipy and simulation."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from tilewise.measure.statistics import apart, launch_interval, order_interval, summarise


def drawn(
    random: np.random.Generator, launches: int, samples: int, between: float, within: float
) -> list[list[float]]:
    """Samples about 1 s: a launch has a factor of its own, each sample another (normal logarithms)."""
    return [
        list(np.exp(random.normal(0, between) + random.normal(0, within, samples))) for _ in range(launches)
    ]


def coverage(launches: int, samples: int, between: float, within: float, times: int = 600) -> float:
    random = np.random.default_rng(7)
    hits = 0
    for _ in range(times):
        summary, _ = summarise(drawn(random, launches, samples, between, within))
        hits += summary.low <= 1.0 <= summary.high
    return hits / times


@pytest.mark.parametrize(
    ("launches", "samples", "between", "within"),
    [
        (3, 30, 0.05, 0.1),
        (3, 200, 0.2, 0.05),
        (3, 10, 0.0, 0.3),
        (3, 1, 0.1, 0.1),
        (2, 20, 0.05, 0.05),
        (5, 20, 0.1, 0.1),
        (1, 40, 0.0, 0.3),
        (1, 6, 0.0, 0.3),
    ],
)
def test_the_interval_has_the_true_median_whatever_launches_have_in_common(
    launches: int, samples: int, between: float, within: float
) -> None:
    assert coverage(launches, samples, between, within) >= 0.92


def test_one_launch_cannot_know_of_others_and_says_less() -> None:
    """The reason for several launches: however many samples one has, its interval misses."""
    assert coverage(1, 200, 0.1, 0.1) < 0.5


def test_launches_that_agree_make_the_interval_narrow() -> None:
    random = np.random.default_rng(3)
    few, _ = summarise(drawn(random, 3, 100, 0.1, 0.02))
    many, _ = summarise(drawn(random, 30, 100, 0.1, 0.02))
    steady, _ = summarise(drawn(random, 3, 100, 0.0, 0.02))
    assert few.high / few.low > many.high / many.low > steady.high / steady.low
    assert steady.high / steady.low < 1.05


def test_figures_are_those_of_all_samples() -> None:
    launches = [[3.0, 1.0, 2.0], [5.0, 4.0], [9.0]]
    summary, marked = summarise(launches)
    everything = [1.0, 2.0, 3.0, 4.0, 5.0, 9.0]
    assert (summary.n, summary.median, summary.mean) == (6, 3.5, pytest.approx(np.mean(everything)))
    assert (summary.minimum, summary.maximum, summary.spread) == (1.0, 9.0, pytest.approx(9 / 2 - 1))
    assert marked == [] == apart(launches)
    assert summary.low <= 1.0
    assert summary.high >= 9.0


@pytest.mark.parametrize("count", [6, 7, 10, 25, 101, 1000])
def test_order_statistics_are_the_widest_pair_that_is_needed(count: int) -> None:
    low, high = order_interval(np.arange(1.0, count + 1))
    place = round(low)
    assert place + round(high) == count + 1
    assert scipy.stats.binom.cdf(place - 1, count, 0.5) <= 0.025 < scipy.stats.binom.cdf(place, count, 0.5)


def test_below_six_samples_all_of_them_are_the_interval() -> None:
    assert order_interval(np.array([4.0, 2.0, 3.0])) == (2.0, 4.0)


def test_launches_give_students_interval_of_the_logarithms() -> None:
    middles = np.array([1.0, 1.2, 0.9, 1.1])
    wanted = scipy.stats.t.interval(0.95, 3, np.log(middles).mean(), scipy.stats.sem(np.log(middles)))
    assert launch_interval(middles) == pytest.approx(tuple(math.exp(x) for x in wanted))


def test_one_sample_has_no_interval() -> None:
    summary, marked = summarise([[2.0]])
    assert (summary.low, summary.median, summary.high, summary.n, marked) == (2.0, 2.0, 2.0, 1, [])
    assert summary.spread == 0.0


def test_launches_without_samples_do_not_count_but_keep_their_place() -> None:
    steady = [1.0, 1.01, 0.99, 1.02, 1.0, 0.98]
    summary, marked = summarise([[], steady, [*steady, 40.0]])
    assert summary.n == 13
    assert marked == [(2, 6)]


@pytest.mark.parametrize("launches", [[], [[]], [[], []], [[1.0, math.nan]], [[math.inf]]])
def test_nothing_and_what_is_not_finite_are_refused(launches: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="sample"):
        summarise(launches)


def test_outliers_are_marked_and_not_dropped() -> None:
    random = np.random.default_rng(11)
    launches = drawn(random, 3, 60, 0.2, 0.02)
    launches[0][5] = 3.0
    launches[2][59] = 0.2
    summary, marked = summarise(launches)
    assert {(0, 5), (2, 59)} <= set(marked)
    assert len(marked) <= 4
    assert summary.outliers == len(marked)
    assert (summary.n, summary.maximum, summary.minimum) == (180, 3.0, 0.2)


def test_a_slow_launch_is_not_made_of_outliers() -> None:
    random = np.random.default_rng(12)
    launches = drawn(random, 2, 50, 0.0, 0.02)
    launches.append([4 * x for x in drawn(random, 1, 50, 0.0, 0.02)[0]])
    assert len(apart(launches)) <= 2
    assert summarise(launches)[0].spread == pytest.approx(3, rel=0.1)


def test_few_samples_of_a_normal_distribution_are_marked() -> None:
    random = np.random.default_rng(13)
    marked = sum(len(apart(drawn(random, 3, 100, 0.1, 0.1))) for _ in range(50))
    assert marked / 15_000 < 0.005


def test_a_coarse_clock_marks_what_is_far_from_equal_samples() -> None:
    assert apart([[1.0] * 20]) == []
    assert apart([[1.0] * 30 + [9.0]]) == [(0, 30)]


def test_times_below_the_clock_have_an_interval_too() -> None:
    summary, _ = summarise([[0.0, 1e-9, 2e-9], [-1e-9, 1e-9, 1e-9], [0.0, 0.0, 1e-9]])
    assert math.isfinite(summary.low)
    assert summary.low <= summary.median <= summary.high


def test_the_same_samples_always_say_the_same() -> None:
    launches = drawn(np.random.default_rng(1), 3, 40, 0.1, 0.1)
    assert summarise(launches) == summarise([list(launch) for launch in launches])


def test_numpy_and_scipy_wait_until_they_are_needed() -> None:
    code = (
        "import sys, tilewise.measure.statistics, tilewise.measure.compare, tilewise.measure.fit;"
        "sys.exit(bool({'numpy', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
