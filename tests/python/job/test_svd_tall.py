"""`tilewise svd --algorithm tall` against numpy: panels, ranks, lanes, conditions; when the plan takes it."""

from __future__ import annotations

import re

import numpy
import pytest
from conftest import Done, InProcess, Tilewise, one_message
from svd_runs import Array, assert_decomposed, factors, spectrum

JOB = ("svd", "-o", "svd/", "--force")
TALL = ("--algorithm", "tall")


def with_values(shape: tuple[int, int], sigma: Array) -> Array:
    """A matrix that has these singular values."""
    random = numpy.random.default_rng(5)
    left, right = (numpy.linalg.qr(random.standard_normal((extent, len(sigma))))[0] for extent in shape)
    product: Array = (left * sigma) @ right.T
    return product


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("wide", [False, True])
def test_several_panels(tilewise: Tilewise, done: Done, ranks: int, order: str, wide: bool) -> None:
    """Of 4 MiB each; the last one has fewer rows than columns where there is one rank."""
    matrix = spectrum("random", (2 * 22795 + 30, 23), seed=ranks)
    matrix = numpy.array(matrix.T if wide else matrix, order="F" if order == "F" else "C")
    numpy.save(tilewise.folder / "A.npy", matrix)
    record = done("A.npy", *TALL, "-n", ranks, "-t", 1 if ranks < 3 else 2)
    assert record["verification"]["passed"] and record["result"]["reads"] == 3
    assert_decomposed(tilewise.folder / "svd", matrix)


CONDITIONS = {
    "ill-conditioned": numpy.logspace(0, -12, 17),
    "deficient": numpy.r_[numpy.linspace(9, 3, 8), numpy.zeros(9)],
    "equal": numpy.ones(17),
    "huge": numpy.linspace(2, 1, 17) * 1e300,
    "tiny": numpy.linspace(2, 1, 17) * 1e-290,
}


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("ranks", [1, 2])
def test_conditions(tilewise: Tilewise, done: Done, name: str, ranks: int) -> None:
    matrix = with_values((31007, 17), CONDITIONS[name])
    if name == "deficient":
        matrix[:, 5] = matrix[:, 2]
        matrix[:, 11] = 0
    numpy.save(tilewise.folder / "A.npy", matrix)
    done("A.npy", *TALL, "-n", ranks, "-t", 2)
    assert_decomposed(tilewise.folder / "svd", matrix)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (18, 17), (17, 18), (40, 3), (9, 9)])
@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_small_shapes(tilewise: Tilewise, done: Done, shape: tuple[int, int], ranks: int) -> None:
    for kind in ("random", "zero", "deficient"):
        matrix = spectrum(kind, shape, seed=2)
        numpy.save(tilewise.folder / "A.npy", matrix)
        done("A.npy", *TALL, "-n", ranks)
        assert_decomposed(tilewise.folder / "svd", matrix)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128", "int16"])
def test_types(tilewise: Tilewise, done: Done, dtype: str, wide: bool) -> None:
    matrix = spectrum("random", (26001, 12), seed=3, dtype=dtype if dtype[0] == "c" else "float64")
    matrix = (100 * (matrix.T if wide else matrix)).astype(dtype)
    numpy.save(tilewise.folder / "A.npy", matrix)
    for ranks in (1, 2):
        done("A.npy", *TALL, "-n", ranks, "-t", 1)
        assert_decomposed(tilewise.folder / "svd", matrix)


def test_float32_whose_values_are_far_apart_is_turned_by_reflections(tilewise: Tilewise, done: Done) -> None:
    """And by values where they are not: both are orthonormal to the files' rounding."""
    said = []
    for sigma in (numpy.logspace(0, -3, 20), numpy.logspace(0, -7, 20)):
        matrix = with_values((25003, 20), sigma).astype("float32")
        numpy.save(tilewise.folder / "A.npy", matrix)
        said.append(done("A.npy", *TALL, "-n", 1)["result"]["start"])
        assert_decomposed(tilewise.folder / "svd", matrix)
    assert "A·V/s" in said[0] and "reflections" in said[1]


