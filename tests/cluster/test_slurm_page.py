"""The commands of the page for clusters run on a real Slurm as they stand, block by block, cell by cell."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import numpy
import pytest
from account import Account, account, slurm_site
from test_jobs import OPEN_MPI

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "how-to" / "on-a-cluster.md").read_text(encoding="utf-8")
STUDIES = "\n## Run a study\n"  # whose commands need no Slurm: tests/docs/test_how_to.py runs them
BLOCKS = re.findall(r"^```sh\n(.*?)^```", TEXT.split(STUDIES)[0], re.MULTILINE | re.DOTALL)
BATCH = next(block for block in BLOCKS if "product.sbatch" in block)
ROWS = [
    line.split("|")[1:-1] for line in TEXT.splitlines() if re.match(r"\| .* \| `.*tilewise multiply", line)
]
ALLOCATION = ("salloc", "-Q", "-N3", "-n6")


def cells(column: int) -> list[str]:
    """The commands of a column of the table of ways to start."""
    return [found.group(1) for row in ROWS if (found := re.search(r"`(.+)`", row[column]))]


def run(account: Account, command: str, *before: str) -> subprocess.CompletedProcess[str]:
    """As a user types it on the login host; stdin is no terminal, which `srun --pty` complains about."""
    words = [*before, "bash", "-euc", command]
    done = account.site.run(words, account.folder, account.environment, timeout=100)
    assert done.returncode == 0, done.stderr
    return done


def way(account: Account, command: str) -> None:
    """What does not get an allocation itself is for one that is there."""
    run(account, command, *(() if command.startswith(("salloc", "srun")) else ALLOCATION))
    assert (account.folder / "C.npy").stat().st_size > 0
    assert account.site.left_after(5) == []


def test_the_page_has_its_commands() -> None:
    assert len(BLOCKS) >= 5 and len(cells(1)) == 5 and len(cells(2)) == 4
    assert all("-K" in one for one in [*cells(1), *cells(2)] if "srun" in one)


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_blocks(account: Account, block: int) -> None:
    run(account, BLOCKS[block])
    for output in re.findall(r"-o (\S+\.npy)", BLOCKS[block]):
        assert "plan" in BLOCKS[block] or (account.folder / output).stat().st_size > 0


def test_the_batch_script_uses_every_node(account: Account) -> None:
    run(account, BATCH)
    a, b, c = (numpy.load(account.folder / f"{name}.npy") for name in "ABC")
    assert numpy.allclose(c, a @ b, rtol=0, atol=1e-12)
    record = json.loads((account.folder / "record.json").read_text())
    assert [place["host"] for place in record["placement"]] == ["n1", "n1", "n2", "n2", "n3", "n3"]
    assert account.site.left_after(5) == []


@pytest.mark.parametrize("command", cells(1))
def test_ways_to_start_the_wheel(account: Account, command: str) -> None:
    way(account, command)


@pytest.mark.parametrize("command", cells(2))
def test_ways_to_start_a_build_on_open_mpi(
    account: Account, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not os.access(OPEN_MPI, os.X_OK):
        pytest.skip(f"there is no worker on Open MPI at {OPEN_MPI}")
    monkeypatch.setitem(account.environment, "TILEWISE_WORKER", str(OPEN_MPI))
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setitem(account.environment, name, "1")
    way(account, command)
