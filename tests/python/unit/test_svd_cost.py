"""Costs of decompositions: what depends on the numbers of a matrix, before a job and after it."""

from __future__ import annotations

from typing import Any

import pytest
from machines import facts
from tilewise.files.region import Region
from tilewise.machine.terms import Machine
from tilewise.operations.svd.cost import cost_after, cost_of
from tilewise.operations.svd.options import Svd
from tilewise.planning.cost import predict
from tilewise.planning.plan import Plan

DONE = {"sweeps": 0, "reads": 2, "fallback": "", "start_used": ""}


def planned(m: int, n: int, **choices: Any) -> Plan:
    region = Region(path="", name="random", rows=m, columns=n, dtype="float64", generator="random")
    return Svd(a="A", output="F", **choices).plan([region], None, facts(), None)


@pytest.mark.parametrize("algorithm", ["local", "two_stage", "tall"])
def test_a_course_that_is_known_before(algorithm: str) -> None:
    plan = planned(3000, 300, algorithm=algorithm)
    before, after = cost_of(plan, None), cost_after(plan, None, DONE)
    assert before.sure and before.phases["compute"] == after.phases["compute"]


@pytest.mark.parametrize("words", [{"algorithm": "serial"}, {"start": "none"}, {"start": "qr"}])
def test_sweeps_count_as_they_were(words: dict[str, str]) -> None:
    """A sweep more is as much for each."""
    plan, on = planned(900, 300, **words), Machine(name="m", cores=2)
    assert not cost_of(plan, None).sure
    few, more, most = (
        predict(cost_after(plan, None, {**DONE, "sweeps": sweeps}), on).phases["compute"]
        for sweeps in (4, 5, 9)
    )
    assert few < more and most - few == pytest.approx(5 * (more - few))
    assert cost_after(plan, None, {**DONE, "sweeps": 4}).sure


def test_readings_count_as_they_were() -> None:
    plan = planned(900, 300, algorithm="randomized", components=5)
    few, many = (cost_after(plan, None, {**DONE, "reads": reads}) for reads in (4, 7))  # the proof is one
    on = Machine(name="m", cores=2)
    ratio = predict(many, on).phases["compute"] / predict(few, on).phases["compute"]
    assert many.sure and ratio == pytest.approx(2)


def test_panels_that_stay_in_the_cache_are_read_fast() -> None:
    """A reading by `randomized` moves a third of what one into memory does, whose pages are new besides."""
    file = Region(path="/tmp/A.npy", name="A.npy", rows=30_000, columns=400, dtype="float64")
    on = Machine(name="m", cores=2)
    few, more, whole = (
        predict(cost_after(svd.plan([file], None, facts(), None), None, {**DONE, "reads": reads}), on)
        for svd, reads in (
            (Svd(a="A", output="F", algorithm="randomized", components=5), 11),
            (Svd(a="A", output="F", algorithm="randomized", components=5), 21),
            (Svd(a="A", output="F", algorithm="two_stage"), 2),
        )
    )
    ten = more.phases["input"] - few.phases["input"]
    assert ten < 4 * whole.phases["input"]
    assert more.phases["compute"] == pytest.approx(2 * few.phases["compute"])


def test_a_course_that_nobody_knows_widens_the_band() -> None:
    """How often randomized reads depends on the singular values; with --power it is said."""
    free, said = (
        cost_of(planned(900, 300, algorithm="randomized", components=5, **more), None)
        for more in ({}, {"power": 2})
    )
    on = Machine(name="m", cores=2, terms={})
    assert said.course == (1.0, 1.0) and free.course[0] < 0.2 and free.course[1] == 2.0
    band = predict(free, on)
    assert band.high > 2 * band.total > 10 * band.low


def test_where_another_algorithm_took_over_nothing_is_sure() -> None:
    assert not cost_after(planned(300, 300), None, {**DONE, "fallback": "jacobi"}).sure
    plan = planned(300, 300, start="eigen")
    assert [cost_after(plan, None, {**DONE, "start_used": start}).sure for start in ("eigen", "qr")] == [
        True,
        False,
    ]


def test_rows_that_ranks_factor_first_are_not_swept() -> None:
    """Of a tall matrix on several ranks a sweep costs no more for more rows; the factors do."""
    on = Machine(name="m", cores=2)

    def seconds(rows: int, sweeps: int) -> float:
        plan = planned(rows, 300, algorithm="jacobi", ranks=2, start="qr")
        return predict(cost_after(plan, None, {**DONE, "sweeps": sweeps}), on).phases["compute"]

    sweep = seconds(30_000, 5) - seconds(30_000, 4)
    assert sweep == pytest.approx(seconds(60_000, 5) - seconds(60_000, 4))
    assert seconds(60_000, 4) > 1.5 * seconds(30_000, 4)
