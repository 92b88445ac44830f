"""`tilewise svd` against numpy: shapes, spectra, algorithms, exchanges, ranks, order and sign."""

from __future__ import annotations

import numpy
import pytest
from conftest import Done, Tilewise, one_message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from svd_runs import KINDS, assert_decomposed, factors, plain_values, spectrum
from tilewise.operations.svd.options import ALGORITHMS as SVD

JOB = ("svd", "-o", "svd/", "--force")
EXCHANGES = SVD["jacobi"].exchanges


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 40),
    kind=st.sampled_from(KINDS),
    way=st.sampled_from([("jacobi", 1), ("jacobi", 2), ("local", 1), ("two_stage", 1), ("two_stage", 2)]),
    exponent=st.sampled_from([0, 0, -150, 150]),
    seed=st.integers(0, 99),
)
def test_any_shape_and_spectrum(
    tilewise: Tilewise,
    done: Done,
    rows: int,
    columns: int,
    kind: str,
    way: tuple[str, int],
    exponent: int,
    seed: int,
) -> None:
    matrix = spectrum(kind, (rows, columns), seed) * 10.0**exponent
    numpy.save(tilewise.folder / "A.npy", matrix)

    record = done("A.npy", "--algorithm", way[0], "-n", way[1])

    assert_decomposed(tilewise.folder / "svd", matrix)
    assert record["verification"]["passed"] and record["result"]["components"] == min(rows, columns)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_exchanges_and_ranks_agree(tilewise: Tilewise, done: Done, ranks: int) -> None:
    matrix = spectrum("random", (45, 37), seed=ranks)
    numpy.save(tilewise.folder / "A.npy", matrix)
    done("A.npy", "-n", 1, "--algorithm", "local")
    expected = factors(tilewise.folder / "svd")
    results = []

    for exchange in EXCHANGES if ranks > 1 else ("blocking",):
        words = ("--exchange", exchange, "--block-columns", 3, "-t", 1 + (exchange == "overlap"))
        record = done("A.npy", "-n", ranks, *words)
        assert record["variant"]["exchange"] == ("none" if ranks == 1 else exchange)
        assert record["variant"]["blocks"] == 14 and record["result"]["block_columns"] == [2, 3]
        assert (record["result"]["sweep_messages"] > 0) == (ranks > 1)
        assert_decomposed(tilewise.folder / "svd", matrix)
        results.append(factors(tilewise.folder / "svd"))

    for one in results:  # the same order and the same signs, whoever did it
        for mine, reference in zip(one, expected, strict=True):
            assert numpy.abs(mine - reference).max() <= 1e-11
        assert all(map(numpy.array_equal, one, results[0]))  # and how blocks travel changes no bit


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (3, 50), (50, 3), (9, 9), (100, 31)])
@pytest.mark.parametrize("ranks", [2, 4])
def test_more_ranks_than_columns_tall_and_wide(
    tilewise: Tilewise, done: Done, shape: tuple[int, int], ranks: int
) -> None:
    matrix = spectrum("random", shape, seed=5)
    numpy.save(tilewise.folder / "A.npy", matrix)
    done("A.npy", "-n", ranks)
    assert_decomposed(tilewise.folder / "svd", matrix)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(40, 40), (90, 24), (24, 90)])
def test_spectra_on_ranks(tilewise: Tilewise, done: Done, kind: str, shape: tuple[int, int]) -> None:
    matrix = spectrum(kind, shape, seed=11)
    numpy.save(tilewise.folder / "A.npy", matrix)
    record = done("A.npy", "-n", 3)
    assert_decomposed(tilewise.folder / "svd", matrix)
    expected = {"zero": 0, "deficient": 8 if shape != (40, 40) else 13}
    if kind in expected:
        assert record["result"]["rank"] == expected[kind]


