"""`tilewise svd` of a few components, against numpy: how exact, what they leave, how many have a share."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from conftest import Done, Tilewise, one_message
from svd_runs import Array, assert_decomposed, factors, spectrum
from tilewise.operations.svd.options import ALGORITHMS as SVD
from tilewise.operations.svd.show import left_text

JOB = ("svd", "-o", "svd/", "--force")
SAMPLED = ("--algorithm", "randomized")


def with_values(shape: tuple[int, int], sigma: Array) -> Array:
    """A matrix that has these singular values."""
    random = numpy.random.default_rng(5)
    left, right = (numpy.linalg.qr(random.standard_normal((extent, len(sigma))))[0] for extent in shape)
    product: Array = (left * sigma) @ right.T
    return product


def degrees(one: Array, other: Array) -> float:
    """The largest angle between columns of the same number."""
    cosines = numpy.abs((one * other).sum(axis=0)).clip(0, 1)
    return float(numpy.degrees(numpy.arccos(cosines)).max())


def test_a_rank_is_said_as_far_as_it_is_known(tilewise: Tilewise) -> None:
    factor = numpy.random.default_rng(2).standard_normal((300, 40))
    numpy.save(tilewise.folder / "A.npy", factor[:, :3] @ factor[:70, :3].T)
    numpy.save(tilewise.folder / "B.npy", factor)
    for name, words, rank in (
        ("A.npy", SAMPLED, "rank 3"),
        ("A.npy", ("--algorithm", "local"), "rank 3"),
        ("B.npy", SAMPLED, "rank 5 or more"),
        ("B.npy", ("--algorithm", "local"), "rank 40"),
    ):
        said = tilewise("svd", name, "-o", "svd", "--components", 5, "--force", *words).stdout
        (line,) = [line for line in said.splitlines() if line.startswith("values")]
        assert line.endswith(f"; {rank}")


@pytest.mark.parametrize("words", [(), SAMPLED, (*SAMPLED, "-n", 2)])
def test_normal_numbers(tilewise: Tilewise, done: Done, words: tuple[object, ...]) -> None:
    """Their singular values hardly fall: plain power iterations were 7 % off, and u₁ 60 degrees."""
    matrix = numpy.random.default_rng(1).standard_normal((1200, 1000))
    numpy.save(tilewise.folder / "A.npy", matrix)
    record = done("A.npy", "--components", 10, *words)
    u, s, vt = factors(tilewise.folder / "svd")
    left, expected, right = numpy.linalg.svd(matrix, full_matrices=False)
    assert numpy.abs(s / expected[:10] - 1).max() <= 1e-9
    assert degrees(u, left[:, :10]) < 0.1 and degrees(vt.T, right[:10].T) < 0.1
    assert record["result"]["converged"]
    assert (record["verification"]["passed"], record["verification"]["share"]) == (True, 1)
    assert record["variant"]["algorithm"] == ("randomized" if words else "two_stage")
    tail = numpy.linalg.norm(expected[10:]) / numpy.linalg.norm(expected)
    assert record["result"]["error_estimate"] == pytest.approx(tail, rel=1e-12)


SLOW = 1 / numpy.arange(1.0, 61)
SPECTRA = {
    "slow": SLOW,
    "fast": 0.5 ** numpy.arange(60.0),
    "equal at the cut": numpy.repeat([3.0, 2.0, 1.0], 20),
    "in pairs": numpy.repeat(SLOW[:30], 2),
    "low rank and noise": numpy.r_[numpy.linspace(9, 3, 6), numpy.full(54, 1e-3)],
    "rank 4": numpy.r_[numpy.linspace(9, 3, 4), numpy.zeros(56)],
    "huge": SLOW * 1e200,
    "tiny": SLOW * 1e-250,
    "far apart": numpy.r_[1e9, 1e8, numpy.linspace(2, 1, 58)],
}


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("ranks", [1, 3])
def test_spectra(tilewise: Tilewise, done: Done, name: str, ranks: int) -> None:
    shape = (150, 60) if ranks == 1 else (60, 150)
    matrix = with_values(shape, SPECTRA[name])
    numpy.save(tilewise.folder / "A.npy", matrix if ranks == 1 else numpy.asfortranarray(matrix))
    count = 20 if name == "equal at the cut" else 7
    result = done("A.npy", *SAMPLED, "--components", count, "--oversample", 4, "-n", ranks)["result"]
    assert_decomposed(tilewise.folder / "svd", matrix, count, exact=False)
    u, s, vt = (each.astype(float) for each in factors(tilewise.folder / "svd"))
    exact = numpy.linalg.svd(matrix, compute_uv=False)
    rank = min(count, result["rank"])
    assert numpy.abs(s[:rank] / exact[:rank] - 1).max() <= max(1e-10, 1e-14 * exact[0] / exact[rank - 1])
    scaled = matrix / exact[0]
    residuals = numpy.maximum(
        numpy.linalg.norm(scaled.T @ u - vt.T * (s / exact[0]), axis=0),
        numpy.linalg.norm(scaled @ vt.T - u * (s / exact[0]), axis=0),
    )
    said = numpy.array(result["residuals"]) / exact[0]
    assert (residuals <= 1.01 * said + 150 * 2.2e-16).all() and (said <= 1e-6 * s / exact[0] + 1e-13).all()
    assert result["sigma_error"] == pytest.approx((said * exact[0] / s)[:rank].max(), rel=1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(300, 200), (200, 300)])
def test_float32(tilewise: Tilewise, done: Done, order: Any, shape: tuple[int, int]) -> None:
    matrix = numpy.array(spectrum("random", shape, seed=3), "float32", order=order)
    numpy.save(tilewise.folder / "A.npy", matrix)
    result = done("A.npy", *SAMPLED, "--components", 8, "-n", 2)["result"]
    u, s, _ = factors(tilewise.folder / "svd")
    left, exact, _ = numpy.linalg.svd(matrix.astype(float), full_matrices=False)
    assert numpy.abs(s / exact[:8] - 1).max() <= 1e-6 and degrees(u, left[:, :8]) < 1
    assert result["tolerance"] == pytest.approx(1e-4) and result["sigma_error"] <= 1e-4
    tail = numpy.linalg.norm(exact[8:]) / numpy.linalg.norm(exact)
    assert abs(result["error_estimate"] - tail) <= result["error_rounding"] <= 1e-4 * tail


def test_one_row_and_all_there_are(tilewise: Tilewise, done: Done) -> None:
    for shape, count in (((1, 50), 1), ((50, 1), 1), ((30, 12), 12), ((12, 30), 11)):
        matrix = spectrum("random", shape, seed=1)
        numpy.save(tilewise.folder / "A.npy", matrix)
        result = done("A.npy", *SAMPLED, "--components", count, "-n", 2)["result"]
        assert_decomposed(tilewise.folder / "svd", matrix, count)
        assert result["converged"] and result["reads"] <= 4


@pytest.mark.parametrize("algorithm", ["randomized", "jacobi"])
@pytest.mark.parametrize(("shape", "ranks"), [((1, 1), 2), ((3, 3), 4), ((2, 5), 7), ((6, 2), 7)])
def test_more_ranks_than_rows_and_columns(
    tilewise: Tilewise, done: Done, shape: tuple[int, int], ranks: int, algorithm: str
) -> None:
    matrix = spectrum("random", shape, seed=2)
    numpy.save(tilewise.folder / "A.npy", matrix)
    for words in (("--components", 1), ("--energy", 1), ("--energy", 0.5, "--values-only")):
        record = done("A.npy", "--algorithm", algorithm, *words, "-n", ranks)
        s = numpy.load(tilewise.folder / "svd" / "s.npy")
        expected = numpy.linalg.svd(matrix, compute_uv=False)[: len(s)]
        assert numpy.abs(s - expected).max() <= 1e-12
        assert record["result"]["components"] == len(s)


def test_what_falls_fast_is_read_no_more_often_than_before(tilewise: Tilewise, done: Done) -> None:
    noise = 1e-3 * numpy.random.default_rng(1).standard_normal((400, 300))
    for sigma in (0.5 ** numpy.arange(300.0), numpy.r_[numpy.linspace(10, 5, 10), numpy.zeros(290)]):
        numpy.save(tilewise.folder / "A.npy", with_values((400, 300), sigma) + noise * (sigma[-1] == 0))
        assert done("A.npy", *SAMPLED, "--components", 10)["result"]["reads"] <= 5  # the proof's included


def test_readings_that_run_out(tilewise: Tilewise, done: Done) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.diag(numpy.linspace(1, 0.99, 1000)))
    before = tilewise.files()
    words = ("svd", "A.npy", "-o", "svd", *SAMPLED, "--components", 1, "--oversample", 0)
    message = one_message(tilewise(*words, "--tolerance", 1e-14), 3)
    assert "after 200 readings singular values may be off by" in message and "--no-verify" in message
    assert tilewise.files() == before
    kept = tilewise(*words, "--power", 3)
    assert kept.returncode == 0 and "singular values may have a relative error of up to" in kept.stderr
    record = done("A.npy", *SAMPLED, "--components", 1, "--power", 3, "--oversample", 0)
    assert (record["result"]["converged"], record["verification"]["share"]) == (False, 0)
    assert record["result"]["reads"] == 6


@pytest.mark.parametrize("algorithm", SVD)
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_share_of_the_squares(tilewise: Tilewise, done: Done, algorithm: str, ranks: int) -> None:
    if not SVD[algorithm].takes(ranks):
        return
    for shape, share in (((90, 60), 0.9), ((60, 90), 1), ((90, 60), 0.2)):
        matrix = with_values(shape, SLOW)
        numpy.save(tilewise.folder / "A.npy", matrix)
        record = done("A.npy", "--energy", share, "--algorithm", algorithm, "-n", ranks, "--scaled")
        parts = numpy.cumsum(SLOW**2) / (SLOW**2).sum()
        count = int(numpy.argmax(parts >= share - 1e-12)) + 1
        assert_decomposed(tilewise.folder / "svd", matrix, count)
        u, s, _ = factors(tilewise.folder / "svd")
        assert numpy.allclose(numpy.load(tilewise.folder / "svd/US.npy"), u * s, atol=1e-14)
        assert record["result"]["components"] == count and record["verification"]["passed"]
        shapes = [each["shape"] for each in record["outputs"]]
        assert shapes == [[shape[0], count], [count], [count, shape[1]], [shape[0], count]]
        if count < 60:
            left = numpy.sqrt(1 - parts[count - 1])
            assert record["result"]["error_estimate"] == pytest.approx(left, rel=1e-9)


def test_a_share_of_many(tilewise: Tilewise, done: Done) -> None:
    """More than are guessed at first, of float32, on files that begin at a page; values alone."""
    matrix = spectrum("random", (1500, 300), seed=3).astype("float32")
    numpy.save(tilewise.folder / "A.npy", matrix)
    exact = numpy.linalg.svd(matrix.astype(float), compute_uv=False)
    count = int(numpy.argmax(numpy.cumsum(exact**2) >= 0.6 * (exact**2).sum())) + 1
    assert count > 100
    done("A.npy", "--energy", 0.6, *SAMPLED)
    _, s, _ = factors(tilewise.folder / "svd")
    assert abs(len(s) - count) <= 1 and numpy.abs(s / exact[: len(s)] - 1).max() <= 1e-5
    record = done("A.npy", "--energy", 0.6, "--values-only")
    assert record["variant"]["algorithm"] == "two_stage" and record["result"]["components"] == count


@pytest.mark.parametrize(
    ("left", "rounding", "text"),
    [
        (0.284712345, 1e-12, "0.284712"),
        (0.284712345, 1e-3, "0.28"),
        (0.284712345, 0.03, "about 0.3"),
        (3.1e-9, 1e-9, "about 3e-09"),
        (1e-7, 1e-7, "at most 1e-07"),
        (0.0, 0.0, "nothing"),
    ],
)
def test_only_digits_that_hold_are_shown(left: float, rounding: float, text: str) -> None:
    assert left_text({"error_estimate": left, "error_rounding": rounding}) == text
