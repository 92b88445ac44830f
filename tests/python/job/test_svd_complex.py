"""`tilewise svd` of complex matrices against numpy: unitary vectors, real values, any rank count."""

from __future__ import annotations

import numpy
import pytest
from conftest import Done, Tilewise, one_message
from svd_runs import KINDS, assert_decomposed, factors, plain_values, spectrum
from tilewise.operations.svd.options import ALGORITHMS

JOB = ("svd", "-o", "svd/", "--force")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(40, 40), (90, 24), (24, 90)])
def test_spectra(tilewise: Tilewise, done: Done, kind: str, shape: tuple[int, int]) -> None:
    """On every way; each is proved by random vectors and by LAPACK."""
    matrix = spectrum(kind, shape, 11, "complex128")
    numpy.save(tilewise.folder / "A.npy", matrix)
    for words in (
        ("--algorithm", "local", "-n", 1),
        ("--algorithm", "jacobi", "-n", 1, "--start", "qr"),
        ("-n", 2, "--inner", "rotations"),
        ("-n", 3, "--verify", "serial"),
        ("-n", 4, "--block-columns", 2),
    ):
        record = done("A.npy", *words)
        assert record["verification"]["passed"] and record["outputs"][0]["dtype"] == "complex128"
        assert_decomposed(tilewise.folder / "svd", matrix)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 3), (50, 3), (3, 50)])
def test_small_shapes(tilewise: Tilewise, done: Done, shape: tuple[int, int]) -> None:
    for dtype in ("complex64", "complex128"):
        matrix = spectrum("random", shape, 5, dtype)
        numpy.save(tilewise.folder / "A.npy", numpy.asfortranarray(matrix))
        for ranks in (1, 2, 4):
            done("A.npy", "-n", ranks, "--algorithm", "jacobi")
            assert_decomposed(tilewise.folder / "svd", matrix)


def test_a_wide_pair_of_blocks(tilewise: Tilewise, done: Done) -> None:
    """More columns than one Cholesky factor takes, some of them equal, from both starts."""
    matrix = spectrum("repeated", (330, 301), 3, "complex128")
    numpy.save(tilewise.folder / "A.npy", matrix)
    for start in ("eigen", "qr"):
        done("A.npy", "-n", 1, "--algorithm", "jacobi", "--start", start)
        assert_decomposed(tilewise.folder / "svd", matrix)


def test_exchanges_and_ranks_agree(tilewise: Tilewise, done: Done) -> None:
    """All exchanges give the same bits, and other ways the same vectors: their phase is fixed."""
    matrix = spectrum("random", (45, 37), 1, "complex128")
    numpy.save(tilewise.folder / "A.npy", matrix)
    done("A.npy", "-n", 1, "--algorithm", "local")
    expected = factors(tilewise.folder / "svd")
    results = []
    for exchange in ALGORITHMS["jacobi"].exchanges:
        done("A.npy", "-n", 3, "--exchange", exchange, "--block-columns", 3)
        results.append(factors(tilewise.folder / "svd"))
    for one in results:
        for mine, reference in zip(one, expected, strict=True):
            assert numpy.abs(mine - reference).max() <= 1e-11
        assert all(map(numpy.array_equal, one, results[0]))


@pytest.mark.parametrize(("shape", "ranks"), [((24, 24), 1), ((24, 24), 2), ((50, 20), 3), ((20, 26), 2)])
def test_small_values_of_graded_matrices(
    tilewise: Tilewise, done: Done, shape: tuple[int, int], ranks: int
) -> None:
    rows = 10.0 ** (-6 * numpy.random.default_rng(3).permutation(shape[0]) / shape[0])
    matrix = spectrum("graded", shape, 1, "complex128") * (rows[:, None] if ranks != 3 else 1)
    numpy.save(tilewise.folder / "A.npy", matrix)
    expected = plain_values(matrix if shape[0] >= shape[1] else matrix.T)
    done("A.npy", "--algorithm", "jacobi", "-n", ranks)
    values = numpy.load(tilewise.folder / "svd/s.npy")
    assert (numpy.abs(values - expected) / expected).max() <= 1e-12


@pytest.mark.parametrize("algorithm", ["local", "jacobi"])
def test_few_components_and_values_alone(tilewise: Tilewise, done: Done, algorithm: str) -> None:
    matrix = spectrum("random", (60, 33), 2, "complex64") * 0.5 ** numpy.arange(33, dtype="float32")
    numpy.save(tilewise.folder / "A.npy", matrix)
    exact = numpy.linalg.svd(matrix, compute_uv=False)
    ranks = 1 if algorithm == "local" else 2
    words = ("A.npy", "--algorithm", algorithm, "-n", ranks)
    done(*words, "--components", 6, "--scaled")
    assert_decomposed(tilewise.folder / "svd", matrix, 6)
    u, s, _ = factors(tilewise.folder / "svd")
    assert numpy.abs(numpy.load(tilewise.folder / "svd/US.npy") - u * s).max() <= 1e-6 * exact[0]
    done(*words, "--values-only")
    assert numpy.abs(numpy.load(tilewise.folder / "svd/s.npy") - exact).max() <= 1e-6 * exact[0]
    done(*words, "--energy", 0.99)
    squares = numpy.cumsum(exact**2) / (exact**2).sum()
    assert len(numpy.load(tilewise.folder / "svd/s.npy")) == 1 + (squares < 0.99).sum()


@pytest.mark.parametrize("method", ["fast", "serial"])
def test_a_wrong_number_is_found(tilewise: Tilewise, method: str) -> None:
    numpy.save(tilewise.folder / "A.npy", spectrum("random", (20, 15), 2, "complex128"))
    tilewise.environment["TILEWISE_FAULT"] = "element"
    one_message(tilewise("svd", "A.npy", "-o", "svd/", "-n", 2, "--verify", method), 3)


def test_what_is_refused(tilewise: Tilewise) -> None:
    matrix = spectrum("random", (20, 15), 2, "complex128")
    numpy.save(tilewise.folder / "A.npy", matrix)
    for words, advice in (
        (("--algorithm", "randomized", "--components", 3), "jacobi"),
        (("--power", 2), "omit"),
    ):
        text = one_message(tilewise("svd", "A.npy", "-o", "svd/", *words), 2)
        assert "local and jacobi take complex ones" in text and advice in text
    matrix[3, 4] = complex(0, numpy.inf)
    numpy.save(tilewise.folder / "A.npy", matrix)
    for words in (("--algorithm", "local"), ("-n", 2)):
        text = one_message(tilewise("svd", "A.npy", "-o", "svd/", *words), 2)
        assert "row 3, column 4 (from 0) is inf" in text
