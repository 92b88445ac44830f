"""Products that do not fit in memory: a tile of C stays, A and B stream past it."""

from __future__ import annotations

import re
from typing import Any

import h5py
import numpy
import pytest
from conftest import InProcess, Tilewise, one_message
from memory import MemoryWatch
from numpy.testing import assert_allclose, assert_array_equal
from oracle import matrix, record_of
from tilewise.operations.multiply.plan import Stage, best, even, grid_of

WITHOUT_CHILD = True
M, K, N = 2100, 1900, 2300  # 32, 35 and 39 MB


@pytest.fixture
def operands(tilewise: Tilewise) -> tuple[Any, Any]:
    a, b = matrix((M, K), "float64", 1), matrix((K, N), "float64", 2)
    numpy.save(tilewise.folder / "A.npy", a)
    numpy.save(tilewise.folder / "B.npy", b)
    return a, b


@pytest.mark.parametrize("way", ["positioned", "uncached:positioned"])
@pytest.mark.parametrize(("ranks", "cap"), [(1, "64MiB"), (2, "104MiB"), (3, "150MiB")])
def test_the_cap_is_kept(
    tilewise: Tilewise, inside: InProcess, operands: tuple[Any, Any], ranks: int, cap: str, way: str
) -> None:
    words: list[object] = ["multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", ranks, "--memory", cap]
    words += ["--io", way]
    with MemoryWatch() as watch:
        record = record_of(inside(*words, "-t", 1, "--verify", "fast", "--json", "-"))
    m, n, k = record["result"]["stage"]
    assert 0 < m < M and 0 < n < N and 0 < k <= K
    assert record["verification"]["passed"]
    assert any("of C stays in memory" in reason for reason in record["reasons"])
    assert watch.most <= int(cap.removesuffix("MiB")) << 20
    a, b = operands
    assert_allclose(numpy.load(tilewise.folder / "C.npy"), a @ b, rtol=0, atol=1e-10 * K)


