"""The memory that decompositions are planned to take, and what is advised where it does not suffice."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from machines import GIB, facts
from svd_plans import planned
from tilewise.base.errors import UsageError
from tilewise.operations.svd.options import ALGORITHMS as SVD
from tilewise.planning.need import Need


@pytest.mark.parametrize("name", SVD)
def test_memory_grows_with_the_matrix_but_not_where_it_is_read_in_panels(name: str) -> None:
    def needed(rows: int, memory: int | None = None) -> int:
        choices = {"ranks": 1, "algorithm": name, "memory": memory}
        return planned(shape=(rows, 1000), dtype="float32", **choices, components=20).need.node

    small, large = needed(20_000), needed(200_000)
    if name == "randomized":
        assert large < 256 << 20 and needed(200_000, 256 << 20) <= 256 << 20
        assert large - small < 180_000 * 30 * 4 * 8  # rows of the sketch, a few times
        return
    if name == "tall":
        assert needed(200_000) == needed(20_000_000) and needed(200_000, 256 << 20) <= 256 << 20
        return
    assert large - small >= 180_000 * 1000 * 4
    with pytest.raises(UsageError, match="of memory on a node") as raised:
        needed(200_000, 256 << 20)
    assert "randomized" in raised.value.advice


def test_panels_keep_what_memory_allows() -> None:
    def panels(memory: int | None) -> int:
        choices = {"ranks": 2, "memory": memory, "algorithm": "randomized"}
        svd = planned(shape=(200_000, 1000), **choices, components=20).job.svd
        assert svd is not None
        return svd.panel_bytes

    assert 0 < panels(200 << 20) < panels(None)


def advice(memory: int, ranks: int | None = None, **wanted: object) -> str:
    choices = {"ranks": ranks, "threads": 1, "memory": memory, "algorithm": "jacobi"}
    with pytest.raises(UsageError, match=r"needs .* of memory on a node, but --memory allows") as raised:
        planned(shape=(3000, 1000), **choices, **wanted)
    return raised.value.advice


def least_memory(**options: Any) -> int:
    """The lowest cap at which a decomposition is not refused."""
    low, high = 0, 64 * GIB
    while high - low > 1:
        middle = (low + high) // 2
        try:
            planned(shape=(3000, 1000), memory=middle, **options)
            high = middle
        except UsageError:
            low = middle
    return high


def test_a_cap_takes_narrow_pairs() -> None:
    """By `qr`, which what starts by `eigen` may fall back to, wide ones take twice as much."""
    for start in ("eigen", "qr"):
        choices = {"ranks": 1, "threads": 1, "algorithm": "jacobi", "memory": 120 << 20}
        narrow = planned(shape=(2000, 1000), **choices, start=start)
        wide = planned(shape=(2000, 1000), ranks=1, threads=1, start=start)
        blocks = [
            plan.fallback.blocks if plan.fallback else plan.job.variant.blocks for plan in (narrow, wide)
        ]
        assert blocks == [4, 2]
        assert narrow.job.svd is not None
        assert narrow.job.svd.qr_blocks == (4 if start == "eigen" else 0)


def test_what_does_not_fit_says_what_would() -> None:
    """The smallest --memory, which plans are made with to find it, and what needs less."""
    one = least_memory(ranks=1, threads=1, algorithm="jacobi")
    two = least_memory(ranks=2, threads=1, algorithm="jacobi")
    enough = f"--memory {-(-one >> 20)}MiB"
    assert advice(one, ranks=2) == f"--memory {-(-two >> 20)}MiB, or -n 1"
    assert advice(one - 1).startswith(f"{enough}, or --algorithm randomized --components 20: ")
    assert (
        advice(one * 7 // 8, ranks=1, components=30).split(", or ")[1].startswith("--algorithm randomized: ")
    )
    assert advice(one // 2, components=990) == enough
    assert advice(10 << 20) == enough


def test_what_is_larger_than_memory_and_tall_is_read_in_panels() -> None:
    """Whatever the number of rows; what was asked for stays, and so does what nothing helps."""
    for shape in ((200_000, 500), (20_000_000, 500), (500, 200_000)):
        plan = planned(shape=shape, dtype="float32", cores=2, memory=256 << 20)
        assert plan.job.variant.algorithm == "tall" and plan.need.node <= 256 << 20
        assert any(reason.startswith("tall: local would take") for reason in plan.reasons)
        assert planned(shape=shape, dtype="float32", cores=2, memory=256 << 20, values_only=True).need.node
    assert planned(shape=(200_000, 500), available=64 * GIB).job.variant.algorithm == "local"
    for options in ({"algorithm": "local"}, {"repeat": 2}, {"verify": "serial"}, {"start": "qr"}):
        with pytest.raises(UsageError, match="of memory on a node"):
            planned(shape=(200_000, 500), ranks=1, memory=256 << 20, **options)
    with pytest.raises(UsageError, match="of memory on a node") as raised:
        planned(shape=(9000, 9000), memory=1 << 30)
    assert raised.value.advice.startswith("--memory ")


def test_numbers_that_would_read_the_same_are_said_to_the_byte() -> None:
    choices = {"ranks": 1, "algorithm": "jacobi"}
    most = planned(**choices).need.node
    with pytest.raises(UsageError, match=f"needs {most} bytes of memory .* allows {most - 1} bytes"):
        planned(ranks=1, algorithm="jacobi", memory=most - 1)


def test_windows_take_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def needed(exchange: str, ranks: int = 4, **more: object) -> Need:
        choices = {"ranks": ranks, "threads": 1, "algorithm": "jacobi", "exchange": exchange}
        return planned(shape=(2000, 2000), **choices, **more).need

    one = 4 * 250 * (2000 + 2000) * 8  # two blocks from either side; eight blocks of 250 columns of X and V
    assert needed("one_sided_lock").shared == 4 * one
    assert needed("one_sided_lock", values_only=True).shared == 2 * one
    assert needed("blocking").shared == needed("one_sided_lock", ranks=1).shared == 0
    assert needed("one_sided_lock").node > needed("blocking").node
    small = facts(cores=8, cpus=8, shared_memory=one)
    monkeypatch.setattr(sys.modules[__name__], "facts", lambda **changes: small)
    with pytest.raises(UsageError, match="--exchange one_sided_lock needs .* in /dev/shm"):
        needed("one_sided_lock")
