"""Jobs that begin at the same moment for the same output: one names it last, and nothing of them is mixed."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
from conftest import Tilewise, wait_for
from oracle import Array, processes_in

JOBS = 3
SIDE = 700  # as many numbers as take a while to write


def content(path: Path) -> Array:
    """The matrix at `path`, read without a word of ours."""
    if path.suffix == ".h5":
        import h5py

        with h5py.File(path) as file:
            return numpy.asarray(file["C"])
    return numpy.asarray(numpy.load(path))


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("forced", [True, False])
@pytest.mark.parametrize("target", ["C.npy", "C.h5:/C", "C.tiles"])
def test_jobs_for_the_same_output(tilewise: Tilewise, target: str, forced: bool, ranks: int) -> None:
    """Job i makes a matrix of i + 1 alone; with --force the last one to be done has it, without the first."""
    for i in range(JOBS):
        numpy.save(tilewise.folder / f"A{i}.npy", numpy.full((SIDE, SIDE), i + 1.0))
    inputs = tilewise.files()
    force = ("--force",) if forced else ()
    words = ("-o", target, "-n", ranks, "-q", *force)
    children = [tilewise.start("transpose", f"A{i}.npy", *words) for i in range(JOBS)]
    said = [child.communicate(timeout=120)[1] for child in children]
    codes = [child.returncode for child in children]
    wait_for(lambda: not processes_in(tilewise.folder))

    assert 0 in codes and set(codes) <= {0, 1, 2}, said
    for code, words_ in zip(codes, said, strict=True):
        assert (words_ == "") == (code == 0) and words_.count("tilewise: ") == (code != 0)
    name = target.partition(":")[0]
    assert tilewise.files() - inputs == {name}, "parts are left"
    if name.endswith(".tiles"):
        done = tilewise("convert", name, "-o", "all.npy", "-q", "-n", 1)
        assert done.returncode == 0, done.stderr
        name = "all.npy"
    made = content(tilewise.folder / name)
    assert made.shape == (SIDE, SIDE) and (made == made[0, 0]).all(), "two jobs are mixed"
    winner = int(made[0, 0]) - 1
    assert codes[winner] == 0
    if not forced:
        assert codes.count(0) == 1
