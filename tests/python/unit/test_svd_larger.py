"""Larger matrices and more nodes: when the plan takes `tall`, what panels need, and what ranks share."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import GIB
from test_svd_asked import planned
from tilewise.base.errors import UsageError


def test_what_is_larger_than_memory_and_tall_is_read_in_panels() -> None:
    """Whatever the number of rows; what was asked for stays, and so does what nothing helps."""
    for shape in ((200_000, 500), (20_000_000, 500), (500, 200_000)):
        plan = planned(shape=shape, dtype="float32", cores=2, memory=256 << 20)
        assert plan.job.variant.algorithm == "tall" and plan.need.node <= 256 << 20
        assert any(reason.startswith("tall: local would take") for reason in plan.reasons)
        assert planned(shape=shape, dtype="float32", cores=2, memory=256 << 20, values_only=True).need.node
    assert planned(shape=(200_000, 500), available=64 * GIB).job.variant.algorithm == "two_stage"
    for options in ({"algorithm": "local"}, {"repeat": 2}, {"verify": "serial"}, {"start": "qr"}):
        with pytest.raises(UsageError, match="of memory on a node"):
            planned(shape=(200_000, 500), ranks=1, memory=256 << 20, **options)
    with pytest.raises(UsageError, match="of memory on a node") as raised:
        planned(shape=(9000, 9000), memory=1 << 30)
    assert raised.value.advice.startswith("--memory ")


def test_panels_keep_what_memory_allows() -> None:
    def panels(memory: int | None) -> int:
        choices = {"ranks": 2, "memory": memory, "algorithm": "randomized"}
        svd = planned(shape=(200_000, 1000), **choices, components=20).job.svd
        assert svd is not None
        return svd.panel_bytes

    assert 0 < panels(160 << 20) < panels(None)


@pytest.mark.parametrize(
    ("hosts", "ranks", "columns", "start", "shared"),
    [
        ("abcd", 8, 512, None, True),
        ("abcd", 5, 512, None, False),  # on three hosts
        ("abc", 6, 2000, None, False),
        ("abcd", 8, 511, None, False),
        ("abcd", 8, 512, "qr", False),
        ("", 8, 2000, None, False),
    ],
)
def test_all_ranks_reduce_from_four_nodes_and_512_columns_on(
    tmp_path: Path, hosts: str, ranks: int, columns: int, start: str | None, shared: bool
) -> None:
    (tmp_path / "hosts").write_text("".join(f"{host}:2\n" for host in hosts))
    where = {"hosts": str(tmp_path / "hosts")} if hosts else {}
    plan = planned(shape=(3000, columns), ranks=ranks, algorithm="jacobi", start=start, **where)
    assert plan.job.svd is not None
    assert plan.job.svd.share_eigen == shared


@pytest.mark.parametrize("start", ["none", "qr", "eigen"])
def test_the_fullest_node_is_not_always_that_of_rank_0(tmp_path: Path, start: str) -> None:
    """Ranks between two neighbours have two blocks on their way, rank 0 has one."""
    (tmp_path / "hosts").write_text("".join(f"{host}:1\n" for host in "abcd"))
    where = {"hosts": str(tmp_path / "hosts"), "ranks": 4}
    need = planned(shape=(5000, 5000), algorithm="jacobi", start=start, **where).need
    assert need.node >= need.rank


def test_two_stages_find_the_triangle_of_a_tall_matrix_faster_than_lapack(tmp_path: Path) -> None:
    tall = {"shape": (4600, 500)}
    assert planned(**tall).job.variant.algorithm == "two_stage"
    assert planned(shape=(64, 4600)).job.variant.algorithm == "two_stage"
    assert planned(shape=(63, 4600)).job.variant.algorithm == "local"
    assert planned(**tall, dtype="complex128").job.variant.algorithm == "local"
    assert planned(**tall, ranks=2).job.variant.algorithm == "two_stage"
    assert planned(shape=(4600, 200), ranks=2).job.variant.algorithm == "jacobi"
    (tmp_path / "hosts").write_text("a\nb\n")
    assert planned(**tall, hosts=str(tmp_path / "hosts")).job.variant.ranks == 1