def test_bytes_read_are_those_of_the_tiles(
    tilewise: Tilewise, inside: InProcess, operands: tuple[Any, Any]
) -> None:
    words = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "-t", 1, "--memory", "64MiB", "--verify", "off")
    record = record_of(inside(*words, "--json", "-"))
    m, n, _ = record["result"]["stage"]
    assert record["bytes"]["useful"] == 8 * (M * K * -(-N // n) + K * N * -(-M // m))


@pytest.mark.parametrize(("ranks", "cap", "method"), [(1, "64MiB", "off"), (2, "104MiB", "fast")])
def test_numbers_that_are_not_finite(
    tilewise: Tilewise, inside: InProcess, operands: tuple[Any, Any], ranks: int, cap: str, method: str
) -> None:
    a, b = operands
    a[[5, 2000], [1899, 0]], b[1000, 2299] = numpy.nan, numpy.inf
    numpy.save(tilewise.folder / "A.npy", a)
    numpy.save(tilewise.folder / "B.npy", b)
    words = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", ranks, "--memory", cap, "--verify", method)
    record = record_of(inside(*words, "-t", 1, "--json", "-"))
    assert record["result"]["stage"][0] < M and record["result"]["input_non_finite"] == [2, 1]
    assert record["result"]["non_finite"] == 2 * N + M - 2
    assert (~numpy.isfinite(numpy.load(tilewise.folder / "C.npy"))).sum() == 2 * N + M - 2


@pytest.mark.parametrize("kind", ["F", "turned", "hdf5", "float32", "csv", "int32", "direct"])
def test_formats(tilewise: Tilewise, inside: InProcess, kind: str) -> None:
    dtype = {"float32": "float32", "int32": "int32"}.get(kind, "float64")
    m, k, n = (2100, 1900, 2300) if kind != "csv" else (3000, 2500, 60)
    a, b = matrix((m, k), dtype, 3), matrix((k, n), dtype, 4)
    names, flags = ["A.npy", "B.npy"], []
    if kind == "hdf5":
        names = ["A.h5:/x", "B.h5:/x"]
        for name, numbers in (("A.h5", a), ("B.h5", b)):
            with h5py.File(tilewise.folder / name, "w") as file:
                file.create_dataset("x", data=numbers, chunks=(256, 256), compression="gzip", shuffle=True)
    else:
        numpy.save(tilewise.folder / "A.npy", numpy.asfortranarray(a) if kind == "F" else a)
        numpy.save(tilewise.folder / "B.npy", b.T.copy() if kind == "turned" else b)
        flags = ["--transpose-b"] if kind == "turned" else []
    if kind == "direct":
        flags = ["--io", "uncached:positioned"]
    output = "C.csv" if kind == "csv" else "C.npy"
    cap = {"float32": "52MiB", "csv": "76MiB", "hdf5": "96MiB"}.get(kind, "64MiB")
    words = ("multiply", *names, *flags, "-o", output, "-n", 1, "-t", 1, "--memory", cap, "--verify", "fast")
    record = record_of(inside(*words, "--json", "-"))
    assert any(record["result"]["stage"])
    path = tilewise.folder / output
    found = numpy.loadtxt(path, delimiter=",") if kind == "csv" else numpy.load(path)
    if kind == "int32":
        assert_array_equal(found, a.astype("float64") @ b.astype("float64"))  # exact, and BLAS is fast
    else:
        tolerance = 2e-4 if kind == "float32" else 1e-11
        assert_allclose(found, a @ b, rtol=0, atol=tolerance * k)


def test_too_little_memory_is_told_what_would_do(tilewise: Tilewise, operands: tuple[Any, Any]) -> None:
    words = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", 2, "-t", 1)
    said = one_message(tilewise(*words, "--memory", "9MiB"), 2)
    advised = re.search(r"try: --memory (\d+MiB), with which A and B stream", said)
    assert advised and tilewise(*words, "--memory", advised[1], "-q").returncode == 0


def test_what_cannot_be_streamed_is_refused(tilewise: Tilewise, operands: tuple[Any, Any]) -> None:
    words = ("multiply", "A.npy", "B.npy", "-o", "C.npy", "--memory", "70MiB")
    for flags in (
        ("-n", 4, "--algorithm", "cannon"),
        ("-n", 2, "--repeat", 3),
        ("-n", 2, "--kernel", "strassen"),
    ):
        assert "--memory allows" in one_message(tilewise(*words, *flags), 2)
    assert not (tilewise.folder / "C.npy").exists()


@pytest.mark.parametrize("shape", [(100, 100, 100), (1, 5000, 1), (5000, 3, 4000), (70, 1, 9000)])
def test_a_tile_that_fits(shape: tuple[int, int, int]) -> None:
    m, k, n = shape

    def numbers(stage: Stage) -> int:
        return stage.m * stage.n + stage.k * (stage.m + stage.n)

    for room in (10**9, 10**6, 10**5, 10**4):
        stage = best(m, k, n, 8, lambda stage, room=room: numbers(stage) <= room)
        if stage is not None:
            assert numbers(stage) <= room
            assert stage.m <= m and stage.k <= k and stage.n <= n
    whole = best(m, k, n, 8, lambda stage: True)
    assert whole == Stage(m, n, k)
    assert best(m, k, n, 8, lambda stage: False) is None
    assert even(100, 60) == 56 and even(7, 100) == 7


def test_ranks_share_what_leaves_them_long_runs() -> None:
    assert grid_of(4, (True, True)) == grid_of(4, (False, True)) == (4, 1)
    assert grid_of(4, (False, False)) == (1, 4)

    def best_of(*across: bool) -> Stage:
        found = best(9000, 9000, 9000, 8, room, (across[0], across[1]))
        assert found
        return found

    def room(stage: Stage) -> bool:
        return stage.m * stage.n + 2 * stage.k * (stage.m + stage.n) <= 4_000_000

    assert best_of(False, True).m > best_of(True, True).m, "no run is as short as k"