@pytest.mark.parametrize(
    "words",
    [
        ("--block-columns", 1),
        ("--block-columns", 5, "--remainder", "last"),
        ("--inner", "rotations"),
        ("--kernel", "plain", "--remainder", "last"),
        ("--start", "qr"),
        ("--start", "eigen"),
        ("--start", "none"),
        ("--start", "none", "--inner", "rotations", "--off-squares", 1e-24),
        ("--tolerance", 1e-14),
    ],
)
@pytest.mark.parametrize("ranks", [1, 3])
def test_ways_to_sweep(tilewise: Tilewise, done: Done, words: tuple[object, ...], ranks: int) -> None:
    matrix = spectrum("random", (41, 37), seed=3)
    numpy.save(tilewise.folder / "A.npy", matrix)
    record = done("A.npy", "--algorithm", "jacobi", "-n", ranks, *words)
    assert_decomposed(tilewise.folder / "svd", matrix)
    assert record["result"]["converged"] and len(record["result"]["off_norm"]) == record["result"]["sweeps"]
    if "last" in words:
        assert record["result"]["block_columns"][1] > record["result"]["block_columns"][0]
    assert len(record["result"]["off_squares"]) == record["result"]["sweeps"]
    turned = "none" if "none" in words else "qr" if {"qr", "rotations", "plain"} & set(words) else "eigen"
    assert record["result"]["start_used"] == turned
    assert ("eigenvectors" in record["result"]["start"]) == (turned == "eigen")
    assert not record["result"]["fallback"]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("shape", "ranks"), [((24, 24), 1), ((24, 24), 2), ((30, 20), 1), ((50, 20), 3)])
def test_small_values_of_graded_columns(
    tilewise: Tilewise, done: Done, shape: tuple[int, int], ranks: int, order: str
) -> None:
    """Each to nearly all its digits, over twenty orders of magnitude, where gesdd has none left."""
    matrix = spectrum("graded", shape, seed=1)
    numpy.save(tilewise.folder / "A.npy", numpy.asfortranarray(matrix) if order == "F" else matrix)
    expected = plain_values(matrix)
    record = done("A.npy", "--algorithm", "jacobi", "-n", ranks)
    values = numpy.load(tilewise.folder / "svd/s.npy")
    assert (numpy.abs(values - expected) / expected).max() <= 1e-12
    assert record["result"]["fallback"] and record["result"]["start_used"] == "qr"
    gesdd = numpy.linalg.svd(matrix, compute_uv=False)
    assert (numpy.abs(gesdd - expected) / expected).max() > 1e-3


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("shape", "ranks"), [((24, 24), 1), ((24, 24), 2), ((20, 26), 2)])
def test_small_values_of_graded_rows_and_columns(
    tilewise: Tilewise, done: Done, shape: tuple[int, int], ranks: int, order: str
) -> None:
    """The same where rows have any scale too, and where what is swept is the transpose of what is graded."""
    rows = 10.0 ** (-6 * numpy.random.default_rng(3).permutation(shape[0]) / shape[0])
    matrix = spectrum("graded", shape, seed=1) * rows[:, numpy.newaxis]
    numpy.save(tilewise.folder / "A.npy", numpy.asfortranarray(matrix) if order == "F" else matrix)
    expected = plain_values(matrix if shape[0] >= shape[1] else matrix.T)
    done("A.npy", "--algorithm", "jacobi", "-n", ranks)
    values = numpy.load(tilewise.folder / "svd/s.npy")
    assert (numpy.abs(values - expected) / expected).max() <= 1e-12


@pytest.mark.parametrize("algorithm", SVD)
@pytest.mark.parametrize(("shape", "ranks"), [((60, 33), 1), ((33, 60), 1), ((60, 33), 3), ((33, 60), 2)])
def test_the_largest_few(
    tilewise: Tilewise, done: Done, algorithm: str, shape: tuple[int, int], ranks: int
) -> None:
    if not SVD[algorithm].takes(ranks):
        return
    matrix = spectrum("random", shape, seed=2) @ numpy.diag(0.5 ** numpy.arange(shape[1]))
    numpy.save(tilewise.folder / "A.npy", matrix)
    record = done("A.npy", "--algorithm", algorithm, "-n", ranks, "--components", 6, "--scaled")
    assert_decomposed(tilewise.folder / "svd", matrix, 6, exact=algorithm != "randomized")
    u, s, _ = factors(tilewise.folder / "svd")
    exact = numpy.linalg.svd(matrix, compute_uv=False)
    assert numpy.abs(s - exact[:6]).max() <= 1e-9 * exact[0]
    assert numpy.abs(numpy.load(tilewise.folder / "svd/US.npy") - u * s).max() <= 1e-15 * exact[0]
    left = record["result"]["error_estimate"]
    if algorithm == "randomized":
        tail = numpy.linalg.norm(exact[6:]) / numpy.linalg.norm(exact)
        assert tail / 3 <= left <= 3 * tail


def test_randomized_reads_as_often_as_it_says(tilewise: Tilewise, done: Done) -> None:
    matrix = spectrum("random", (300, 60), seed=2)
    numpy.save(tilewise.folder / "A.npy", matrix)
    for power in (0, 1, 3):
        words = ("--components", 5, "--power", power, "--oversample", 7, "--seed", 3)
        record = done("A.npy", "-n", 2, *words, "--no-verify")
        assert record["variant"]["algorithm"] == "randomized"
        assert record["result"]["reads"] == power + 2
        assert record["bytes"]["useful"] == record["result"]["reads"] * matrix.nbytes
    runs = []
    for ranks in (1, 3):
        done("A.npy", "-n", ranks, "--components", 5, "--seed", 3)
        runs.append(factors(tilewise.folder / "svd"))
    for one, other in zip(*runs, strict=True):
        assert numpy.abs(one - other).max() <= 1e-10


