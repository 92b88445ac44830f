"""What `tilewise svd` holds in memory, against what its plan says: matrices far larger than what is fixed."""

from __future__ import annotations

import numpy
import pytest
from conftest import Done, Tilewise
from memory import MemoryWatch
from tilewise.planning import need

JOB = ("svd", "-o", "svd/", "--force")
JACOBI = ("--algorithm", "jacobi")
RANDOMIZED = ("--algorithm", "randomized", "--power", 0)
SPACE = ("--algorithm", "randomized", "--power", 9)  # the space is full, and restarted
OWN = 10 << 20  # of what is fixed, what a rank of a tiny matrix has
LIBRARIES = 8 << 20  # and what BLAS and MPI take beside that for a large one
RESIDENT = 24 << 20  # of a rank of a tiny matrix, pages of programs too
LARGE = 48 << 20  # bytes a rank from which the matrix is most of what there is


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((1300, 1200), (*JACOBI, "-n", 1)),
        ((1300, 1200), (*JACOBI, "-n", 1, "--start", "qr")),
        ((1300, 1200), (*JACOBI, "-n", 1, "--values-only")),
        ((1200, 1300), (*JACOBI, "-n", 1, "--scaled", "--repeat", 2)),
        ((800, 800), (*JACOBI, "-n", 1, "-t", 2, "--inner", "rotations")),
        ((1200, 1300), (*JACOBI, "-n", 2)),
        ((1200, 1200), (*JACOBI, "-n", 2, "--start", "qr", "--remainder", "last", "--block-columns", 400)),
        ((1300, 1200), (*JACOBI, "-n", 2, "--values-only", "--start", "qr")),
        ((1200, 1200), (*JACOBI, "-n", 2, "--exchange", "one_sided_lock")),
        ((1200, 1200), (*JACOBI, "-n", 2, "--exchange", "one_sided_lock", "--start", "qr")),
        ((1200, 1200), (*JACOBI, "-n", 2, "--exchange", "overlap", "--components", 100)),
        ((1300, 1200), (*JACOBI, "-n", 1, "--start", "none")),
        ((6000, 1000), (*JACOBI, "-n", 2, "--start", "none", "--scaled")),
        ((1000, 3000), (*JACOBI, "-n", 2, "--start", "none", "--values-only")),
        ((4000, 300), ("--algorithm", "serial")),
        ((6000, 1000), (*JACOBI, "-n", 2)),
        ((1000, 6000), (*JACOBI, "-n", 2, "--scaled", "-t", 2, "--start", "qr")),
        ((6000, 1000), (*JACOBI, "-n", 2, "--values-only")),
        ((1500, 1000), ("--algorithm", "local", "--scaled")),
        ((1300, 1300), ("--algorithm", "two_stage", "-n", 2)),
        ((3000, 1000), ("--algorithm", "two_stage", "-n", 1, "-t", 2)),
        ((1300, 1200), ("--algorithm", "two_stage", "-n", 1, "--values-only")),
        ((9000, 1500), (*RANDOMIZED, "-n", 2, "--scaled", "--components", 40)),
        ((5000, 3000), (*SPACE, "-n", 2, "--components", 40)),
        ((400_000, 60), (*RANDOMIZED, "-n", 1, "--scaled", "--components", 20)),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_no_plan_promises_too_little(
    tilewise: Tilewise, done: Done, shape: tuple[int, int], words: tuple[object, ...], order: str
) -> None:
    """Nor much too much. What is fixed is left away on both sides, so that it hides no error."""
    matrix = numpy.random.default_rng(1).standard_normal(shape)
    numpy.save(tilewise.folder / "A.npy", numpy.asfortranarray(matrix) if order == "F" else matrix)
    threads = () if "-t" in words else ("-t", 1)
    with MemoryWatch() as watch:
        record = done("A.npy", "--io", "positioned", *threads, *words)
    ranks = record["variant"]["ranks"]
    promised, held = record["needed_bytes"] - ranks * need.FIXED, watch.most - ranks * OWN
    peak = record["peak_rss_bytes"]["node_sum"]  # what a rank holds for a moment only may escape the watch
    assert held <= promised + ranks * LIBRARIES
    assert 0.05 * promised <= peak - ranks * OWN
    assert promised < ranks * LARGE or promised <= 1.35 * (peak - ranks * RESIDENT)
    assert watch.most <= record["needed_bytes"]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("shape", [(1400, 1000), (3000, 1000)])
def test_a_matrix_without_full_rank_is_completed_in_what_was_promised(
    tilewise: Tilewise, done: Done, shape: tuple[int, int], ranks: int
) -> None:
    matrix = numpy.zeros(shape)
    matrix[:, :500] = numpy.random.default_rng(1).standard_normal((shape[0], 500))
    numpy.save(tilewise.folder / "A.npy", matrix)
    with MemoryWatch() as watch:
        record = done("A.npy", "--io", "positioned", "-t", 1, *JACOBI, "-n", ranks)
    assert record["result"]["rank"] == 500
    promised, held = record["needed_bytes"] - ranks * need.FIXED, watch.most - ranks * OWN
    assert 0.4 * promised <= held <= promised + ranks * LIBRARIES


def test_what_fits_is_not_refused(tilewise: Tilewise, done: Done) -> None:
    """The start by eigenvectors, and after it fails as little as is possible; both under the same cap."""
    matrix = numpy.random.default_rng(1).standard_normal((1000, 1000))
    for name, columns in (("plain", 1.0), ("graded", 10.0 ** -(numpy.arange(1000) / 50))):
        numpy.save(tilewise.folder / "A.npy", matrix * columns)
        with MemoryWatch() as watch:
            record = done("A.npy", "--io", "positioned", "-t", 1, *JACOBI, "-n", 1, "--memory", "105MiB")
        assert record["result"]["start_used"] == ("eigen" if name == "plain" else "qr")
        assert watch.most <= record["needed_bytes"] <= 105 << 20
        assert record["variant"]["blocks"] == 4


def test_a_start_that_falls_back_is_planned_for(tilewise: Tilewise, done: Done) -> None:
    """With wide pairs, where there is room for them."""
    matrix = numpy.random.default_rng(1).standard_normal((1000, 900)) * 10.0 ** -(numpy.arange(900) / 50)
    numpy.save(tilewise.folder / "A.npy", matrix)
    words = ("A.npy", "--io", "positioned", "-t", 1, *JACOBI, "-n", 1)
    with MemoryWatch() as watch:
        fallen = done(*words)
    asked = done(*words, "--start", "qr")
    assert fallen["variant"]["blocks"] == asked["variant"]["blocks"] == 2
    assert watch.most <= fallen["needed_bytes"] == asked["needed_bytes"]
