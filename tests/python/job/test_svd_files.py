"""`tilewise svd` and its inputs: formats, orders, types, pictures, and numbers that are none."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest
from conftest import Done, InProcess, Tilewise, one_message
from PIL import Image
from svd_runs import assert_decomposed, factors, spectrum
from tilewise.operations.svd.options import ALGORITHMS as SVD
from tilewise.planning.names import ONE_FILE

WITHOUT_CHILD = True
JOB = ("svd", "-o", "svd/", "--force")


def ways(algorithm: str) -> tuple[object, ...]:
    """The words for an algorithm; on two ranks where it takes two."""
    ranks = 1 if algorithm in ("local", "serial") else 2
    components = ("--components", 9, "--oversample", 9) if algorithm == "randomized" else ()
    return ("--algorithm", algorithm, "-n", ranks, *components)


@pytest.mark.parametrize("name", ["A.csv", "F.npy", "big.npy", "A.h5:/A", "A.tiles", "A.raw:23x18:float64:F"])
@pytest.mark.parametrize("wide", [False, True])
def test_formats_and_orders(tilewise: Tilewise, done: Done, inside: InProcess, name: str, wide: bool) -> None:
    matrix = spectrum("random", (23, 18), seed=1)
    if wide:
        matrix, name = matrix.T.copy(), name.replace("23x18", "18x23")
    if name == "A.csv":
        numpy.savetxt(tilewise.folder / name, matrix, delimiter=",", fmt="%.17g")
    elif name.endswith(".npy"):
        numpy.save(
            tilewise.folder / name, numpy.asfortranarray(matrix) if name[0] == "F" else matrix.astype(">f8")
        )
    else:
        numpy.save(tilewise.folder / "A.npy", matrix)
        assert inside("convert", "A.npy", "-o", name, "-n", 2).returncode == 0
    for algorithm in SVD:
        done(name, *ways(algorithm))
        # With as many vectors as there are columns, randomized leaves nothing to chance either.
        assert_decomposed(tilewise.folder / "svd", matrix, 9 if algorithm == "randomized" else None)


@pytest.mark.parametrize("algorithm", SVD)
@pytest.mark.parametrize("dtype", ["float32", "int8", "int32", "uint8", "uint64"])
def test_types(tilewise: Tilewise, done: Done, dtype: str, algorithm: str) -> None:
    matrix = (100 * numpy.random.default_rng(1).random((25, 18))).astype(dtype)
    numpy.save(tilewise.folder / "A.npy", matrix)
    record = done("A.npy", *ways(algorithm))
    assert {each["dtype"] for each in record["outputs"]} == {"float32" if dtype == "float32" else "float64"}
    assert_decomposed(tilewise.folder / "svd", matrix, 9 if algorithm == "randomized" else None)


@pytest.mark.parametrize("io", ONE_FILE)
def test_ways_of_reading(tilewise: Tilewise, done: Done, io: str) -> None:
    matrix = spectrum("random", (40, 18), seed=1)
    numpy.save(tilewise.folder / "A.npy", matrix)
    for words in (("--algorithm", "jacobi"), ("--components", 3, "--power", 9)):
        record = done("A.npy", "-n", 2, "--io", f"{io}:positioned", *words)
        assert record["variant"]["io"] == f"{io}:positioned"
        _, s, _ = factors(tilewise.folder / "svd")
        assert numpy.abs(s - numpy.linalg.svd(matrix, compute_uv=False)[: len(s)]).max() <= 1e-6


def test_a_matrix_without_a_file(tilewise: Tilewise, done: Done) -> None:
    runs = []
    for ranks in (1, 3):
        done("random:40x25:float64:7", "-n", ranks, "--algorithm", "jacobi")
        runs.append(factors(tilewise.folder / "svd"))
    for one, other in zip(*runs, strict=True):
        assert numpy.abs(one - other).max() <= 1e-11
    assert tilewise("generate", "-o", "A.npy", "--shape", "40x25", "--seed", 7).returncode == 0
    assert_decomposed(tilewise.folder / "svd", numpy.load(tilewise.folder / "A.npy").astype("float64"))


def test_a_picture_and_back(tilewise: Tilewise) -> None:
    picture = Path(__file__).resolve().parents[3] / "docs/pictures/before.jpg"
    result = tilewise("svd", picture, "-o", "svd/", "--components", 40, "--scaled")
    assert result.returncode == 0 and "grey value" in result.stderr
    back = tilewise("multiply", "svd/US.npy", "svd/Vt.npy", "-o", "back.npy")
    assert back.returncode == 0, back.stderr
    assert tilewise("convert", "back.npy", "-o", "back.png", "--dtype", "uint8").returncode == 0
    original = numpy.asarray(Image.open(picture).convert("L"), "float64")
    found = numpy.asarray(Image.open(tilewise.folder / "back.png"), "float64")
    u, s, vt = numpy.linalg.svd(original)
    best = numpy.linalg.norm(original - (u[:, :40] * s[:40]) @ vt[:40])
    assert numpy.linalg.norm(original - found) <= 1.05 * best + numpy.sqrt(original.size)


@pytest.mark.parametrize("algorithm", SVD)
@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("shape", [(30, 30), (50, 20), (20, 50)])
def test_numbers_that_are_none(
    tilewise: Tilewise, inside: InProcess, algorithm: str, ranks: int, shape: tuple[int, int]
) -> None:
    if not SVD[algorithm].takes(ranks):
        return
    matrix = spectrum("random", shape)
    matrix[17, 3], matrix[13, 18], matrix[13, 19] = numpy.nan, numpy.inf, numpy.nan
    numpy.save(tilewise.folder / "A.npy", numpy.asfortranarray(matrix) if ranks == 3 else matrix)
    before = tilewise.files()
    words = ("--algorithm", algorithm, "-n", ranks)
    components = ("--components", 3) if algorithm == "randomized" else ()
    message = one_message(inside("svd", "A.npy", "-o", "svd", *words, *components), 2)
    assert "A.npy: row 13, column 18 (from 0) is inf; a decomposition needs finite numbers" in message
    assert tilewise.files() == before


def test_memory_is_kept(tilewise: Tilewise, inside: InProcess, done: Done) -> None:
    """A matrix that does not fit below the cap goes through it in panels."""
    words = ("--shape", "60000x200", "--dtype", "float64", "--kind", "normal")
    assert inside("generate", "-o", "A.npy", *words, "-q").returncode == 0
    capped = ("A.npy", "--components", 5, "--memory", "90MiB", "-n", 1)
    callers_own = numpy.ones(20 << 20)  # a big caller's memory is not the job's
    record = done(*capped)
    assert callers_own.nbytes > 90 << 20
    assert record["variant"]["algorithm"] == "randomized"
    assert record["peak_rss_bytes"]["node_sum"] <= record["needed_bytes"] <= 90 << 20
    message = one_message(inside("svd", *capped, "-o", "svd/", "--force", "--algorithm", "jacobi"), 2)
    assert "--memory allows 90.0 MiB" in message and "--algorithm randomized" in message
