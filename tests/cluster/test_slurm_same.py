"""On a real Slurm: hosts that lack the worker, or have other files than the front's host."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from account import Account, account, slurm_site
from test_jobs import within
from test_same import mounted, program

MULTIPLY = ("tilewise", "multiply", "A.npy", "B.npy", "-o", "out/C.npy")


def no_rank_is_left(account: Account) -> None:
    """Within a moment. What MPI left in shared memory of ranks that waited is for others to look at."""
    with within(5):
        while account.site.ranks():
            time.sleep(0.05)


def refused(account: Account, *words: object) -> str:
    """What a job says that is refused soon; it leaves nothing of itself."""
    (account.folder / "out").mkdir(exist_ok=True)
    with within(15):
        done: subprocess.CompletedProcess[str] = account.site.run(
            ["salloc", "-Q", "-N3", "-n6", *words], account.folder, account.environment
        )
    assert done.returncode == 2, done.stderr
    no_rank_is_left(account)
    assert list((account.folder / "out").iterdir()) == []
    return done.stderr


@pytest.mark.parametrize("launcher", [None, "srun --mpi=pmi2", "srun --mpi=pmix"])
def test_a_worker_that_is_missing(account: Account, program: Path, launcher: str | None) -> None:
    by = [] if launcher is None else ["--launcher", launcher]
    with mounted(account.site.nodes[1], program.parent, "-t", "tmpfs", "none"):
        said = refused(account, *MULTIPLY, "-n", 6, *by)
    assert f"the worker is missing on n2: there is no {program}" in said and "install tilewise on n2" in said
    assert said.count("tilewise: ") == 1


def test_a_worker_that_is_missing_from_a_step(account: Account, program: Path) -> None:
    """Ranks that exist already: the one without says so, and ends the others, also without -K."""
    with mounted(account.site.nodes[1], program.parent, "-t", "tmpfs", "none"), within(10):
        done = account.site.run(
            ["srun", "--mpi=pmi2", "-N3", "-n3", *MULTIPLY[:-1], "C.npy"], account.folder, account.environment
        )
    assert done.returncode != 0
    assert "tilewise: the worker is missing on n2, expected at " in done.stderr
    no_rank_is_left(account)
    assert not list(account.folder.glob("*C.npy*"))


def test_a_folder_that_only_the_login_host_has(account: Account) -> None:
    (account.folder / "out").mkdir()
    (account.folder / "traces").mkdir()
    with mounted(account.site.login, account.folder / "out", "-t", "tmpfs", "none"):
        said = refused(account, *MULTIPLY, "-n", 6)
    assert f"the folder {account.folder / 'out'} is not the same on login and n" in said
    with mounted(account.site.login, account.folder / "traces", "-t", "tmpfs", "none"):
        said = refused(account, *MULTIPLY, "-n", 6, "--trace", "traces/t.json")
    assert f"the timeline: the folder {account.folder / 'traces'} is not the same on login and n1" in said


def test_another_file_on_one_node(account: Account, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes((account.folder / "A.npy").read_bytes()[::-1])
    with mounted(account.site.nodes[2], account.folder / "A.npy", "--bind", other):
        said = refused(account, *MULTIPLY, "-n", 6)
    assert "A.npy is not the same file on login and n3: of the same size, but with different contents" in said