@pytest.mark.parametrize("algorithm", SVD)
@pytest.mark.parametrize("ranks", [1, 2])
def test_values_only(tilewise: Tilewise, done: Done, algorithm: str, ranks: int) -> None:
    if not SVD[algorithm].takes(ranks):
        return
    matrix = spectrum("random", (50, 20), seed=4) @ numpy.diag(0.5 ** numpy.arange(20))
    numpy.save(tilewise.folder / "A.npy", matrix)
    words = ("--components", 5) if algorithm == "randomized" else ()
    record = done("A.npy", "--values-only", "--algorithm", algorithm, "-n", ranks, *words)
    values = numpy.load(tilewise.folder / "svd/s.npy")
    expected = numpy.linalg.svd(matrix, compute_uv=False)[: len(values)]
    assert numpy.abs(values - expected).max() <= 1e-9 * expected[0]
    assert [each["shape"] for each in record["outputs"]] == [[len(values)]]
    assert not (tilewise.folder / "svd/U.npy").exists()


def test_repeats(tilewise: Tilewise, done: Done) -> None:
    matrix = spectrum("random", (40, 30), seed=4)
    numpy.save(tilewise.folder / "A.npy", matrix)
    for algorithm, ranks in (("local", 1), ("jacobi", 1), ("jacobi", 2)):
        record = done("A.npy", "--algorithm", algorithm, "-n", ranks, "--repeat", 3, "--warmup", 1)
        assert len(record["samples"]) == 3
        assert_decomposed(tilewise.folder / "svd", matrix)


def test_what_is_said(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "A.npy", spectrum("random", (40, 30), seed=4))
    result = tilewise("svd", "A.npy", "-o", "svd", "-n", 2)
    assert result.returncode == 0
    for words in (
        "30, from ",
        "rank 30",
        "jacobi: ",
        "off ",
        "4 blocks of 7 to 8 columns",
        "a sweep",
        "residual ",
        "U orthogonal to ",
        "V orthogonal to ",
        "svd/ (U.npy, s.npy, Vt.npy)",
    ):
        assert words in result.stdout, words
    few = tilewise("svd", "A.npy", "-o", "svd", "--force", "--components", 3, "--power", 1)
    for words in (
        "3, from ",
        "randomized: 3 readings of the file and one to verify",
        "these components leave 0.",
    ):
        assert words in few.stdout, words
    assert "local: LAPACK's gesdd" in tilewise("svd", "A.npy", "-o", "svd", "--force").stdout
    values = tilewise("svd", "A.npy", "-o", "svd", "--force", "--values-only").stdout
    assert "sums of squares" in values and "no vectors to check" in values and "svd/ (s.npy)" in values
    off = tilewise("svd", "A.npy", "-o", "svd", "--force", "--no-verify")
    assert "not verified" in off.stdout and "residual" not in off.stdout.replace("neither residual", "")


def test_a_loose_tolerance_is_named_where_the_proof_fails(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "A.npy", spectrum("random", (40, 40), seed=4))
    words = ("--start", "qr", "--inner", "rotations", "--tolerance", 0.5)
    message = one_message(tilewise("svd", "A.npy", "-o", "svd", "-n", 1, *words), 3)
    assert "failed its" in message and "no --tolerance: 0.5 leaves" in message


@pytest.mark.parametrize("ranks", [1, 2])
def test_sweeps_that_run_out(tilewise: Tilewise, ranks: int) -> None:
    numpy.save(tilewise.folder / "A.npy", spectrum("random", (40, 40), seed=4))
    before = tilewise.files()
    words = ("svd", "A.npy", "-o", "svd", "-n", ranks, "--max-sweeps", 1, "--inner", "rotations")
    message = one_message(tilewise(*words), 3)
    assert "not orthogonal after 1 sweep: off is " in message and "--max-sweeps 30" in message
    assert tilewise.files() == before
    kept = tilewise(*words, "--no-verify")
    assert kept.returncode == 0 and "warning" in kept.stderr and "sweep" in kept.stderr
    assert "NOT converged" in kept.stdout
    assert numpy.load(tilewise.folder / "svd/U.npy").shape == (40, 40)
