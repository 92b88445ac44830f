"""The end of a job that something ends: the right rank is named, and nothing is left on any node."""

from __future__ import annotations

import random
import subprocess
import time

import pytest
from account import Account, account, messages, slurm_site
from random_faults import FAULTS, run_case

BY_SRUN = ("srun", "-Q", "-N3", "-n6", "--mpi=pmi2")
BY_SRUN_K = (*BY_SRUN, "-K")
BY_SALLOC = ("salloc", "-Q", "-N3", "-n6")
STENCIL = ("stencil", "A.npy", "--steps", "5", "-o", "S.npy", "--force")
ENDLESS = ("stencil", "A.npy", "--steps", "100000000", "-o", "S.npy", "--force", "--verify", "off")
LAUNCHER = ("-n", "6", "--launcher", "srun --mpi=pmi2")
GONE = 5  # seconds after the message in which every rank has gone
NAMED = {fault.name: fault for fault in FAULTS}


def run(
    account: Account, *words: str, fault: str = "", timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    environment = {**account.environment, **({"TILEWISE_FAULT": fault} if fault else {})}
    return account.site.run(words, account.folder, environment, timeout)


def message(done: subprocess.CompletedProcess[str]) -> str:
    """The one message that tilewise gave."""
    ours = messages(done.stderr)
    assert len(ours) == 1, done.stderr
    return ours[0]


@pytest.mark.parametrize("rank", [2, 5])
@pytest.mark.parametrize(
    ("before", "after"),
    [(BY_SRUN, ()), (BY_SRUN_K, ()), (BY_SALLOC, LAUNCHER), (BY_SALLOC, ("-n", "6"))],
    ids=["srun", "srun -K", "launcher", "salloc"],
)
def test_a_killed_rank_is_named_and_takes_all_with_it(
    account: Account, before: tuple[str, ...], after: tuple[str, ...], rank: int
) -> None:
    done = run(account, *before, "tilewise", *STENCIL, *after, fault=f"kill:{rank}:exchange")
    said = message(done)
    assert done.returncode != 0 and f"rank {rank} (pid " in said and f" on n{rank // 2 + 1})" in said
    assert account.site.left_after(GONE) == []
    assert not list(account.folder.glob("*S.npy*"))


@pytest.mark.parametrize("before", [BY_SRUN, BY_SRUN_K], ids=["srun", "srun -K"])
def test_a_rank_elsewhere_says_why_through_the_front(account: Account, before: tuple[str, ...]) -> None:
    done = run(account, *before, "tilewise", *STENCIL, fault="throw:4:exchange")
    assert "rank 4 on n3: told to fail" in message(done)
    assert account.site.left_after(GONE) == []


def test_a_front_that_is_killed_takes_all_ranks_with_it(account: Account) -> None:
    words = [*BY_SALLOC, "tilewise", *ENDLESS, *LAUNCHER]
    child = account.site.start(words, account.folder, account.environment)
    deadline = time.monotonic() + 60
    while len(account.site.ranks()) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    front = [p for p in account.site.login.processes() if "tilewise" in p.name() and p.parent()]
    next(p for p in front if "salloc" in p.parent().name()).kill()
    child.communicate(timeout=60)
    deadline = time.monotonic() + GONE
    while account.site.ranks() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert account.site.ranks() == {}


@pytest.mark.parametrize("way", ["salloc, none", "srun"])
def test_a_cut_cable_ends_the_job(account: Account, way: str) -> None:
    case = run_case(account, random.Random(1), NAMED["a link is cut"], way, "stencil", pause=1.5)
    assert case.wrong == [] and "did not respond" in case.said, case


@pytest.mark.parametrize(
    ("name", "way", "operation"),
    [
        ("a launcher's daemon is killed", "salloc, pmi2", "multiply"),
        ("a launcher's daemon is killed", "srun", "transpose"),
        ("a node is drained", "salloc, pmix", "stencil"),
        ("slurmd is killed", "salloc, none", "multiply"),
        ("a node is set down", "salloc, none", "transpose"),
    ],
)
def test_what_fails_on_a_node(account: Account, name: str, way: str, operation: str) -> None:
    case = run_case(account, random.Random(2), NAMED[name], way, operation, pause=1.5)
    assert case.wrong == [], case
