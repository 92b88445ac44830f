"""The cluster quickstart on a real Slurm: its batch file, other commands, and each launcher of its table."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy
import pytest
from account import Account, account, slurm_site
from test_jobs import OPEN_MPI
from test_slurm_page import run, way

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/cluster-quickstart.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
ROWS = [
    re.findall(r"`((?:tilewise|srun|mpiexec) .+?)`(?= \|)", row)
    for row in TEXT.splitlines()
    if "-o C.npy" in row
]
WHEEL = [row[0] for row in ROWS if row]
SITE = [row[1] for row in ROWS if len(row) > 1]


def test_the_page_has_its_commands() -> None:
    assert len(BLOCKS) == 4 and len(WHEEL) == 4 and len(SITE) == 3


def test_the_blocks_run_one_after_the_other(account: Account) -> None:
    for block in BLOCKS:
        run(account, block)
    a, b, c = (numpy.load(account.folder / f"{name}.npy") for name in "ABC")
    assert numpy.allclose(c, a @ b, rtol=0, atol=1e-12)
    record = json.loads((account.folder / "record.json").read_text())
    assert [place["host"] for place in record["placement"]] == ["n1", "n1", "n2", "n2", "n3", "n3"]
    assert not (account.folder / "D.npy").exists()
    assert account.site.left_after(5) == []


@pytest.mark.parametrize("command", WHEEL)
def test_launchers_of_the_wheel(account: Account, command: str) -> None:
    way(account, f"salloc -Q -N3 -n6 bash -c '{command}'")


@pytest.mark.parametrize("command", SITE)
def test_launchers_of_a_build_on_open_mpi(
    account: Account, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not os.access(OPEN_MPI, os.X_OK):
        pytest.skip(f"there is no worker on Open MPI at {OPEN_MPI}")
    for name, value in (
        ("TILEWISE_WORKER", str(OPEN_MPI)),
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ):
        monkeypatch.setitem(account.environment, name, value)
    way(account, f"salloc -Q -N3 -n6 bash -c '{command}'")
