"""What plans say of time, and what learning keeps: repetitions, streamed products, what was measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import InProcess
from machines import facts
from tilewise.files.region import Region
from tilewise.files.target import find_target
from tilewise.machine import profile
from tilewise.machine.terms import Habit, Machine, Term
from tilewise.operations.multiply.cost import cost_of
from tilewise.operations.multiply.options import Multiply
from tilewise.operations.prediction import learned, predicted
from tilewise.planning.choices import parse_io
from tilewise.planning.cost import Cost, Take, predict
from tilewise.planning.plan import Plan

ON = Machine(name="m", cores=2)


def _product(**choices: object) -> Plan:
    region = Region(path="", name="random", rows=2000, columns=2000, dtype="float64", generator="random")
    options = Multiply(a="A", b="B", output="C", verify="off", **choices)  # type: ignore[arg-type]
    return options.plan([region, region], None, facts(), None)


def test_repetitions_count_in_the_whole_and_not_in_phases() -> None:
    once, often = (_product(**words) for words in ({}, {"repeat": 8, "warmup": 2}))
    first, other = (predicted(plan, cost_of(plan, None), ON) for plan in (once, often))
    assert first.phases == other.phases and first.total == other.total
    assert other.wall - first.wall == pytest.approx(9 * first.phases["compute"])


def test_cores_that_make_the_next_part_do_not_compute_meanwhile() -> None:
    """Within less memory a product of generated numbers is not faster."""
    whole, streamed = (_product(ranks=1, threads=1, memory=memory) for memory in (None, 60 << 20))
    assert streamed.job.stage != (0, 0, 0)
    seconds = [predict(cost_of(plan, None), ON).phases["input"] for plan in (whole, streamed)]
    assert 0 < seconds[0] <= seconds[1]


def test_what_was_measured_stays_when_runs_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    measured = Term(rate=7e9, source="measured")
    profile.store_terms("here", lambda _: {"copy": measured, "lapack": Term(rate=1e9)})
    for _ in range(3):
        known = Machine(name="here", terms=profile.load().terms["here"])
        cost = Cost(phases={"compute": [Take("copy", 7e9), Take("plain", 1e9), Take("lapack", 1e9)]})
        taught = learned(cost, known, {"compute": 9.0})
        assert set(taught) == {"copy", "plain", "lapack"} and taught["copy"].rate != measured.rate
        taught_both = taught, {"svd": Habit(factor=2.0, runs=1)}
        profile.store_taught("here", lambda now, _, both=taught_both: (now | both[0], both[1]))
    assert profile.forget_terms() == 4
    assert not profile.load().habits
    ((name, left),) = profile.load().terms["here"].items()
    assert (name, left.rate, left.source, left.runs) == ("copy", 7e9, "measured", 0)


def test_a_faster_way_that_is_not_taken_has_a_reason(here: InProcess) -> None:
    """On this machine `jacobi` is predicted to be faster than what the rule takes."""
    terms = '{"lapack": {"rate": 1e6}, "gemm/float64": {"rate": 35e9}}'
    with open("slow.json", "w") as file:
        file.write(f'{{"nodes": 1, "cores": 2, "memory": 68719476736, "terms": {terms}}}')
    said = here("plan", "svd", "random:900x900", "--machine", "slow.json").stdout
    assert re.search(
        r"next best .*% less: compute takes .* s, not .*; not taken: a rule chooses the algorithm", said
    )


def test_a_buffer_between_file_and_memory_takes_time() -> None:
    plain, through = (_product(ranks=1, io=parse_io(name)) for name in ("positioned", "sieve"))
    target = find_target("C.npy")
    seconds = [predict(cost_of(plan, target), ON).phases["output"] for plan in (plain, through)]
    assert seconds[0] < seconds[1]