@pytest.mark.parametrize("wide", [False, True])
def test_fewer_components_their_share_values_alone_and_the_scaled_factor(
    tilewise: Tilewise, done: Done, wide: bool
) -> None:
    matrix = with_values((25003, 20), 0.5 ** numpy.arange(20.0))
    matrix = matrix.T if wide else matrix
    numpy.save(tilewise.folder / "A.npy", matrix)
    folder = tilewise.folder / "svd"
    done("A.npy", *TALL, "-n", 2, "--components", 6, "--scaled")
    assert_decomposed(folder, matrix, 6)
    u, s, _ = factors(folder)
    assert numpy.abs(numpy.load(folder / "US.npy") - u * s).max() <= 1e-15
    result = done("A.npy", *TALL, "-n", 2, "--energy", 0.999)["result"]
    assert result["components"] == 5 and result["error_estimate"] == pytest.approx(2.0**-5, rel=1e-6)
    assert_decomposed(folder, matrix, 5)
    done("A.npy", *TALL, "-n", 2, "--values-only")
    assert numpy.abs(numpy.load(folder / "s.npy") - 0.5 ** numpy.arange(20.0)).max() <= 1e-15
    assert not (folder / "U.npy").exists()


@pytest.mark.parametrize("scale", [1e-9, 1e-5])
def test_columns_of_any_scale_keep_their_small_values(tilewise: Tilewise, done: Done, scale: float) -> None:
    matrix = numpy.random.default_rng(1).standard_normal((30001, 8))
    matrix = numpy.linalg.qr(matrix)[0] * scale ** numpy.arange(8.0)
    numpy.save(tilewise.folder / "A.npy", matrix)
    done("A.npy", *TALL, "-n", 1)
    assert numpy.abs(factors(tilewise.folder / "svd")[1] / scale ** numpy.arange(8.0) - 1).max() <= 1e-11


def test_a_number_that_is_none_is_named(tilewise: Tilewise, inside: InProcess) -> None:
    matrix = spectrum("random", (26001, 12), seed=3)
    matrix[25000, 7] = numpy.inf
    numpy.save(tilewise.folder / "A.npy", matrix)
    message = one_message(inside("svd", "A.npy", "-o", "svd", *TALL, "-n", 2), 2)
    assert "row 25000, column 7 (from 0) is inf" in message
    assert not (tilewise.folder / "svd").exists()


def test_it_is_taken_where_nothing_else_fits_and_square_ones_are_told_how_much_would(
    tilewise: Tilewise, done: Done, inside: InProcess
) -> None:
    matrix = numpy.random.default_rng(1).standard_normal((100_000, 60)).astype("float32")
    numpy.save(tilewise.folder / "A.npy", matrix)
    assert done("A.npy", "-n", 1)["variant"]["algorithm"] == "local"
    record = done("A.npy", "-n", 1, "--memory", "64MiB")
    assert record["variant"]["algorithm"] == "tall" and record["needed_bytes"] <= 64 << 20
    assert record["peak_rss_bytes"]["node_sum"] <= 64 << 20
    assert_decomposed(tilewise.folder / "svd", matrix)

    numpy.save(tilewise.folder / "S.npy", numpy.random.default_rng(1).standard_normal((900, 900)))
    words = ("svd", "S.npy", "-o", "svd", "--force", "-n", 1, "-t", 1)
    message = one_message(inside(*words, "--memory", "60MiB"), 2)
    found = re.search(r"--memory (\d+)MiB", message)
    assert found is not None, message
    least = int(found[1])
    assert inside(*words, "--memory", f"{least}MiB").returncode == 0
    assert f"--memory {least}MiB" in one_message(inside(*words, "--memory", f"{least - 1}MiB"), 2)
