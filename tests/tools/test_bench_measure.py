"""The benchmark of `measure`: what counts as apart from OSU, and which lines are picked."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from cases import measure_messages, measure_run
from harness import NotRun


@pytest.mark.parametrize(("ours", "met"), [(1.04, True), (0.96, True), (1.06, False), (0.94, False)])
def test_apart_counts_in_both_directions(ours: float, met: bool) -> None:
    samples = {"tilewise": [ours, ours, 9.0], "osu": [1.0, 1.0, 1.0]}

    row = measure_messages._row("mpich", measure_messages.WAYS[0], 8, samples)

    assert row.met is met


def test_one_sided_messages_are_only_shown() -> None:
    samples = {"tilewise": [2.0], "osu": [1.0]}

    rows = [measure_messages._row("mpich", way, 8, samples) for way in measure_messages.WAYS]

    assert [row.met for row in rows] == [False, False, None, None]


def test_figures_of_osu_become_seconds_of_a_message() -> None:
    latency, bandwidth = measure_messages.WAYS[:2]

    assert latency.seconds(0.75, 8) == pytest.approx(0.75e-6)
    assert bandwidth.seconds(125.0, 1 << 20) == pytest.approx((1 << 20) / 125e6)


def test_a_missing_folder_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TILEWISE_OSU", raising=False)
    with pytest.raises(NotRun, match="TILEWISE_OSU names no folder"):
        measure_messages._find("mpich", "osu_bw")
    monkeypatch.setenv("TILEWISE_OSU", str(tmp_path))
    with pytest.raises(NotRun, match="there is no osu_bw"):
        measure_messages._find("mpich", "osu_bw")


def test_lines_that_were_not_run_are_left_out() -> None:
    lines = [
        {"kind": "file", "bytes": 1, "summary": {"median": 1.0}},
        {"kind": "file", "bytes": 2, "summary": None},
        {"kind": "ping", "bytes": 1, "summary": {"median": 1.0}},
    ]

    assert measure_run.lines({"lines": lines}, kind="file") == lines[:1]
