"""Slurm itself: its nodes are hosts of their own, and what it starts ends with it."""

from __future__ import annotations

import pytest
from account import Account, account, slurm_site
from slurm import MPI_TYPES, name


@pytest.mark.parametrize("mpi", MPI_TYPES)
def test_steps_run_on_hosts_of_their_own(account: Account, mpi: str) -> None:
    account.site.mpi(mpi)
    script = "srun sh -c 'echo $(hostname) ${PMI_RANK:+pmi} ${PMIX_RANK:+pmix}'"
    done = account.site.run(["salloc", "-N3", "-n6", "sh", "-c", script], account.folder, account.environment)
    kind = {"none": "", "pmi2": " pmi", "pmix": " pmix"}[mpi]
    assert sorted(done.stdout.splitlines()) == sorted(f"n{node}{kind}" for node in (1, 2, 3) for _ in "ab")
    assert account.site.left_after(5) == []


def test_the_end_takes_jobs_with_it(account: Account) -> None:
    child = account.site.start(["srun", "-N3", "sleep", "300"], account.folder, account.environment)
    while sum(name(p) == "slurmstepd" for p in account.site.processes()) < 3:
        assert child.poll() is None
    account.site.end()
    child.communicate(timeout=60)
    assert child.returncode != 0
    assert account.site.ask("squeue", "-h", "--states=PENDING,RUNNING") == ""
