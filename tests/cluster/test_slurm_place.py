"""On a real Slurm: ranks, threads and memory are where the plan has them, whatever was asked of Slurm."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
from account import Account, account, slurm_site
from cluster import NoClusterError
from slurm import slurm

MULTIPLY = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "--force")
SWAP = ("transpose", "A.npy", "-o", "T.npy", "--force", "--algorithm", "swap")


def asked(account: Account, *words: object, slurm: str = "salloc -Q -N3 -n6") -> Any:
    """What `salloc … tilewise words…` does; the front then runs on the login host."""
    command = [*slurm.split(), sys.executable, "-m", "tilewise", *map(str, words)]
    return account.site.run(command, account.folder, account.environment)


def record(account: Account, *words: object, slurm: str = "salloc -Q -N3 -n6") -> dict[str, Any]:
    """The record of a job that must end well."""
    done: subprocess.CompletedProcess[str] = asked(account, *words, "--json", "-", slurm=slurm)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def hosts_of(told: dict[str, Any]) -> str:
    return " ".join(place["host"] for place in told["placement"])


@pytest.mark.parametrize(
    ("slurm", "words", "hosts"),
    [
        ("-N3 -n6", "-n 3", "n1 n2 n3"),
        ("-N3 -n6", "-n 4", "n1 n1 n2 n3"),
        ("-N3 -n6", "-n 4 --place node", "n1 n2 n3 n1"),
        ("-N3 -n6", "--algorithm summa", "n1 n1 n2 n2 n3 n3"),
        ("-N3 --exclusive", "-n 3", "n1 n2 n3"),
        ("-N3 --exclusive", "--algorithm summa", "n1 n1 n2 n2 n3 n3"),
        ("-N3 --ntasks-per-node=2", "-n 3 --place node", "n1 n2 n3"),
        ("-N2 -n4", "-n 2", "n1 n2"),
        ("-N3", "-n 5", "n1 n1 n2 n2 n3"),
        ("-N3 -n6", "", "n1"),
    ],
)
def test_ranks_are_where_they_were_planned(account: Account, slurm: str, words: str, hosts: str) -> None:
    told = record(account, *MULTIPLY, *words.split(), slurm=f"salloc -Q {slurm}")
    assert hosts_of(told) == hosts
    crowded = slurm == "-N3" and words == "-n 5"  # a processor on each
    assert [warning.partition(":")[0] for warning in told["warnings"]] == ["oversubscribed"] * crowded
    assert any(reason.startswith("Slurm grants") for reason in told["reasons"])


@pytest.mark.parametrize(
    ("words", "hosts"),
    [("-n 3", "n1 n2 n3"), ("-n 4", "n1 n1 n2 n3"), ("-n 6 --place node", "n1 n2 n3 n1 n2 n3")],
)
def test_srun_is_told_where(account: Account, words: str, hosts: str) -> None:
    told = record(account, *MULTIPLY, *words.split(), "--launcher", "srun --mpi=pmi2")
    assert hosts_of(told) == hosts and told["warnings"] == []


def test_a_launcher_with_ideas_of_its_own_is_seen_through(account: Account) -> None:
    """A wrapper says nothing of hosts, and nobody can tell it any."""
    wrapper = account.folder / "wrapper"
    wrapper.write_text('#!/bin/sh\nexec srun --mpi=pmi2 -N2 --distribution=block "$@"\n')
    wrapper.chmod(0o755)
    told = record(account, *MULTIPLY, "-n", 3, "--launcher", wrapper)
    assert hosts_of(told) == "n1 n1 n2"
    (warning,) = (text for text in told["warnings"] if "not where" in text)
    assert "2 on n1 and 1 on n2, instead of 1 on n1, 1 on n2 and 1 on n3" in warning
    told = record(account, *SWAP, "-n", 3, "--launcher", "srun --mpi=pmi2 -N2")
    assert told["variant"]["exchange"] == "overlap" and told["warnings"] == []


def test_in_a_batch_job(account: Account) -> None:
    """Here the front is on a node, whose own processors and memory it sees."""
    words = [sys.executable, "-m", "tilewise", *MULTIPLY, "-n", "3", "--json", "R.json", "-q"]
    account.site.run(
        ["sbatch", "-Q", "--wait", "-N3", "-n6", "-o", "said", "--wrap", " ".join(words)],
        account.folder,
        account.environment,
    )
    assert (account.folder / "said").read_text() == ""
    told = json.loads((account.folder / "R.json").read_text())
    assert hosts_of(told) == "n1 n2 n3" and told["environment"]["cores"] <= 2


def test_hosts_of_the_allocation(account: Account) -> None:
    listed = account.folder / "hosts"
    listed.write_text("n3\nn1\n")
    told = record(account, *MULTIPLY, "-n", 3, "--hosts", listed)
    assert hosts_of(told) == "n1 n1 n3"
    done = asked(account, *MULTIPLY, "-n", 2, "--hosts", listed, slurm="salloc -Q -N1 -w n2")
    assert done.returncode == 2 and "Slurm has not granted n3, only n2" in done.stderr


def test_processors_of_a_task_and_memory_of_a_node(account: Account) -> None:
    large = ("--algorithm", "summa", "--no-verify")
    for name in ("A.npy", "B.npy"):
        numpy.save(account.folder / name, numpy.ones((400, 400)))
    told = record(account, *MULTIPLY, *large, slurm="salloc -Q -N3 -n3 -c2 --mem=1000")
    assert (told["variant"]["ranks"], told["variant"]["threads"]) == (3, 2)
    assert "2 threads per rank: --cpus-per-task" in told["reasons"]
    granted = "Slurm grants 2 processors on each of 3 nodes; 1000 MiB of memory on a node"
    assert granted in told["reasons"]
    one = record(account, *MULTIPLY, *large, slurm="salloc -Q -N3 -n3 -c1 --mem-per-cpu=500")
    assert one["variant"]["threads"] == 1 and hosts_of(one) == "n1 n2 n3"
    done = asked(account, *MULTIPLY, *large, slurm="salloc -Q -N3 -n3 --mem=30")
    assert done.returncode == 2 and "80 % of what is available is 24.0 MiB" in done.stderr


def test_nodes_that_slurm_gives_as_a_whole(account: Account, tmp_path: Path) -> None:
    """With select/linear every job has all processors, and as many tasks to a node as those are."""
    try:
        with slurm(settings="SelectType=select/linear") as site:
            other = Account(site, tmp_path)
            assert hosts_of(record(other, *MULTIPLY, "-n", 3, slurm="salloc -Q -N3")) == "n1 n2 n3"
            assert hosts_of(record(other, *MULTIPLY, "-n", 4, slurm="salloc -Q -N3")) == "n1 n1 n2 n3"
    except NoClusterError as reason:
        pytest.skip(f"no Slurm: {reason}")


def test_ranks_that_srun_started_take_what_their_tasks_have(account: Account) -> None:
    """`srun … tilewise`: the ranks exist, and the front of the first one counts on what the job has."""
    for name in ("A.npy", "B.npy"):
        numpy.save(account.folder / name, numpy.ones((400, 400)))
    words = [sys.executable, "-m", "tilewise", *MULTIPLY, "--json", "R.json", "-q"]
    for asked_of_slurm, threads in (("-n3 -c2", 2), ("-n6", 1)):
        step = ["srun", "-Q", "--mpi=pmi2", "-N3", *asked_of_slurm.split(), *words]
        done = account.site.run(step, account.folder, account.environment)
        assert done.returncode == 0, done.stderr
        told = json.loads((account.folder / "R.json").read_text())
        assert (told["variant"]["threads"], told["variant"]["exchange"]) == (threads, "overlap")
        assert len(set(hosts_of(told).split())) == 3 and told["warnings"] == []


def test_messages_are_measured_where_they_say(account: Account) -> None:
    """Within a host, that is the one that the command runs on; between hosts, those that Slurm grants."""
    less = ("--pairs", 1, "--bytes", 8, "--launches", 1, "--runs", 3, "--collectives", "none", "--quiet")
    told = record(account, "measure", "ping", *less, "--levels", "core,node", "--no-store")
    assert {line["level"] for line in told["lines"]} >= {"core", "node"}
    assert told["warnings"] == [] or all("hosts" not in warning for warning in told["warnings"])
