"""What a product's check sees of columns of different size, of tiny numbers and of none; its share."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from conftest import InProcess, Tilewise, one_message
from oracle import Array, matrix, record_of, save

WITHOUT_CHILD = True
WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy")


def verified(tilewise: Tilewise, left: Array, right: Array, *words: object) -> dict[str, Any]:
    """The record of a product of these two that passes."""
    save(tilewise.folder, left, right)
    return record_of(tilewise(*WORDS, "--force", "--json", "-", *words))


@pytest.mark.parametrize(("dtype", "scale"), [("float32", 1e6), ("float64", 1e15), ("complex64", 1e6)])
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_large_column_hides_no_wrong_element(
    tilewise: Tilewise, dtype: str, scale: float, ranks: int
) -> None:
    left, right = matrix((21, 20), dtype, 1), matrix((20, 21), dtype, 2)
    right[:, 0] *= scale
    assert verified(tilewise, left, right, "-n", ranks, "--verify", "fast")["verification"]["share"] == 1
    tilewise.environment["TILEWISE_FAULT"] = "element"  # in the middle, far from column 0
    one_message(tilewise(*WORDS, "--force", "-n", ranks, "--verify", "fast"), 3)


@pytest.mark.parametrize(
    ("ranks", "algorithm", "exchange"),
    [
        (4, "cannon", "persistent"),
        (3, "summa", "shared"),
        (2, "summa", "one_sided_lock"),
        (2, "replicated", "overlap"),
    ],
)
def test_columns_are_known_however_blocks_travel(
    tilewise: Tilewise, ranks: int, algorithm: str, exchange: str
) -> None:
    """Transposed, column by column; two large columns would hide the others, in one of which the fault is."""
    left, right = matrix((26, 30), "float32", 1, "F"), matrix((21, 30), "float32", 2)
    right[[1, 19]] *= 1e7
    how = ("--transpose-b", "-n", ranks, "--algorithm", algorithm, "--exchange", exchange)
    found = verified(tilewise, left, right, *how, "--verify", "fast")["verification"]
    assert found["share"] == 1 and found["error"] < found["tolerance"] / 10
    tilewise.environment["TILEWISE_FAULT"] = "element"
    one_message(tilewise(*WORDS, *how, "--force", "--verify", "fast"), 3)


@pytest.mark.parametrize("method", ["fast", "serial"])
@pytest.mark.parametrize("kernel", ["fast", "tiles", "blas", "plain"])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64"])
def test_products_below_the_smallest_normal_number(
    tilewise: Tilewise, dtype: str, kernel: str, method: str
) -> None:
    """Rounding errors are multiples of the smallest number that there is; no kernel flushes to zero."""
    size = 1e-160 if dtype == "float64" else 1e-21
    left, right = matrix((30, 40), dtype, 1) * size, matrix((40, 20), dtype, 2) * size
    left, right = left.astype(dtype), right.astype(dtype)
    record = verified(tilewise, left, right, "--kernel", kernel, "--verify", method)
    assert record["verification"]["passed"] is True and record["verification"]["share"] == 1
    assert numpy.count_nonzero(numpy.load(tilewise.folder / "C.npy")) > 500


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_what_is_not_finite_is_left_out_alone(tilewise: Tilewise, dtype: str, ranks: int) -> None:
    """A NaN in a row of A and one in a column of B: the other rows and columns are checked."""
    left, right = matrix((11, 8), dtype, 1), matrix((8, 9), dtype, 2)
    left[2, 3], right[4, 4], right[1, 6] = numpy.nan, -numpy.inf, numpy.nan
    record = verified(tilewise, left, right, "-n", ranks, "--verify", "fast")
    assert record["verification"]["share"] == pytest.approx(10 * 7 / 99)
    assert record["verification"]["error"] > 0
    assert any("29 of 99 numbers of the result could not be verified" in each for each in record["warnings"])
    tilewise.environment["TILEWISE_FAULT"] = "element"
    left[2, 3], right[4, 4], right[1, 1] = 1, 1, numpy.inf
    save(tilewise.folder, left, right)
    one_message(tilewise(*WORDS, "--force", "-n", ranks, "--verify", "fast"), 3)


@pytest.mark.parametrize(
    ("ranks", "how"),
    [
        (1, "--io mapped --verify off"),
        (1, "--io uncached --verify fast"),
        (1, "--io uncached --verify off"),
        (1, "--algorithm cannon --kernel plain --verify fast"),
        (2, "--algorithm summa --exchange shared --io root --verify off"),
        (3, "--algorithm summa --exchange one_sided_lock --io collective --verify fast"),
        (4, "--algorithm summa --exchange collective --grid 1x4 --verify off"),
        (4, "--algorithm cannon --exchange persistent --verify fast"),
        (4, "--algorithm cannon --exchange one_sided_fence --remainder last --verify off"),
        (2, "--algorithm replicated --verify fast"),
        (4, "--algorithm replicated --exchange synchronous --verify off"),
    ],
)
def test_numbers_that_are_not_finite_are_counted_once(
    tilewise: Tilewise, inside: InProcess, ranks: int, how: str
) -> None:
    """Also of a matrix that meets its transpose, and of a product in which all is finite."""
    left, right = (
        matrix((21, 30), "float64", 1),
        matrix((30, 26), "complex128" if ranks == 3 else "float64", 2),
    )
    words = (*WORDS, "--force", "-n", ranks, *how.split(), "--json", "-")
    save(tilewise.folder, left, right)
    result = record_of(inside(*words))["result"]
    assert (result["input_non_finite"], result["non_finite"]) == ([0, 0], 0)
    left[2, 3], left[2, 4], right[5, 7] = numpy.nan, numpy.inf, -numpy.inf
    right[3] = 0  # a NaN of A spreads through zeros, too
    save(tilewise.folder, left, right)
    record = record_of(inside(*words))
    found = numpy.load(tilewise.folder / "C.npy")
    assert record["result"]["input_non_finite"] == [2, 1]
    assert record["result"]["non_finite"] == 26 + 21 - 1 == (~numpy.isfinite(found)).sum()
    said = "2 of 630 numbers of A.npy and 1 of 780 numbers of B.npy are NaN or infinite, and so are 46 of 546"
    assert [each for each in record["warnings"] if said in each]
    same = (words[0], "A.npy", "A.npy", "--transpose-b", *words[3:])
    record = record_of(inside(*same))
    assert (record["result"]["input_non_finite"], record["result"]["non_finite"]) == ([2, 2], 41)
    assert [each for each in record["warnings"] if each.startswith("2 of 630 numbers of A.npy are NaN")]


@pytest.mark.parametrize(("depth", "method"), [(20, "off"), (20, "fast"), (20, "serial"), (1, "off")])
def test_a_product_that_overflows_says_so(
    tilewise: Tilewise, inside: InProcess, depth: int, method: str
) -> None:
    """Of inputs that are small beside the result, the largest numbers may tell that none of it can."""
    left, right = matrix((90, depth), "float32", 1), matrix((depth, 80), "float32", 2)
    words = (*WORDS, "--force", "-n", 2, "--verify", method, "--json", "-")
    save(tilewise.folder, left, right)
    assert record_of(inside(*words))["result"]["non_finite"] == 0
    left[4] *= 1e30
    right[:, 2] = 1e30 * numpy.sign(left[4])
    save(tilewise.folder, left, right)
    record = record_of(inside(*words))
    assert (record["result"]["input_non_finite"], record["result"]["non_finite"]) == ([0, 0], 1)
    said = "1 of 7200 numbers of the result is NaN or infinite, but none of the inputs: sums are beyond"
    assert [each for each in record["warnings"] if each.startswith(said)]
    left[7, 0] = numpy.nan
    save(tilewise.folder, left, right)
    record = record_of(inside(*words))
    assert (record["result"]["input_non_finite"], record["result"]["non_finite"]) == ([1, 0], 81)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("method", ["fast", "serial"])
def test_only_rows_that_may_overflow_are_left_out(tilewise: Tilewise, ranks: int, method: str) -> None:
    left, right = matrix((9, 5), seed=1), matrix((5, 7), seed=2)
    left[3] *= 1e300
    right[:, 2] *= 1e20
    record = verified(tilewise, left, right, "-n", ranks, "--verify", method)
    found = numpy.load(tilewise.folder / "C.npy")
    overflowed = int((~numpy.isfinite(found)).sum())
    assert overflowed == 1
    unchecked = 7 if method == "fast" else 0  # both products of `serial` are infinite there
    assert record["verification"]["share"] == pytest.approx(1 - unchecked / 63)


def test_a_partial_verdict_says_so(tilewise: Tilewise) -> None:
    left, right = matrix((10, 6), seed=1), matrix((6, 10), seed=2)
    right[2, 2] = numpy.nan
    save(tilewise.folder, left, right)
    result = tilewise(*WORDS, "--verify", "fast")
    assert result.returncode == 0
    assert "partly verified (90 % of the result) by Freivalds' check: error " in result.stdout
    assert "warning: 10 of 100 numbers of the result could not be verified" in result.stderr
    right[:] = numpy.nan
    save(tilewise.folder, left, right)
    assert "not verified: Freivalds' check found nothing it could check" in tilewise(*WORDS, "--force").stdout


@pytest.mark.parametrize(
    ("how", "infinite"),
    [
        (("-n", 2, "--algorithm", "replicated", "--kernel", "blas", "--verify", "serial"), False),
        (("-n", 1, "--kernel", "plain", "--verify", "fast"), True),
    ],
)
def test_a_sum_that_overflows_in_one_order_of_adding_only(
    tilewise: Tilewise, how: tuple[object, ...], infinite: bool
) -> None:
    """One after the other, 1,500 numbers pass the largest one; two ranks sum 1,000 each, which cannot."""
    left = numpy.repeat([1.5e305, 2e305, -3.4e305], [1000, 500, 500]) * [[1], [0]]
    left[1] = 1
    found = verified(tilewise, left, numpy.ones((2000, 3)), *how)["verification"]
    result = numpy.load(tilewise.folder / "C.npy")
    assert (numpy.isinf(result[0]) == infinite).all() and (result[1] == 2000).all()
    assert found["passed"] is True and found["share"] == 0.5
