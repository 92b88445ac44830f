"""Hosts that a user names: who goes where, in the words of each launcher, and a rank that dies elsewhere."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from conftest import Tilewise, one_message
from stopwatch import within
from tilewise.base.errors import RunError, UsageError
from tilewise.launch import diagnose, environment, launcher
from tilewise.launch.events import RankPlace, Started
from tilewise.launch.job import Variant
from tilewise.launch.launcher import HYDRA, OPEN_MPI, SRUN, UNKNOWN, LauncherKind
from tilewise.launch.outcome import Outcome
from tilewise.machine.allocation import deal, read_hosts

VARIANT = Variant(
    algorithm="summa", exchange="blocking", read="root", write="root", grid=(2, 2), ranks=4, threads=1
)


@pytest.mark.parametrize(
    ("slots", "ranks", "core", "node"),
    [
        ({"a": 2, "b": 2}, 4, "aabb", "abab"),
        ({"a": 0, "b": 0}, 5, "aaabb", "ababa"),
        ({"a": 1, "b": 3}, 4, "abbb", "abbb"),
        ({"a": 1, "b": 2}, 5, "aabbb", "abbab"),
        ({"a": 2, "b": 0}, 5, "aabbb", "ababb"),
        ({"a": 4, "b": 4, "c": 4}, 2, "ab", "ab"),
        ({"a": 1}, 3, "aaa", "aaa"),
    ],
)
def test_dealing(slots: dict[str, int], ranks: int, core: str, node: str) -> None:
    for place, expected in (("core", core), ("socket", core), ("node", node)):
        assert "".join(deal(slots, ranks, place)) == expected


def test_the_words_of_each_launcher() -> None:
    packed, dealt = deal({"a": 2, "b": 2}, 3, "core"), deal({"a": 2, "b": 2}, 3, "node")
    assert HYDRA.placement(packed, "core", {}) == ["-hosts", "a:2,b:1"]
    assert HYDRA.placement(dealt, "node", {}) == ["-hosts", "a:2,b:1", "-rankmap", "0,1,0"]
    assert OPEN_MPI.placement(packed, "core", {})[:4] == ["--host", "a:2,b:1", "--map-by", "slot"]
    assert OPEN_MPI.placement(dealt, "node", {})[2:4] == ["--map-by", "node"]
    uneven, even = SRUN.placement(packed, "core", {}), SRUN.placement(list("abab"), "node", {})
    assert uneven == ["--nodelist=a,a,b", "--distribution=arbitrary"]
    assert even == ["--nodelist=a,b", "--nodes=2", "--ntasks-per-node=2", "--distribution=cyclic"]


@pytest.mark.parametrize(
    ("kind", "words", "named"),
    [
        (HYDRA, "mpiexec -launcher ssh", False),
        (HYDRA, "mpiexec -f machines", True),
        (OPEN_MPI, "mpirun --hostfile=x", True),
        (SRUN, "srun --mpi=pmix -w n1", True),
        (SRUN, "srun --mpi=pmix", False),
        (SRUN, "srun -N 2", True),
        (SRUN, "srun -wn1,n2", True),
        (SRUN, "srun -n 2 --mpi pmi2", False),
        (HYDRA, "mpiexec -ppn 2", True),
        (UNKNOWN, "wrapper -f x", False),
    ],
)
def test_a_launcher_that_names_hosts_is_left_alone(kind: LauncherKind, words: str, named: bool) -> None:
    assert kind.names_hosts(words.split()) is named


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("srun", ["--nodelist=a,b", "--nodes=2", "--ntasks-per-node=2", "--distribution=block"]),
        ("wrapper", []),
    ],
)
def test_the_users_launcher_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: list[str]
) -> None:
    program = tmp_path / name
    program.write_text("#!/bin/sh\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = launcher.Worker("/w", {})
    start = launcher.own_start(found, VARIANT, list("aabb"), f"{name} -v", False)
    assert start.command == [name, "-v", *expected, "-n", "4", "/w", "--expect", "4"]


def test_what_open_mpi_must_pass_on() -> None:
    told = {"OMP_NUM_THREADS": "1", "HOME": "/", "UCX_TLS": "tcp", "OMPI_MCA_osc": "pt2pt", "TILEWISE_X": "1"}
    assert environment.for_other_hosts(told) == ["OMP_NUM_THREADS", "TILEWISE_X", "UCX_TLS"]


STARTED = Started(ranks=[RankPlace(rank, f"node{rank // 2 + 1}", 100 + rank) for rank in range(4)])
BANNER = "=   BAD TERMINATION\n=   PID {} RUNNING AT {}\n=   EXIT CODE: 9"


@pytest.mark.parametrize(
    ("banner", "first_gone", "named"),
    [
        (BANNER.format(103, "node2"), 0, "rank 3 (pid 103 on node2)"),  # rank 0 was ended by the launcher
        (BANNER.format(103, "node2"), -1, "rank 3 (pid 103 on node2)"),
        (BANNER.format(100, "node1"), 1, "rank 1 (pid 101 on node1)"),  # named is one that the launcher ended
    ],
)
def test_who_died_among_several_hosts(banner: str, first_gone: int, named: str) -> None:
    outcome = Outcome(started=STARTED, returncode=9, chatter=banner.split("\n"), first_gone=first_gone)
    error = diagnose.error_of(outcome, None)
    assert isinstance(error, RunError) and error.message.startswith(f"{named} was killed by signal 9")


def test_a_lost_host_is_named() -> None:
    error = diagnose.error_of(Outcome(started=STARTED, returncode=-15, lost="node2"), None)
    assert isinstance(error, RunError) and "a rank on node2 ended" in error.message
    error = diagnose.error_of(Outcome(started=STARTED, returncode=-15, lost="node1", first_gone=1), None)
    assert error is not None and "rank 1 (pid 101 on node1) ended" in error.message


def test_a_launcher_that_lets_ranks_wait_is_ended(fake: Tilewise) -> None:
    """Its child for the other host goes, as hydra's does, and nothing else happens."""
    script = fake.folder / "mpiexec"
    ranks = [{"rank": 0, "host": "a", "pid": 1}, {"rank": 1, "host": "b", "pid": 1}]
    started = json.dumps({"event": "started", "ranks": ranks})
    # The child itself says that the ranks run: what is not yet running could not be watched.
    script.write_text(
        f"""#!/bin/sh
sh -c 'printf "\\036%s\\n" "$2"; sleep 5; exit 0' ssh b '{started}' hydra_pmi_proxy &
exec sleep 120
"""
    )
    script.chmod(0o755)
    with within(20):
        result = fake("multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", 2, "--launcher", script)
    assert "a rank on b ended before the job was done" in one_message(result, 1)
    assert fake.files() == {"A.npy", "B.npy", "mpiexec"}


@pytest.mark.parametrize("line", ["-x", "a:\u00b2", "a\x1b[2J", "a,b:2", "a slots=-1", "a:" + "9" * 5000])
def test_what_is_no_host_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "hosts").write_text(f"b:2\n{line}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="is not a host") as refused:
        read_hosts(str(tmp_path / "hosts"))
    assert len(refused.value.text()) < 300 and "\x1b" not in refused.value.text()
