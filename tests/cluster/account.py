"""The user of a real Slurm: a site for the tests of a module, for each test an account with a folder.

Modules import both fixtures: `from account import Account, account, slurm_site`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from cluster import NoClusterError
from slurm import Slurm, slurm
from tilewise.launch.worker import ALGORITHMS, YIELDING

_TRAPS = ("OPENBLAS_", "OMP_", "PMI_", "PMIX_", "OMPI_", "SLURM_", "HYDR", "TILEWISE_", "UCX_")


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of a user on virtual hosts, nothing of ours or of an outer job in it."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_TRAPS)}
    named = {key: os.environ[key] for key in ("TILEWISE_WORKER",) if key in os.environ}
    return {
        **kept,
        **named,
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "XDG_CACHE_HOME": str(folder / ".cache"),
        "TILEWISE_NO_LEARN": "1",  # one run is planned as another
        "SLURM_PMIX_FENCE": "tree",  # as docs/how-to/on-a-cluster.md advises where srun is typed by hand
        "UCX_TLS": "tcp,self",  # what shares this machine's memory is no network
        **YIELDING,  # hosts that think that they have cores of their own share them
        **ALGORITHMS,
    }


def make_inputs(folder: Path) -> None:
    """A.npy of 67×53 and B.npy of 53×41."""
    random = numpy.random.default_rng(1)
    numpy.save(folder / "A.npy", random.standard_normal((67, 53)))
    numpy.save(folder / "B.npy", random.standard_normal((53, 41)))


def messages(said: str) -> list[str]:
    """What of it tilewise said, advice apart; srun and its daemons may add lines of their own."""
    return [line for line in said.splitlines() if line.startswith("tilewise: ")]


class Account:
    """A user's account: `tilewise` on the path, a folder that all hosts share, with A.npy and B.npy."""

    def __init__(self, site: Slurm, folder: Path) -> None:
        self.site = site
        self.folder = folder
        self.environment = {
            **surroundings(folder),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }


@pytest.fixture(scope="module")
def slurm_site() -> Iterator[Slurm]:
    """A login host and n1, n2, n3, or the reason why there are none."""
    try:
        with slurm() as site:
            yield site
    except NoClusterError as reason:
        pytest.skip(f"no Slurm: {reason}")


@pytest.fixture
def account(slurm_site: Slurm, tmp_path: Path) -> Iterator[Account]:
    """An account with two matrices; afterwards nothing of its jobs runs any more."""
    from tilewise.launch import worker

    if worker.find() is None:
        pytest.skip("the worker is not built")
    made = Account(slurm_site, tmp_path)
    make_inputs(tmp_path)
    slurm_site.mpi("none")
    try:
        yield made
    finally:
        slurm_site.end()
