"""Products of a matrix and its transpose: half is computed, and the result is symmetric bit by bit."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
import tilewise as package
from conftest import InProcess, Tilewise
from numpy.testing import assert_allclose, assert_array_equal
from oracle import matrix, record_of, ways_to_multiply

WITHOUT_CHILD = True
SHAPES = ((203, 97), (61, 401), (1, 5), (7, 1), (0, 3), (3, 0), (450, 233))
DTYPES = ("float64", "float32", "complex128", "int32", ">f8", "float16")


def wanted_of(a: Any, turned: bool) -> Any:
    wide = a.astype("float32" if a.dtype == "float16" else a.dtype.newbyteorder("="))
    wide = wide.astype("int64") if wide.dtype.kind == "i" else wide
    return wide.T @ wide if turned else wide @ wide.T


def check(found: Any, a: Any, turned: bool) -> None:
    wanted = wanted_of(a, turned)
    assert found.dtype == wanted.dtype
    assert_array_equal(found, found.T)
    single = wanted.dtype in ("float32", "complex64")
    assert_allclose(
        found, wanted, rtol=0, atol=(1e-4 if single else 1e-11) * max(1, abs(a).max(initial=0) ** 2)
    )


@pytest.mark.parametrize("way", list(enumerate(ways_to_multiply())), ids=str)
def test_every_way(tilewise: Tilewise, inside: InProcess, way: tuple[int, tuple[Any, ...]]) -> None:
    """`replicated` has several parts of each element to add, and computes all of them."""
    index, (algorithm, exchange, ranks, *_) = way
    a = matrix(SHAPES[index % len(SHAPES)], DTYPES[index % len(DTYPES)], 1, "CF"[index % 2])
    side = "ab"[index // 2 % 2]
    numpy.save(tilewise.folder / "A.npy", a)
    words: list[object] = ["multiply", "A.npy", "A.npy", f"--transpose-{side}", "-o", "C.npy", "-n", ranks]
    words += ["--algorithm", algorithm, *(["--exchange", exchange] if exchange else [])]
    words += [["-t", 2], ["--repeat", 2], ["--remainder", "last"]][index % 3]
    record = record_of(inside(*words, "--verify", "fast", "--json", "-"))
    assert record["result"]["symmetric"] == (algorithm != "replicated")
    assert record["verification"]["passed"]
    found = numpy.load(tilewise.folder / "C.npy")
    if algorithm != "replicated":
        check(found, a, side == "a")


@pytest.mark.parametrize("ranks", [1, 2, 4, 6])
def test_large_enough_to_be_cut(tilewise: Tilewise, inside: InProcess, ranks: int) -> None:
    for side, shape in (("a", (130, 1301)), ("b", (1301, 130))):
        a = matrix(shape, "float64", 3)
        numpy.save(tilewise.folder / "A.npy", a)
        for io in ("positioned", "uncached"):
            how = ["-n", ranks, "--io", io, "--force", "--json", "-"]
            words = ["multiply", "A.npy", "A.npy", f"--transpose-{side}", "-o", "C.npy", *how]
            flops = record_of(inside(*words))["flops"]
            assert flops == 130 * 1301 * 1302
            check(numpy.load(tilewise.folder / "C.npy"), a, side == "a")


@pytest.mark.parametrize(
    ("more", "read", "exchanged", "copied"),
    [
        (("-n", 2), 1, 0, 100 * 100 * 2),
        (("-n", 2, "--exchange", "overlap"), 1, 1024 * 400 + 100 * 100, 0),
        (("-n", 3, "-t", 1, "--grid", "3x1", "--exchange", "shared"), 2, 0, 67 * 66 * 4 + 67 * 67 * 2),
        (("-n", 4, "-t", 1, "--exchange", "shared"), 1, 0, 50 * 50 * 12),
    ],
)
def test_a_row_of_ranks_reads_a_matrix_once(
    tilewise: Tilewise, more: tuple[object, ...], read: int, exchanged: int, copied: int
) -> None:
    """Halves are written straight to where they belong in the node's memory: once, not as messages."""
    a = matrix((2048, 200), "float64", 1)
    numpy.save(tilewise.folder / "A.npy", a)
    words = ("multiply", "A.npy", "A.npy", "--transpose-a", "-o", "C.npy", *more, "--io", "positioned")
    record = record_of(tilewise(*words, "--verify", "fast", "--json", "-"))
    counts = record["bytes"]
    assert counts["useful"] == read * a.nbytes
    assert (counts["exchanged"], 2 * counts["copied_in_node"]) == (8 * exchanged, 8 * copied)
    check(numpy.load(tilewise.folder / "C.npy"), a, True)


def test_what_is_one_matrix(tilewise: Tilewise, inside: InProcess) -> None:
    """A link and a column-order view are the same file; a copy of the file, or both turned, are not."""
    a = matrix((30, 20), "float64", 1)
    numpy.save(tilewise.folder / "A.npy", a)
    numpy.save(tilewise.folder / "B.npy", a)
    (tilewise.folder / "L.npy").symlink_to("A.npy")
    made = "random:30x20:float64:"
    for left, right, turned, same in (
        ("A.npy", "L.npy", "a", True),
        ("A.npy", "B.npy", "a", False),
        (made + "1", made + "1", "b", True),
        (made + "1", made + "2", "b", False),
    ):
        words = ["multiply", left, right, f"--transpose-{turned}", "-o", "C.npy", "--force", "--json", "-"]
        assert record_of(inside(*words))["result"]["symmetric"] == same
    square = matrix((20, 20), "float64", 2)
    numpy.save(tilewise.folder / "S.npy", square)
    for sides in ("", "ab"):
        words = ["multiply", "S.npy", "S.npy", "-o", "C.npy", "--force", "--json", "-"]
        record = record_of(inside(*words, *(f"--transpose-{side}" for side in sides)))
        assert record["result"]["symmetric"] is False
    plan = tilewise("plan", "multiply", "A.npy", "A.npy", "--transpose-a", "-o", "new.npy").stdout
    assert "symmetric" in plan


def test_views_of_one_array() -> None:
    a = matrix((40, 300), "float64", 1)
    for left, right in ((a.T, a), (a, a.T)):
        with package.records() as done:
            found = package.multiply(left, right)
        assert done[0].result["symmetric"]
        assert_array_equal(found, found.T)
        assert_allclose(found, left @ right, atol=1e-11)
    with package.records() as done:
        assert_allclose(package.multiply(a, a, transpose_b=True), a @ a.T, atol=1e-11)
        assert_allclose(package.multiply(a.T, a.copy()), a.T @ a, atol=1e-11)
    assert [each.result["symmetric"] for each in done] == [True, False]
