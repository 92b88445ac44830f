"""The benchmark of simulated ranks: bounds with two sides, and starts of more and more ranks."""

import shutil
import sys
from pathlib import Path

import pytest
from tilewise.base import programs
from tilewise.launch.simulated import NAME

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import harness
from cases import simulated_start


@pytest.mark.parametrize(("simulated", "met"), [(1.19, True), (0.81, True), (1.3, False), (0.7, False)])
def test_agreement_has_two_sides(simulated: float, met: bool) -> None:
    row = harness.compare(harness.Row("r", "r", "within", 0.2), [simulated, simulated], [1.0, 1.0])

    assert row.met is met


TRACE = """\
%EventDef PajePushState 12
5 7 2 PMPI_Bcast "0 0 0"
5 8 2 PMPI_Barrier "0 0 0"
12 0.0 2 1 7 4
15 0.0 3 0 PTP 1 1_2_-3334_0 4
12 1.0 2 1 8 NA
12 1.0 2 2 8 NA
15 1.5 3 0 PTP 2 2_3_-778_1 1
13 2.0 2 1
13 2.5 2 2
15 3.0 3 0 PTP 2 2_1_7_2 100
12 4.0 2 1 8 NA
12 4.0 2 2 8 NA
13 5.0 2 1
13 5.0 2 2
15 5.0 3 0 PTP 2 2_1_-445_3 30
16 6.5 3 0 PTP 1 2_1_-445_3
"""


def test_a_trace_is_cut_at_its_first_and_last_barrier(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text(TRACE)

    start, end = simulated_start.ends_of(tmp_path / "trace")

    assert start == simulated_start.Stretch(seconds=2.5, messages=2, with_rank_0=1, bytes=5)
    assert end == simulated_start.Stretch(seconds=1.5, messages=1, with_rank_0=1, bytes=30)


@pytest.mark.skipif(shutil.which("smpirun") is None, reason="SimGrid is not installed: no smpirun")
@pytest.mark.skipif(
    programs.first(programs.places(NAME)) is None,
    reason="the worker for simulated ranks is not built. Try: make simulator",
)
def test_starts_grow_with_the_logarithm_of_the_ranks(tmp_path: Path) -> None:
    setting = harness.Setting(rounds=1, quick=True, work=tmp_path)
    few, many = (simulated_start.traced(setting, ranks) for ranks in (16, 64))

    for before, after in zip(few, many, strict=True):
        assert after.seconds < 2 * before.seconds
        assert after.messages / 64 < 2 * before.messages / 16
