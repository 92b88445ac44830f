"""`tilewise svd` of matrices on which decompositions fail: equal values, parallel columns, scales."""

from __future__ import annotations

import numpy
import pytest
import scipy.linalg
from conftest import Done, Tilewise
from svd_runs import Array, factors
from tilewise.operations.svd.plan import LOCAL_MAX

JOB = ("svd", "-o", "svd/", "--force")


def circulant() -> Array:
    distance = numpy.minimum(numpy.arange(600), 600 - numpy.arange(600))
    return scipy.linalg.circulant(numpy.exp(-(distance**2) / 20.0))


def kronecker() -> Array:
    return numpy.kron(numpy.eye(60), scipy.linalg.hilbert(10))


def repeated() -> Array:
    random = numpy.random.default_rng(0)
    left, right = (numpy.linalg.qr(random.standard_normal((600, 600)))[0] for _ in range(2))
    return left * numpy.repeat(10.0 ** -numpy.arange(12), 50) @ right


def laeuchli() -> Array:
    return numpy.vstack([numpy.ones((1, 16)), 1e-8 * numpy.eye(16)])


def bidiagonal(count: int) -> Array:
    diagonal = 2.0 ** -numpy.arange(count)
    return numpy.diag(diagonal) + numpy.diag(diagonal[:-1], 1)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("make", [circulant, kronecker, repeated])
def test_equal_singular_values_converge(tilewise: Tilewise, done: Done, make: object, ranks: int) -> None:
    assert callable(make)
    matrix = make()
    numpy.save(tilewise.folder / "A.npy", matrix)

    record = done("A.npy", "-n", ranks)

    result = record["result"]
    assert result["converged"] and result["sweeps"] < 12
    assert result["inner_solves"]["rotations"] == 0, "the fallback was needed"
    limit = 1e-13 * numpy.sqrt(600)
    u, s, vt = factors(tilewise.folder / "svd")
    assert numpy.linalg.norm(u.T @ u - numpy.eye(600)) <= limit
    assert numpy.linalg.norm(vt @ vt.T - numpy.eye(600)) <= limit
    assert numpy.linalg.norm(u * s @ vt - matrix) <= limit * numpy.linalg.norm(matrix)


@pytest.mark.parametrize("words", [("-n", 2, "--exchange", "overlap"), ("-n", 6)])
def test_sweeps_do_not_end_too_early(tilewise: Tilewise, done: Done, words: tuple[object, ...]) -> None:
    numpy.save(tilewise.folder / "A.npy", laeuchli())

    record = done("A.npy", *words, "--no-verify")

    assert record["result"]["converged"]
    u, s, vt = factors(tilewise.folder / "svd")
    assert numpy.abs(u.T @ u - numpy.eye(16)).max() <= 1e-13
    assert numpy.abs(u * s @ vt - laeuchli()).max() <= 1e-14
    assert numpy.abs(s[1:] - 1e-8).max() <= 1e-20


def test_rotations_are_orthogonal_all_together(tilewise: Tilewise, done: Done) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.random.default_rng(3).standard_normal((300, 300)))

    done("A.npy", "--inner", "rotations")

    u, _, _ = factors(tilewise.folder / "svd")
    assert numpy.linalg.norm(u.T @ u - numpy.eye(300)) <= 1e-13 * numpy.sqrt(300)


@pytest.mark.parametrize("transposed", [False, True])
def test_small_values_that_gesdd_would_lose_are_kept(
    tilewise: Tilewise, done: Done, transposed: bool
) -> None:
    count = 200
    assert count <= LOCAL_MAX
    matrix = bidiagonal(count).T if transposed else bidiagonal(count)
    numpy.save(tilewise.folder / "A.npy", matrix)
    _, expected, _ = scipy.linalg.svd(matrix, lapack_driver="gesvd")

    record = done("A.npy")

    assert record["variant"]["algorithm"] == "jacobi"
    assert "gesdd would lose" in record["result"]["fallback"]
    _, s, _ = factors(tilewise.folder / "svd")
    assert (numpy.abs(s - expected) <= 1e-13 * expected).all()


def test_local_is_taken_where_it_loses_nothing(tilewise: Tilewise, done: Done) -> None:
    random = numpy.random.default_rng(4)
    deficient = random.standard_normal((80, 5)) @ random.standard_normal((5, 60))
    uneven = random.standard_normal((3000, 2)) * 10.0 ** -random.uniform(0, 9, (3000, 1))
    for matrix in (deficient, uneven):
        numpy.save(tilewise.folder / "A.npy", matrix)
        assert done("A.npy")["variant"]["algorithm"] == "local"
    # What is asked for is done, whatever it loses.
    numpy.save(tilewise.folder / "A.npy", bidiagonal(40))
    assert done("A.npy", "--algorithm", "local")["variant"]["algorithm"] == "local"


@pytest.mark.parametrize("shape", [(120, 120), (400, 30), (30, 400)])
def test_local_rounds_float32_once(tilewise: Tilewise, done: Done, shape: tuple[int, int]) -> None:
    matrix = numpy.random.default_rng(5).standard_normal(shape).astype("float32")
    numpy.save(tilewise.folder / "A.npy", matrix)

    done("A.npy", "--algorithm", "local")

    u, s, vt = (each.astype("float64") for each in factors(tilewise.folder / "svd"))
    expected_u, expected_s, expected_vt = numpy.linalg.svd(matrix.astype("float64"), full_matrices=False)
    rounded = [each.astype("float32").astype("float64") for each in (expected_u, expected_s, expected_vt)]
    reachable = numpy.linalg.norm(rounded[0] * rounded[1] @ rounded[2] - matrix)
    assert numpy.linalg.norm(u * s @ vt - matrix) <= 1.5 * reachable
