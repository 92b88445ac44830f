"""Decompositions that cannot end well: wrong factors, ranks that die, inputs that change under a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import numpy
import pytest
from conftest import Tilewise, one_message, wait_for
from disks import before_the_ranks
from oracle import processes_in
from stopwatch import within
from svd_runs import old_factors, spectrum
from tilewise.operations.svd.options import ALGORITHMS as SVD

WITHOUT_CHILD = True
WORDS = ("svd", "A.npy", "-o", "svd", "--force")


@pytest.fixture
def inputs(tilewise: Tilewise) -> Tilewise:
    """The real command in a folder with A.npy (40×31), and factors of the unit matrix in svd/."""
    old_factors(tilewise.folder / "svd")
    numpy.save(tilewise.folder / "A.npy", spectrum("random", (40, 31), seed=1))
    return tilewise


@contextmanager
def untouched(run: Tilewise) -> Iterator[None]:
    """Checks that what is done inside leaves the folder svd as it was, and nothing else behind."""
    folder = run.folder / "svd"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    identity, names = folder.stat().st_ino, run.files()
    yield
    with within(5):
        wait_for(lambda: not processes_in(run.folder))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert folder.stat().st_ino == identity and run.files() == names


def ways(algorithm: str, ranks: int) -> tuple[object, ...]:
    """The words for an algorithm, on so many ranks or on the one that it takes."""
    components = ("--components", 5) if algorithm == "randomized" else ()
    return ("--algorithm", algorithm, "-n", ranks if SVD[algorithm].takes(ranks) else 1, *components)


@pytest.mark.parametrize("algorithm", SVD)
@pytest.mark.parametrize("verify", ["fast", "serial"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_wrong_factors_are_thrown_away(inputs: Tilewise, algorithm: str, verify: str, ranks: int) -> None:
    inputs.environment["TILEWISE_FAULT"] = "element"
    with untouched(inputs):
        message = one_message(inputs(*WORDS, *ways(algorithm, ranks), "--verify", verify), 3)
    assert "failed its" in message and "discarded" in message


@pytest.mark.parametrize("algorithm", SVD)
@pytest.mark.parametrize(
    ("fault", "rank", "phase"),
    [("kill", 1, "input"), ("kill", 0, "compute"), ("kill", 2, "output"), ("throw", 1, "compute")],
)
def test_a_rank_that_dies(inputs: Tilewise, fault: str, rank: int, phase: str, algorithm: str) -> None:
    where = 0 if algorithm in ("local", "serial", "two_stage") else rank
    inputs.environment["TILEWISE_FAULT"] = f"{fault}:{where}:{phase}"
    with untouched(inputs):
        said = one_message(inputs(*WORDS, *ways(algorithm, 3)), 1)
    assert ("SIGKILL" if fault == "kill" else "told to fail") in said


@pytest.mark.parametrize("exchange", SVD["jacobi"].exchanges)
def test_a_rank_that_dies_while_blocks_travel(inputs: Tilewise, exchange: str) -> None:
    inputs.environment["TILEWISE_FAULT"] = "kill:1:exchange"
    with untouched(inputs):
        assert "SIGKILL" in one_message(inputs(*WORDS, "-n", 3, "--exchange", exchange), 1)


@pytest.mark.parametrize("algorithm", SVD)
def test_an_input_that_shrinks_after_the_plan(inputs: Tilewise, algorithm: str) -> None:
    ranks = 3 if SVD[algorithm].takes(3) else 1
    script = before_the_ranks(inputs, "truncate -s 2000 A.npy", ranks)
    with untouched(inputs):
        said = one_message(inputs(*WORDS, *ways(algorithm, ranks), "--launcher", script), 1)
    assert "A.npy" in said


def test_sweeps_that_run_out_leave_the_old_factors(inputs: Tilewise) -> None:
    with untouched(inputs):
        message = one_message(inputs(*WORDS, "-n", 2, "--max-sweeps", 1, "--inner", "rotations"), 3)
    assert "not orthogonal" in message
    assert numpy.load(inputs.folder / "svd/s.npy").shape == (3,)
    assert os.listdir(inputs.folder / "svd")
