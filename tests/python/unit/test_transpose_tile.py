"""The tile of a transposition in memory: asked for once a machine, kept, and then used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from machines import facts
from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.launch import launcher
from tilewise.machine import profile
from tilewise.machine.machines import measure_tile, stored_tile
from tilewise.operations.transpose.options import Transpose
from tilewise.operations.transpose.plan import TILE_FROM
from tilewise.planning.plan import Plan

FACTS = facts(cores=2, cpus=2)


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def planned(tmp_path: Path, rows: int, **choices: Any) -> Plan:
    source = Region(path="/x.npy", name="x.npy", rows=rows, columns=1 << 14, dtype="int16")
    target = Target(str(tmp_path / "y.npy"), "y.npy", "", False)
    return Transpose(a="a.npy", output="b.npy", **choices).plan([source], target, FACTS, None)


def test_a_tile_is_measured_once_and_then_used(tmp_path: Path) -> None:
    large = TILE_FROM >> 15  # rows of 2¹⁴ int16
    first = planned(tmp_path, large, algorithm="swap", ranks=2)
    assert first.measure_tile == (2, 2) and first.job.variant.tile == (0, 0)
    profile.store_tile(profile.tile_key("here", "some", 2, 2), profile.MeasuredTile(64, 2048, True, 1e10))
    second = planned(tmp_path, large, algorithm="swap", ranks=2)
    assert second.measure_tile is None
    assert second.job.variant.tile == (64, 2048) and second.job.variant.streaming
    assert any("64×2048" in reason for reason in second.reasons)


@pytest.mark.parametrize(
    ("rows", "choices"),
    [
        (TILE_FROM >> 15, {"algorithm": "staged"}),
        (TILE_FROM >> 15, {"algorithm": "swap", "kernel": "plain"}),
        ((TILE_FROM >> 15) - 1, {"algorithm": "swap"}),
    ],
)
def test_where_a_tile_would_not_pay_none_is_measured(
    tmp_path: Path, rows: int, choices: dict[str, Any]
) -> None:
    profile.store_tile(profile.tile_key("here", "some", 2, 2), profile.MeasuredTile(64, 2048, True, 1e10))
    plan = planned(tmp_path, rows, **choices)
    assert plan.measure_tile is None and plan.job.variant.tile == (0, 0)


def test_the_worker_measures_a_tile_that_the_kernel_can_use() -> None:
    measure_tile(2, 1, FACTS, launcher.find_worker().path)
    tile = stored_tile(2, 1, FACTS)
    assert tile is not None
    assert 1 <= tile.rows <= 1 << 20 and 1 <= tile.columns <= 1 << 20 and tile.bytes_per_second > 1e8
    assert stored_tile(4, 1, FACTS) is None


def test_a_worker_that_cannot_tell_leaves_no_tile(tmp_path: Path) -> None:
    for worker in ("/bin/false", "/bin/echo", str(tmp_path / "nowhere")):
        measure_tile(2, 1, FACTS, worker)
    assert stored_tile(2, 1, FACTS) is None
