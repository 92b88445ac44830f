"""Strassen's product: where it is taken and refused, its bound, and that the proof finds what exceeds it."""

from __future__ import annotations

import numpy
import pytest
from conftest import Tilewise, one_message
from oracle import record_of

WITHOUT_CHILD = True
SHAPES = ("random:3105x1099:{}:1", "random:1099x3077:{}:2")  # the least that pay, with something left over


def words(tilewise: Tilewise, dtype: str, *more: object) -> tuple[object, ...]:
    return ("multiply", *(shape.format(dtype) for shape in SHAPES), "-o", "C.npy", "--force", *more)


def product(tilewise: Tilewise, dtype: str, *more: object) -> numpy.ndarray:
    assert tilewise(*words(tilewise, dtype, *more)).returncode == 0
    loaded: numpy.ndarray = numpy.load(tilewise.folder / "C.npy")
    return loaded


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_it_errs_by_less_than_its_bound(tilewise: Tilewise, dtype: str) -> None:
    plain = product(tilewise, "float64", "-n", 1)
    asked = words(tilewise, dtype, "--kernel", "strassen", "-n", 1, "--verify", "fast", "--json", "-")
    record = record_of(tilewise(*asked))
    told = record["result"]["strassen"]
    assert told["levels"] == 1 and record["flops"] == told["plain_flops"] * 7 / 8
    assert record["verification"]["passed"] and record["verification"]["tolerance"] >= told["bound"]
    ours = numpy.load(tilewise.folder / "C.npy")
    if dtype == "float64":  # numbers of float32 are others; rows and columns are at most √1099 long
        assert 0 < numpy.abs(ours - plain).max() < told["bound"] * 1099


def test_bits_do_not_depend_on_threads(tilewise: Tilewise) -> None:
    one = product(tilewise, "float64", "--kernel", "strassen", "-n", 1, "-t", 1)
    assert numpy.array_equal(one, product(tilewise, "float64", "--kernel", "strassen", "-n", 1, "-t", 2))


@pytest.mark.parametrize(
    ("m", "k", "n", "more"),
    [
        (6200, 2060, 3100, ("-n", 2)),  # the grid cuts the inner extent, too
        (3105, 2060, 3077, ("-n", 2, "--algorithm", "replicated")),
        (6150, 2060, 6150, ("-n", 4, "-t", 1, "--algorithm", "cannon")),
    ],
)
def test_ranks_halve_their_blocks(
    tilewise: Tilewise, m: int, k: int, n: int, more: tuple[object, ...]
) -> None:
    asked = ("multiply", f"random:{m}x{k}:float32:1", f"random:{k}x{n}:float32:2", "-o", "C.npy", *more)
    record = record_of(tilewise(*asked, "--tolerance", "1e-2", "--verify", "fast", "--json", "-"))
    assert record["result"]["strassen"]["levels"] == 1 and record["verification"]["passed"]


def test_one_wrong_element_is_found(tilewise: Tilewise) -> None:
    tilewise.environment["TILEWISE_FAULT"] = "element"
    result = tilewise(*words(tilewise, "float64", "--kernel", "strassen", "--verify", "fast"))
    assert "verification" in one_message(result, 3)


def test_tolerance_decides(tilewise: Tilewise) -> None:
    for tolerance, used in (("1e-10", True), ("1e-14", False)):
        asked = words(tilewise, "float64", "--tolerance", tolerance, "-n", 1, "--json", "-")
        assert ("strassen" in record_of(tilewise(*asked))["result"]) is used
    refused = tilewise(*words(tilewise, "float64", "--kernel", "strassen", "--tolerance", "1e-14", "-n", 1))
    assert "--kernel fast" in one_message(refused, 2)


def test_a_tolerance_is_for_kernels_with_an_error(tilewise: Tilewise) -> None:
    more = ("--tolerance", "1e-9", "--kernel", "plain")
    assert "--kernel plain" in one_message(tilewise(*words(tilewise, "float64", *more)), 2)


def test_other_types_are_refused(tilewise: Tilewise) -> None:
    said = one_message(tilewise(*words(tilewise, "int32", "--kernel", "strassen")), 2)
    assert "float32 and float64" in said


@pytest.mark.parametrize("ranks", [1, 2])
def test_unlike_rows_are_refused_unless_asked_for(tilewise: Tilewise, ranks: int) -> None:
    numbers = numpy.random.default_rng(0).standard_normal((6200, 2060))
    numbers[7] *= 1e-5
    numpy.save(tilewise.folder / "A.npy", numbers)
    asked = ("multiply", "A.npy", "random:2060x3100", "-o", "C.npy", "--kernel", "strassen", "-n", ranks)
    assert "1e+05" in one_message(tilewise(*asked), 2).replace("9.9e+04", "1e+05").replace("1.1e+05", "1e+05")
    assert tilewise(*asked, "--tolerance", "1e-10").returncode == 0
    numbers[9, 9] = numpy.nan
    numpy.save(tilewise.folder / "A.npy", numbers)
    assert "finite" in one_message(tilewise(*asked, "--tolerance", "1e-10", "--force"), 2)
