"""Transpositions that cannot end well: ranks that die, disks that fill up, inputs that change under a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from conftest import Tilewise, one_message, wait_for
from disks import before_the_ranks, small_ext2, small_tmpfs
from oracle import matrix, nothing_left, processes_in, state_of
from stopwatch import within
from tilewise.operations.transpose.options import ALGORITHMS as TRANSPOSE

WITHOUT_CHILD = True
WORDS = ("transpose", "A.npy", "-o", "B.npy", "--force")
# Each algorithm as it is usually run, and the ways of `staged` that have an engine of their own.
WAYS = {
    "gather": ("--algorithm", "gather"),
    "gather whole": ("--algorithm", "gather", "--root-write", "whole"),
    "swap": ("--algorithm", "swap", "--io", "collective"),
    "reread": ("--algorithm", "reread", "--io", "collective"),
    "staged, mapped": ("--algorithm", "staged", "--io", "mapped:positioned"),
    "staged, tiles": ("--algorithm", "staged", "--io", "positioned"),
    "staged, past the cache": ("--algorithm", "staged", "--io", "uncached"),
    "staged, bands": ("--algorithm", "staged", "--io", "sieve"),
}


@pytest.fixture
def inputs(tilewise: Tilewise) -> Tilewise:
    """The real command in a folder with A.npy (57×31) and an old output B.npy."""
    numpy.save(tilewise.folder / "A.npy", matrix((57, 31), seed=1))
    numpy.save(tilewise.folder / "B.npy", matrix((3, 3), seed=2))
    return tilewise


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("fault", "ranks", "rank", "phase"),
    [("kill", 1, 0, "output"), ("kill", 3, 2, "input"), ("throw", 3, 0, "output")],
)
def test_a_rank_that_dies(inputs: Tilewise, fault: str, ranks: int, rank: int, phase: str, way: str) -> None:
    inputs.environment["TILEWISE_FAULT"] = f"{fault}:{rank}:{phase}"
    with nothing_left(inputs, 5):
        said = one_message(inputs(*WORDS, *WAYS[way], "-n", ranks), 1)
    assert ("SIGKILL" if fault == "kill" else "told to fail") in said


@pytest.mark.parametrize(("algorithm", "ranks", "rank"), [("gather", 3, 1), ("swap", 4, 0)])
@pytest.mark.parametrize("exchange", TRANSPOSE["swap"].exchanges)
def test_a_rank_that_dies_while_others_wait(
    inputs: Tilewise, exchange: str, algorithm: str, ranks: int, rank: int
) -> None:
    inputs.environment["TILEWISE_FAULT"] = f"kill:{rank}:exchange"
    with nothing_left(inputs, 5):
        result = inputs(*WORDS, "--algorithm", algorithm, "--exchange", exchange, "-n", ranks)
        assert "SIGKILL" in one_message(result, 1)


@pytest.mark.parametrize("verify", ["fast", "serial"])
def test_a_rank_that_dies_while_it_proves(inputs: Tilewise, verify: str) -> None:
    inputs.environment["TILEWISE_FAULT"] = "kill:0:verify"
    with nothing_left(inputs, 5):
        one_message(inputs(*WORDS, "-n", 2, "--verify", verify), 1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("kind", "ranks"), [("tmpfs", 3), ("ext2", 1), ("ext2", 3)])
def test_a_disk_that_becomes_full(
    inputs: Tilewise, mount: Callable[..., Path], tmp_path: Path, kind: str, ranks: int, way: str
) -> None:
    folder = small_tmpfs(mount) if kind == "tmpfs" else small_ext2(mount, tmp_path)
    numpy.save(folder / "B.npy", numpy.ones((3, 3)))
    (folder / "filler").touch()
    before, names = state_of(folder / "B.npy"), sorted(os.listdir(folder))
    numpy.save(inputs.folder / "A.npy", matrix((350, 351)))
    script = before_the_ranks(inputs, f"head -c 1200000 /dev/zero >'{folder}/filler'", ranks)
    words = ("transpose", "A.npy", "-o", folder / "B.npy", "--force", "-n", ranks, "--launcher", script)
    with within(6):
        said = one_message(inputs(*words, *WAYS[way]), 1)
    assert "B.npy" in said
    assert sorted(os.listdir(folder)) == names and state_of(folder / "B.npy") == before
    with within(2):
        wait_for(lambda: not processes_in(inputs.folder))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_an_input_that_shrinks_after_the_plan(inputs: Tilewise, way: str, ranks: int) -> None:
    script = before_the_ranks(inputs, "truncate -s 2000 A.npy", ranks)
    with nothing_left(inputs, 6):
        said = one_message(inputs(*WORDS, *WAYS[way], "-n", ranks, "--launcher", script), 1)
    assert "A.npy" in said
