"""Facts about the machine, from made-up /proc and /sys folders."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tilewise.base import memory
from tilewise.launch.environment import blas_warnings, for_ranks
from tilewise.machine import facts, host, machines, profile, storage

TILE = profile.MeasuredTile(32, 64, True, 1.5e9)


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("bits", "reports"), [("01100101", True), ("0110000010", False), ("", False), (None, False)]
)
def test_a_balloon_says_whether_free_pages_are_reported(
    tmp_path: Path, bits: str | None, reports: bool
) -> None:
    if bits is not None:
        write(tmp_path, {"virtio0/features": "000000", "virtio1/features": bits})
    assert host.free_page_reporting(f"{tmp_path}/virtio*/features") == reports


def test_a_machine_has_rested_once_its_last_job_is_long_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machines, "free_page_reporting", lambda: True)
    there = facts.gather()
    assert machines.local_machine(there, "key").rested
    profile.job_ended()
    assert not machines.local_machine(there, "key").rested
    (stamp,) = tmp_path.rglob("last-job")
    os.utime(stamp, (0, 0))
    assert machines.local_machine(there, "key").rested
    monkeypatch.setattr(machines, "free_page_reporting", lambda: False)
    assert not machines.local_machine(there, "key").rested


def test_this_machine_has_what_it_must_have() -> None:
    found = facts.gather()
    assert found.cores >= 1 and found.cpus >= found.cores and found.numa >= 1
    assert found.memory_available > 1 << 20 and found.cpu


def test_cpu_lists() -> None:
    assert host.cpu_list("0-3,8,10-11\n") == {0, 1, 2, 3, 8, 10, 11}
    assert host.cpu_list("\n") == set()


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        ("vendor_id: AuthenticAMD\ncpu family: 26\nmodel: 2\nmodel name: AMD EPYC", "AMD EPYC (Zen 5)"),
        ("vendor_id: AuthenticAMD\ncpu family: 25\nmodel: 17\nmodel name: AMD EPYC", "AMD EPYC (Zen 4)"),
        ("vendor_id: GenuineIntel\ncpu family: 6\nmodel: 143\nmodel name: Xeon", "Xeon (Sapphire Rapids)"),
        ("vendor_id: GenuineIntel\ncpu family: 6\nmodel: 250\nmodel name: Xeon", "Xeon"),
        ("vendor_id: Other\ncpu family: x\nmodel: 1\nmodel name: Some", "Some"),
    ],
)
def test_a_processor_is_named_with_its_design(tmp_path: Path, lines: str, name: str) -> None:
    second = lines.replace("name: ", "name: not ")
    (tmp_path / "cpuinfo").write_text(f"{lines}\nflags\t: fma avx2\n\n{second}\nflags: none\n")
    assert host.model_and_flags(str(tmp_path / "cpuinfo")) == (name, frozenset({"fma", "avx2"}))


def test_siblings_count_once(tmp_path: Path) -> None:
    write(tmp_path, {f"cpu/cpu{n}/topology/thread_siblings_list": f"{n % 2},{n % 2 + 2}\n" for n in range(4)})
    assert host.physical_cores({0, 1, 2, 3}, str(tmp_path)) == 2
    assert host.physical_cores({1, 3}, str(tmp_path)) == 1
    assert host.physical_cores({7}, str(tmp_path)) == 1


def test_memory_domains_without_processors_do_not_count(tmp_path: Path) -> None:
    lists = {"node0/cpulist": "0-1", "node1/cpulist": "2-3", "node2/cpulist": "", "has_cpu": ""}
    write(tmp_path / "node", lists)
    assert host.numa_nodes({0, 1, 2}, str(tmp_path)) == [{0, 1}, {2}]
    assert host.numa_nodes({0, 1}, str(tmp_path / "nowhere")) == [{0, 1}]


def test_container_quotas(tmp_path: Path) -> None:
    path = tmp_path / "cpu.max"
    for text, expected in (("max 100000\n", None), ("150000 100000\n", 2), ("50000 100000\n", 1)):
        path.write_text(text)
        assert host.quota(str(path)) == expected
    assert host.quota(str(tmp_path / "nowhere")) is None


def test_memory_is_what_the_tightest_group_leaves(tmp_path: Path) -> None:
    proc, group = tmp_path / "proc", tmp_path / "cgroup"
    write(proc, {"meminfo": "MemTotal: 2000 kB\nMemAvailable: 1000 kB\n", "self/cgroup": "0::/job/step\n"})
    assert memory.available_memory(str(proc), str(group)) == 1000 * 1024
    assert memory.total_memory(str(proc)) == 2000 * 1024
    write(
        group,
        {
            "job/memory.max": "600000\n",
            "job/memory.current": "200000\n",
            "job/memory.stat": "anon 5\ninactive_file 30000\nactive_file 20000\n",
            "job/step/memory.max": "max\n",
        },
    )
    assert memory.available_memory(str(proc), str(group)) == 450_000


def test_memory_groups_of_version_1(tmp_path: Path) -> None:
    proc, group = tmp_path / "proc", tmp_path / "cgroup"
    write(proc, {"meminfo": "MemAvailable: 1000 kB\n", "self/cgroup": "4:cpu:/\n3:memory:/docker/x\n"})
    write(
        group / "memory",
        {
            "docker/x/memory.limit_in_bytes": "300000",
            "docker/x/memory.usage_in_bytes": "100000",
            "docker/x/memory.stat": "inactive_file 9\ntotal_inactive_file 10000\ntotal_active_file 20000\n",
            "memory.limit_in_bytes": "9223372036854771712",
        },
    )
    assert memory.available_memory(str(proc), str(group)) == 230_000


def test_a_profile_that_cannot_be_read_or_written_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert profile.load() == profile.Profile()
    profile.store_tile("a", TILE)
    profile.store_tile("b", TILE)
    assert profile.load().tiles == {"a": TILE, "b": TILE}
    assert os.listdir(tmp_path / "tilewise") == ["profile.json"]
    for broken in ("{", '{"version": 2, "tiles": 3}', '{"version": 99}', "\xff"):
        (tmp_path / "tilewise" / "profile.json").write_text(broken, encoding="latin1")
        assert profile.load().tiles == {}
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    profile.store_tile("a", TILE)


def test_the_cache_is_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "tilewise"
    for before in (None, 0o777):  # new, and left open by somebody
        if before is not None:
            folder.chmod(before)
        profile.store_tile("a", TILE)
        assert folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)  # somebody else's
    assert profile.load() == profile.Profile()
    assert not profile.write(str(folder / "more"), b"x") and os.listdir(folder) == ["profile.json"]


def test_file_systems(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / /data rw shared:1 - xfs /dev/b rw\n"
        "3 2 0:9 / /data/my\\040disk rw - lustre x rw\n"
    )
    assert storage.file_system("/data/a.npy", str(mounts)) == "xfs"
    assert storage.file_system("/database", str(mounts)) == "ext4"
    assert storage.file_system("/data/my disk/a", str(mounts)) == "lustre"
    assert storage.file_system("/x", "/nowhere") == "unknown"


def test_cache_states(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(1 << 20))
    assert storage.cache_state(str(path)) in ("cached", "unknown")
    assert storage.cache_state(str(tmp_path / "nowhere")) == "unknown"


@pytest.mark.parametrize(
    ("core", "flags", "warned"),
    [
        ("Haswell", {"avx", "avx2", "avx512f"}, True),
        ("SkylakeX", {"avx", "avx2", "avx512f"}, False),
        ("haswell", {"avx", "avx2"}, False),
        ("Prescott", {"avx"}, True),
        ("unheard", {"avx512f"}, False),
        ("", {"avx512f"}, False),
    ],
)
def test_a_slower_blas_is_warned_of(core: str, flags: set[str], warned: bool) -> None:
    import msgspec

    here = msgspec.structs.replace(facts.gather(), flags=frozenset(flags))
    warnings = blas_warnings({"OPENBLAS_CORETYPE": core} if core else {}, here)
    assert bool(warnings) == warned
    assert all("unset OPENBLAS_CORETYPE" in warning for warning in warnings)


OUTER = (
    "PMI_RANK PMI_FD HYDI_CONTROL_FD MPI_LOCALRANKID OMPI_COMM_WORLD_SIZE PMIX_RANK PMIX_GDS_MODULE "
    "SLURM_STEP_ID SLURM_PROCID"
)
OURS = "PATH PMIX_MCA_gds SLURM_JOB_ID SLURM_TASKS_PER_NODE FI_PROVIDER UCX_TLS HYDRA_LAUNCHER"


def test_nothing_of_an_outer_job_reaches_our_own() -> None:
    outer = dict.fromkeys([*OUTER.split(), *OURS.split()], "9")
    told = for_ranks(outer, 3, oversubscribed=False, own_launcher=True)
    added = {"SLURM_OVERLAP", "OPENBLAS_NUM_THREADS", "OPENBLAS_THREAD_TIMEOUT", "OMP_NUM_THREADS"}
    assert set(told) == {*OURS.split(), *added}
    assert (told["OPENBLAS_NUM_THREADS"], told["OMP_NUM_THREADS"]) == ("1", "3")
    joined = for_ranks(outer, 1, oversubscribed=True, own_launcher=False)
    assert joined["PMI_FD"] == "9" and joined["MPIR_CVAR_POLLS_BEFORE_YIELD"] == "1"
    # Ranks that exist already are not told half a choice of algorithms.
    assert any("ALGORITHM" in key for key in for_ranks({}, 1, oversubscribed=True, own_launcher=True))
    assert not any("ALGORITHM" in key for key in joined)
