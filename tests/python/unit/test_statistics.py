"""Intervals, ratios, tests and what stands apart: against known distributions, scipy and simulation."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
from tilewise.lab.statistics.intervals import (
    interval_of,
    launch_interval,
    narrow,
    order_interval,
    probability,
    ratio_interval,
    student,
)
from tilewise.lab.statistics.summary import aggregate, apart, summarise
from tilewise.lab.statistics.variances import Pair, compare_pairs, false_discovery, pooled, shrunken


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
    middles = [1.0, 1.2, 0.9, 1.1]
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


@pytest.mark.parametrize(("times", "many"), [(2, 3), (3, 3), (5, 5), (5, 2), (3, 8), (8, 3)])
@pytest.mark.parametrize("rule", ["ratio", "efficiency", "share", "difference"])
def test_intervals_of_two_sides_hold_the_truth_in_95_of_100_cases(times: int, many: int, rule: str) -> None:
    """Sides of unlike spread and unlike numbers of launches; were the second one exact, they would miss."""
    rules = {
        "ratio": lambda a, b: a / b,
        "efficiency": lambda a, b: b / a / 4,
        "share": lambda a, b: 100 * (a - b) / a,
        "difference": lambda a, b: a - b,
    }
    random, wanted = np.random.default_rng(5), rules[rule](2.0, 1.0)
    hits = exact = 0
    for _ in range(1500):
        above = (2 * np.exp(random.normal(0, 0.03, times))).tolist()
        below = np.exp(random.normal(0, 0.06, many)).tolist()
        low, high = interval_of(rules[rule], above, below) or (0.0, 0.0)
        hits += low <= wanted <= high
        known = float(np.exp(np.log(below).mean()))
        low, high = interval_of(lambda a, b=known: rules[rule](a, b), above) or (0.0, 0.0)
        exact += low <= wanted <= high
    print(hits / 1500, exact / 1500)
    assert hits / 1500 >= 0.94
    assert exact <= hits - 0.02 * 1500


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_intervals_of_one_side_hold_the_truth_in_95_of_100_cases(count: int) -> None:
    random = np.random.default_rng(6)
    found = [launch_interval(np.exp(random.normal(0, 0.1, count)).tolist()) for _ in range(2000)]
    assert np.mean([each is not None and each[0] <= 1 <= each[1] for each in found]) == pytest.approx(
        0.95, abs=0.012
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_ratio_has_welchs_interval_of_the_logarithms(seed: int) -> None:
    random = np.random.default_rng(seed)
    above, below = np.exp(random.normal(1, 0.3, 2 + seed)), np.exp(random.normal(0, 0.05, 2 + seed))
    known = scipy.stats.ttest_ind(np.log(above), np.log(below), equal_var=False).confidence_interval()
    assert ratio_interval(above.tolist(), below.tolist()) == pytest.approx(np.exp([known.low, known.high]))


def test_figures_that_are_not_positive_have_students_interval_of_themselves() -> None:
    figures = [-1.0, 0.5, 2.0, 0.0]
    wanted = scipy.stats.t.interval(0.95, 3, np.mean(figures), scipy.stats.sem(figures))
    assert launch_interval(figures) == pytest.approx(wanted)


def test_a_side_of_one_launch_or_of_no_numbers_has_no_interval() -> None:
    assert launch_interval([1.0]) is launch_interval([]) is launch_interval([1.0, math.inf]) is None
    assert ratio_interval([1.0], [1.0, 2.0]) is ratio_interval([1.0, 2.0], [1.0]) is None
    assert interval_of(lambda a: a / a, [1.0, 2.0]) == (1.0, 1.0)
    assert interval_of(lambda a: a * math.inf, [1.0, 2.0]) is None
    assert launch_interval([3.0, 3.0]) == pytest.approx((3.0, 3.0))


def test_launches_are_enough_when_the_interval_is_narrow() -> None:
    assert narrow([1.0, 1.001, 0.999], 0.05)
    assert not narrow([1.0, 1.1, 0.9], 0.05)
    assert not narrow([1.0], 0.05)


def test_many_samples_make_one_number() -> None:
    assert [aggregate([6.0, 42.0, 12.0], how) for how in ("median", "mean", "min", "max", "sum")] == [
        12.0,
        20.0,
        6.0,
        42.0,
        60.0,
    ]


def test_variances_are_drawn_to_what_they_have_in_common() -> None:
    """Of variances that differ by chance alone, hardly anything is left; the law that made them is found."""
    random = np.random.default_rng(21)
    freedom = [4] * 400
    alike = shrunken(0.01 * random.chisquare(4, 400) / 4, freedom)
    assert alike.freedom > 50
    assert np.median(alike.variance) == pytest.approx(0.01, rel=0.1)
    true = 0.01 * 6 / random.chisquare(6, 400)
    unlike = shrunken(true * random.chisquare(4, 400) / 4, freedom)
    assert 3 < unlike.freedom < 12
    assert np.corrcoef(np.log(unlike.variance), np.log(true))[0, 1] > 0.6


def test_false_discovery_rates_are_those_of_benjamini_and_hochberg() -> None:
    chances = np.random.default_rng(1).random(50) ** 3
    assert false_discovery(chances) == pytest.approx(scipy.stats.false_discovery_control(chances))


def test_chances_are_students() -> None:
    assert probability(-0.3, 0.1, 7) == pytest.approx(2 * scipy.stats.t.sf(3, 7))
    assert probability(0.3, 0.0, 7) == 1.0
    assert student(7) == pytest.approx(scipy.stats.t.ppf(0.975, 7))


def test_few_pairs_are_tested_alone_and_many_lend_each_other_variances() -> None:
    random = np.random.default_rng(2)
    pairs = [Pair(*random.normal(0, 0.05, (2, 3)).tolist()) for _ in range(60)]
    known = scipy.stats.ttest_ind(pairs[0].second, pairs[0].first)
    (alone,) = compare_pairs(pairs[:1])
    assert alone.probability == pytest.approx(known.pvalue)
    assert alone.reach == pytest.approx(known.confidence_interval().high - pairs[0].difference)
    together = compare_pairs(pairs)
    assert np.ptp([each.reach for each in together]) < 0.25 * np.ptp(
        [compare_pairs([pair])[0].reach for pair in pairs]
    )
    assert math.isnan(pooled(Pair([0.0], [1.0]).residuals()))
    assert compare_pairs([Pair([0.0], [1.0])])[0].probability == 1.0
    assert compare_pairs([]) == false_discovery([]) == []


def test_numpy_and_scipy_wait_until_they_are_needed() -> None:
    code = (
        "import sys, tilewise.lab.statistics.summary, tilewise.lab.statistics.variances;"
        "import tilewise.lab.measurement.compare, tilewise.lab.measurement.fit, tilewise.lab.study.compare;"
        "sys.exit(bool({'numpy', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
