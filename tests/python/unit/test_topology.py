"""Distances between cores and where pairs go, from made-up /sys trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from tilewise.base.errors import UsageError
from tilewise.machine import topology
from tilewise.machine.topology import LEVELS, Topology


def tree(
    root: Path,
    sockets: int = 1,
    caches: int = 1,
    cores: int = 2,
    threads: int = 1,
    *,
    last_level: int = 3,
    offline: frozenset[int] = frozenset(),
) -> int:
    """A machine whose second hardware threads are numbered after all cores, as Linux does; its CPUs' count.

    `last_level` 2: no cache above the cores' own; 0: nothing is said about caches.
    """
    whole = sockets * caches * cores

    def listed(first: int, count: int) -> str:
        return ",".join(str(first + core + whole * t) for t in range(threads) for core in range(count))

    for number in range(whole * threads):
        if number in offline:
            (root / f"cpu{number}").mkdir(parents=True)  # nothing else is there, as on a real machine
            continue
        core = number % whole
        group = core // cores * cores
        files = {
            "topology/physical_package_id": str(core // (caches * cores)),
            "topology/thread_siblings_list": listed(core, 1),
        }
        for index, (level, kind) in enumerate([(1, "Data"), (1, "Instruction"), (2, "Unified")]):
            if last_level:
                files |= {f"cache/index{index}/level": str(level), f"cache/index{index}/type": kind}
                files[f"cache/index{index}/shared_cpu_list"] = listed(core, 1)
        if last_level == 3:
            files |= {"cache/index3/level": "3", "cache/index3/type": "Unified"}
            files["cache/index3/shared_cpu_list"] = listed(group, cores)
        for name, text in files.items():
            path = root / f"cpu{number}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
    online = [str(number) for number in range(whole * threads) if number not in offline]
    (root / "online").write_text(",".join(online) + "\n")
    return whole * threads


def seen(root: Path, affinity: set[int] | None = None, limit: int | None = None) -> Topology:
    return topology.read(str(root), set(range(64)) if affinity is None else affinity, limit)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """2 sockets × 2 last caches × 2 cores × 2 hardware threads: CPU n and n + 8 share a core."""
    tree(tmp_path, 2, 2, 2, 2)
    return tmp_path


def test_every_level_of_a_large_machine(large: Path) -> None:
    machine = seen(large)
    assert [core.cpus for core in machine.cores] == [(n, n + 8) for n in range(8)]
    assert machine.whole and machine.cpus == list(range(16))
    assert [machine.missing(level) for level in LEVELS] == [""] * 4
    assert machine.pairs_at("sibling", 3).pairs == [(0, 8), (1, 9), (2, 10)]
    assert machine.pairs_at("core", 4).pairs == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert machine.pairs_at("cache", 4).pairs == [(0, 2), (1, 3), (4, 6), (5, 7)]
    assert machine.pairs_at("socket", 4).pairs == [(0, 4), (1, 5), (2, 6), (3, 7)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("count", [1, 3, 4, 5, 8, 9, 17])
def test_pairs_are_as_far_apart_as_asked_and_share_only_where_they_must(
    large: Path, level: str, count: int
) -> None:
    machine = seen(large)
    placed = machine.pairs_at(level, count)
    core_of = {number: core for core in machine.cores for number in core.cpus}
    for first, second in placed.pairs:
        one, other = core_of[first], core_of[second]
        assert first != second
        assert (one == other) == (level == "sibling")
        assert (one.cache == other.cache) == (level in ("sibling", "core"))
        assert (one.socket == other.socket) == (level != "socket")
    assert len(placed.pairs) == count
    ranks = [number for pair in placed.pairs for number in pair]
    own = 16 if level == "sibling" else 8
    assert placed.oversubscribed == (len(ranks) > own)
    assert len(set(ranks)) == min(len(ranks), 16)  # hardware threads are shared when none is left


def test_one_core(tmp_path: Path) -> None:
    tree(tmp_path, cores=1)
    machine = seen(tmp_path)
    assert machine.cpus == [0]
    assert machine.missing("sibling") == "its core has one hardware thread"
    assert machine.missing("core") == machine.missing("cache") == "this machine has one core"
    assert machine.missing("socket") == "this machine has one socket"
    with pytest.raises(UsageError, match="no pairs at level 'core': this machine has one core"):
        machine.pairs_at("core", 1)


def test_two_cores_say_what_they_lack(tmp_path: Path) -> None:
    tree(tmp_path, cores=2)
    machine = seen(tmp_path)
    assert machine.missing("sibling") == "none of its 2 cores has two hardware threads"
    assert machine.missing("core") == ""
    assert machine.missing("cache") == "all of its 2 cores share their last cache"
    assert "--hosts" in machine.missing("node")
    with pytest.raises(UsageError, match="no level 'rack'"):
        machine.missing("rack")


def test_more_pairs_than_cores_share_them(tmp_path: Path) -> None:
    tree(tmp_path, cores=2)
    placed = seen(tmp_path).pairs_at("core", 3)
    assert placed.pairs == [(0, 1)] * 3 and placed.oversubscribed
    assert not seen(tmp_path).pairs_at("core", 1).oversubscribed


def test_an_odd_core_is_not_left_idle(tmp_path: Path) -> None:
    tree(tmp_path, cores=3)
    placed = seen(tmp_path).pairs_at("core", 4)
    assert placed.pairs == [(0, 1), (2, 0), (1, 2), (0, 1)] and placed.oversubscribed


def test_without_a_cache_above_the_cores_none_share_one(tmp_path: Path) -> None:
    tree(tmp_path, cores=4, last_level=2)
    machine = seen(tmp_path)
    assert machine.missing("core") == "no two of its 4 cores share a cache"
    assert machine.pairs_at("cache", 2).pairs == [(0, 1), (2, 3)]


def test_where_nothing_is_said_of_caches_a_socket_shares_one(tmp_path: Path) -> None:
    tree(tmp_path, sockets=2, cores=2, last_level=0)
    machine = seen(tmp_path)
    assert machine.pairs_at("core", 2).pairs == [(0, 1), (2, 3)]
    assert machine.missing("cache") == "all of its 4 cores of a socket share their last cache"
    assert machine.pairs_at("socket", 1).pairs == [(0, 2)]


def test_where_nothing_is_said_at_all_each_cpu_is_a_core(tmp_path: Path) -> None:
    machine = seen(tmp_path / "none", {0, 3})
    assert machine.cpus == [0, 3] and machine.pairs_at("core", 1).pairs == [(0, 3)]


def test_offline_cpus_do_not_count(tmp_path: Path) -> None:
    tree(tmp_path, cores=4, threads=2, offline=frozenset({1, 4, 5}))
    machine = seen(tmp_path)
    assert [core.cpus for core in machine.cores] == [(0,), (2, 6), (3, 7)]
    assert machine.whole and machine.cpus == [0, 2, 3, 6, 7]
    assert machine.pairs_at("sibling", 1).pairs == [(2, 6)]


def test_only_what_the_process_may_use_counts(large: Path) -> None:
    machine = seen(large, {2, 3, 10, 40})
    assert [core.cpus for core in machine.cores] == [(2, 10), (3,)] and not machine.whole
    assert machine.missing("socket") == "this process may use only one socket"
    assert machine.missing("cache") == "all of the 2 cores that this process may use share their last cache"
    assert (
        seen(large, {2, 3}).missing("sibling") == "this process may not use two hardware threads of one core"
    )
    assert seen(large, {2, 10}).missing("core") == "this process may use only one core"
    assert (
        seen(large, {2, 6}).missing("core") == "no two of the 2 cores that this process may use share a cache"
    )
    # The first hardware thread is not ours, and still the two left over are of different cores.
    assert [core.cpus for core in seen(large, {8, 9}).cores] == [(8,), (9,)]


def test_a_time_limit_of_a_container_counts_as_cores(large: Path) -> None:
    assert not seen(large, limit=2).pairs_at("core", 1).oversubscribed
    assert seen(large, limit=2).pairs_at("core", 2).oversubscribed


def test_this_machine() -> None:
    machine = topology.read()
    assert machine.cpus
    for level in LEVELS:
        if not machine.missing(level):
            first, second = machine.pairs_at(level, 1).pairs[0]
            assert {first, second} <= set(machine.cpus) and first != second
