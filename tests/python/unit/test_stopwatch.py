"""Limits of time: to the second on a quiet machine, longer on a crowded one, and never without end."""

from __future__ import annotations

import os
import time
from functools import partial

import pytest
import stopwatch
from stopwatch import LATE, Stopwatch, crowding, soon, stat, stolen, within

STAT = "cpu  10 20 30 40 0 0 0 {} 7 0\nctxt 9\nprocesses 7\nprocs_running {}\nprocs_blocked {}\nsoftirq 1\n"


@pytest.mark.parametrize(
    ("running", "blocked", "expected"), [(1, 0, 1), (3, 0, 1), (9, 0, 4), (3, 1, 2), (9, 2, 6), (0, 0, 1)]
)
def test_how_crowded_a_machine_is(running: int, blocked: int, expected: float) -> None:
    assert crowding(STAT.format(0, running, blocked), cores=2) == expected


def test_this_machine_says_something() -> None:
    assert crowding(stat()) >= 1
    assert crowding("nothing known", cores=2) == 1
    assert stolen(stat(), stat()) <= 1


def test_what_a_hypervisor_takes_away() -> None:
    assert stolen(STAT.format(0, 1, 0), STAT.format(0, 1, 0)) == 0
    assert stolen(STAT.format(100, 1, 0), STAT.replace("40", "340").format(200, 1, 0)) == 0.25
    assert stolen("", "") == 0


@pytest.mark.parametrize(("running", "share"), [(1, 1.0), (4 * (os.cpu_count() or 1) + 1, 0.25)])
def test_seconds_count_for_less_on_a_crowded_machine(running: int, share: float) -> None:
    watch = Stopwatch(lambda: STAT.format(0, running, 0))
    time.sleep(0.2)
    assert watch.stop() == pytest.approx(watch.wall * share) or watch.wall > LATE
    assert watch.wall >= 0.2


def test_seconds_that_nobody_saw_do_not_count_but_for_our_own() -> None:
    calls = []

    def held_up() -> str:
        calls.append(0)
        time.sleep(0 if len(calls) == 1 else 0.6)
        return ""

    watch = Stopwatch(held_up)
    time.sleep(0.7)
    assert watch.stop() <= 3 * LATE + 0.1 < 1.2 <= watch.wall
    watch = Stopwatch(held_up)
    begin = time.process_time()
    while time.process_time() < begin + 0.6:
        pass
    assert watch.stop() >= 0.6


def test_what_takes_too_long_is_found() -> None:
    with pytest.raises(AssertionError, match="on the clock"), within(0.001):
        time.sleep(0.2)
    with pytest.raises(ZeroDivisionError), within(60):
        _ = 1 // 0


def test_one_time_of_several_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told that the machine is quiet, so that the seconds of the sleep count."""
    monkeypatch.setattr(stopwatch, "Stopwatch", partial(Stopwatch, lambda: STAT.format(0, 1, 0)))
    slow, calls = [0.2, 0.2], []

    def action() -> int:
        calls.append(0)
        time.sleep(slow.pop() if slow else 0)
        return len(calls)

    assert soon(0.1, action) >= 3
    slow += [0.2] * 20
    with pytest.raises(AssertionError, match="on the clock"):
        soon(0.0001, action)
