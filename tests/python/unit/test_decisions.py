"""A figure of several points has one interval, and a statement about it is decided, or is not."""

from __future__ import annotations

import math
import random

import pytest
from tilewise.lab.statistics.intervals import (
    DRIFT,
    decided,
    interval_of,
    launch_interval,
    moved_interval,
    ratio_interval,
)

ABOVE, BELOW = [12.0, 12.6, 11.7], [6.0, 6.3, 6.2, 5.9]


def test_of_one_point_it_is_the_interval_of_its_launches() -> None:
    assert moved_interval(12.0, [ABOVE]) == pytest.approx(launch_interval(ABOVE))


def test_of_a_quotient_it_is_the_interval_of_ratios() -> None:
    sides = [[each / 6.1 for each in ABOVE], [12.0 / each for each in BELOW]]
    assert moved_interval(12.0 / 6.1, sides) == pytest.approx(ratio_interval(ABOVE, BELOW))


def test_of_a_difference_it_is_added_up() -> None:
    sides = [[each - 14.0 for each in ABOVE], [12.0 - 8.0 - each for each in BELOW]]
    figure = 12.0 - 14.0
    found = moved_interval(figure, [sides[0]])
    assert found == pytest.approx(interval_of(lambda each: each, sides[0])) and found[0] < figure < found[1]


def test_it_holds_its_figure_and_nothing_else_where_nothing_moves() -> None:
    assert moved_interval(5.0, []) == (5.0, 5.0)
    low, high = moved_interval(30.0, [ABOVE]) or (0, 0)
    assert low < 12 and high == 30.0
    assert moved_interval(12.0, [ABOVE, [12.0]]) is None


@pytest.mark.parametrize("figure", [4.0, -4.0])
def test_drift_widens_it_on_both_sides(figure: float) -> None:
    still = moved_interval(figure, [[figure, figure]], DRIFT)
    assert still is not None and still[0] < figure < still[1]
    assert still[1] - still[0] == pytest.approx(2 * 1.96 * DRIFT * 4, rel=0.01)
    wide, alone = moved_interval(12.0, [ABOVE], DRIFT), moved_interval(12.0, [ABOVE])
    assert wide is not None and alone is not None and wide[0] < alone[0] and wide[1] > alone[1]


@pytest.mark.parametrize(
    ("interval", "said"),
    [
        ((1.2, 1.4), True),
        ((0.7, 0.9), False),
        ((0.9, 1.4), None),
        ((0.5, 9.0), None),
        ((1.2, 2.2), None),
        ((2.2, 9.0), False),
    ],
)
def test_a_band_is_decided_within_and_beyond_it(interval: tuple[float, float], said: bool | None) -> None:
    middle = math.sqrt(interval[0] * interval[1])
    assert decided(lambda figure: 1.0 < figure < 2.0, middle, interval, [1.0, 2.0]) is said


def test_a_narrow_band_inside_is_found_by_its_thresholds() -> None:
    assert decided(lambda figure: figure != 5.001, 1.0, (1.0, 100.0)) is True
    assert decided(lambda figure: figure != 5.001, 1.0, (1.0, 100.0), [5.001]) is None


def test_few_decided_claims_of_the_same_machine_contradict_each_other() -> None:
    """Of 400 claims about a ratio near its threshold, each judged three times on three launches a side."""
    luck = random.Random(2026)
    flips = many = 0
    for _ in range(400):
        truth = math.exp(luck.uniform(-0.9, 0.9))
        said = set()
        for _ in range(3):
            day = math.exp(luck.gauss(0, DRIFT / 2))
            above = [truth * day * math.exp(luck.gauss(0, 0.08)) for _ in range(3)]
            below = [math.exp(luck.gauss(0, 0.08)) for _ in range(3)]
            figure = sorted(above)[1] / sorted(below)[1]
            sides = [[each / sorted(below)[1] for each in above], [sorted(above)[1] / each for each in below]]
            interval = moved_interval(figure, sides, DRIFT)
            assert interval is not None
            said.add(decided(lambda ratio: ratio > 1.0, figure, interval, [1.0]))
        flips += {True, False} <= said
        many += said in ({True}, {False})
    assert flips == 0 and many > 80
