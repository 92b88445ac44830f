"""The proof: it finds one wrong element, believes every right product, and says where it cannot judge."""

from __future__ import annotations

import json

import numpy
import pytest
from conftest import Tilewise, one_message
from oracle import Array, assert_product, matrix, nothing_left, record_of, save
from tilewise.operations.multiply.options import ALGORITHMS as MULTIPLY

WITHOUT_CHILD = True
WORDS = ("multiply", "A.npy", "B.npy", "-o", "C.npy")


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex64", "int16", "uint8", "float16"])
@pytest.mark.parametrize("method", ["fast", "serial"])
def test_one_wrong_element_is_found(tilewise: Tilewise, dtype: str, method: str) -> None:
    save(tilewise.folder, matrix((41, 29), dtype, 1), matrix((29, 37), dtype, 2))
    tilewise.environment["TILEWISE_FAULT"] = "element"
    (tilewise.folder / "r.json").touch()
    with nothing_left(tilewise, 10):
        result = tilewise(*WORDS, "--force", "-n", 2, "--verify", method, "--json", "r.json")
        assert "verification" in one_message(result, 3)
    verification = json.loads((tilewise.folder / "r.json").read_bytes())["verification"]
    assert verification["passed"] is False and verification["error"] > verification["tolerance"]


@pytest.mark.parametrize("algorithm", MULTIPLY)
def test_one_wrong_element_is_found_after_every_algorithm(tilewise: Tilewise, algorithm: str) -> None:
    """A long and a narrow product, on the most ranks up to 4 that the algorithm takes; no old output."""
    ranks = max(filter(MULTIPLY[algorithm].takes, range(1, 5)))
    tilewise.environment["TILEWISE_FAULT"] = "element"
    for shapes in (("random:1x5000", "random:5000x1"), ("random:3000x1", "random:1x3")):
        result = tilewise("multiply", *shapes, "-o", "C.npy", "-n", ranks, "--algorithm", algorithm)
        one_message(result, 3)
        assert tilewise.files() == set()


def test_without_a_proof_the_element_passes(tilewise: Tilewise) -> None:
    left, right = matrix((9, 9), seed=1), matrix((9, 9), seed=2)
    save(tilewise.folder, left, right)
    tilewise.environment["TILEWISE_FAULT"] = "element"
    record = record_of(tilewise(*WORDS, "--no-verify", "--json", "-"))
    assert record["verification"] is None
    assert numpy.count_nonzero(~numpy.isclose(numpy.load(tilewise.folder / "C.npy"), left @ right)) == 1


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
def test_the_serial_proof(tilewise: Tilewise, ranks: int, dtype: str) -> None:
    left, right = matrix((31, 47), dtype, 1, "F"), matrix((23, 47), dtype, 2)
    save(tilewise.folder, left, right)
    record = record_of(tilewise(*WORDS, "--transpose-b", "-n", ranks, "--verify", "serial", "--json", "-"))
    assert record["verification"]["method"] == "serial" and record["verification"]["passed"] is True
    assert_product(tilewise.folder / "C.npy", left, right.T)


# ---- integers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "value", "k"),
    [
        ("int64", 2**32, 2),
        ("uint64", 2**32, 2),
        ("int64", -(2**63), 1),
        ("uint64", 2**63, 2),
        ("int64", 2**31, 3),
    ],
)
@pytest.mark.parametrize("ranks", [1, 3])
def test_an_overflow_is_refused_with_its_bound(
    tilewise: Tilewise, dtype: str, value: int, k: int, ranks: int
) -> None:
    save(tilewise.folder, numpy.full((2, k), value, dtype), numpy.full((k, 2), value, dtype))
    with nothing_left(tilewise, 10):
        said = one_message(tilewise(*WORDS, "--force", "-n", ranks), 2)
    assert f"could overflow {dtype}: sums over k = {k} may reach {float(value) * value * k:.6g}," in said
    assert "try: --overflow wrap, or floating-point inputs" in said


@pytest.mark.parametrize(("dtype", "value"), [("int64", 2**31), ("uint64", 2**31), ("int64", -(2**31))])
def test_next_to_an_overflow_nothing_is_refused(tilewise: Tilewise, dtype: str, value: int) -> None:
    left, right = numpy.full((3, 1), value, dtype), numpy.full((1, 2), value, dtype)
    save(tilewise.folder, left, right)
    assert tilewise(*WORDS).returncode == 0
    assert_product(tilewise.folder / "C.npy", left, right)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_cannot_overflow_is_not_refused(tilewise: Tilewise, ranks: int) -> None:
    identity = numpy.eye(7, dtype="int64") * 10**17
    least, one = numpy.array([[-(2**63)]]), numpy.array([[1]])
    largest, unit = numpy.array([[2**64 - 1]], "uint64"), numpy.array([[1]], "uint64")
    for left, right in ((identity, identity // 10**17 * 92), (least, one), (one, least), (largest, unit)):
        save(tilewise.folder, left, right)
        assert tilewise(*WORDS, "--force", "-n", ranks).returncode == 0
        assert_product(tilewise.folder / "C.npy", left, right)


@pytest.mark.parametrize("how", [(), ("--verify", "serial"), ("--kernel", "plain"), ("-n", 2), ("-n", 3)])
@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_wrap_where_that_is_asked_for(
    tilewise: Tilewise, dtype: str, how: tuple[object, ...]
) -> None:
    """Modulo 2^64, as numpy does; layers of `replicated` too; and one wrong bit is found."""
    draw = numpy.random.default_rng(3)
    ends = numpy.iinfo(dtype)
    left = draw.integers(ends.min, ends.max, (13, 11), dtype, endpoint=True)
    right = draw.integers(ends.min, ends.max, (11, 9), dtype, endpoint=True)
    save(tilewise.folder, left, right)
    how = (*how, "--algorithm", "replicated") if how == ("-n", 2) else how
    record = record_of(tilewise(*WORDS, *how, "--overflow", "wrap", "--json", "-"))
    assert record["verification"]["passed"] is True and record["verification"]["share"] == 1
    assert numpy.array_equal(numpy.load(tilewise.folder / "C.npy"), left @ right)
    tilewise.environment["TILEWISE_FAULT"] = "element"
    one_message(tilewise(*WORDS, *how, "--overflow", "wrap", "--force"), 3)


def test_where_wrapping_makes_no_sense_it_is_refused(tilewise: Tilewise) -> None:
    save(tilewise.folder, matrix((3, 4), "int8"), matrix((4, 2), "float32"))
    said = one_message(tilewise(*WORDS, "--overflow", "wrap"), 2)
    assert "--overflow wrap is for products of integers, not of float32" in said
    assert "expected one of refuse, wrap" in one_message(tilewise(*WORDS, "--overflow", "saturate"), 2)
    save(tilewise.folder, matrix((3, 4), "int8"), matrix((4, 2), "int16"))
    assert "wraps modulo 2^64" in tilewise("plan", *WORDS, "--overflow", "wrap").stdout


@pytest.mark.parametrize("ranks", [1, 2])
def test_numbers_that_the_type_of_the_product_cannot_hold(tilewise: Tilewise, ranks: int) -> None:
    save(tilewise.folder, numpy.array([[2**63 + 5]], "uint64"), numpy.array([[1]], "int8"))
    said = one_message(tilewise(*WORDS, "-n", ranks), 2)
    assert "A.npy" in said and "int64" in said
    assert tilewise.files() == {"A.npy", "B.npy"}


# ---- numbers that are none -----------------------------------------------------------------------


def same(product: Array, wanted: Array) -> bool:
    """Equal within rounding where finite; the same infinities, and NaN in the same places."""
    return numpy.allclose(product, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("kernel", ["fast", "plain"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_nan_and_infinity_as_numpy_has_them(tilewise: Tilewise, dtype: str, kernel: str, ranks: int) -> None:
    left, right = matrix((11, 8), dtype, 1), matrix((8, 9), dtype, 2)
    left[2, 3], left[5, 1], left[6, 0], left[6, 7] = numpy.nan, numpy.inf, numpy.inf, -numpy.inf
    right[4, 4] = -numpy.inf
    save(tilewise.folder, left, right)
    result = tilewise(*WORDS, "-n", ranks, "--kernel", kernel, "--verify", "fast")
    assert result.returncode == 0, result.stderr
    assert "warning: 35 of 99 numbers of the result could not be verified" in result.stderr
    with numpy.errstate(all="ignore"):
        wanted = left @ right
    product = numpy.load(tilewise.folder / "C.npy")
    if dtype.startswith("complex"):  # which of the parts becomes NaN is the library's choice
        finite = numpy.isfinite(wanted)
        assert numpy.array_equal(numpy.isfinite(product), finite)
        assert numpy.allclose(product[finite], wanted[finite])
    else:
        assert same(product, wanted)


def test_one_wrong_element_is_found_beside_rows_that_cannot_be_judged(tilewise: Tilewise) -> None:
    left, right = matrix((21, 8), seed=1), matrix((8, 9), seed=2)
    left[0, 0] = numpy.nan  # the fault goes into the middle of C
    save(tilewise.folder, left, right)
    tilewise.environment["TILEWISE_FAULT"] = "element"
    one_message(tilewise(*WORDS, "--verify", "fast"), 3)


@pytest.mark.parametrize("method", ["fast", "serial"])
@pytest.mark.parametrize(
    "scales", [(1e200, 1e-200), (1e-200, 1e-200), (1e200, 1e200), (1e-310, 1.0), (1e150, 1e150)]
)
def test_huge_and_tiny_numbers(tilewise: Tilewise, scales: tuple[float, float], method: str) -> None:
    left, right = matrix((13, 17), seed=1) * scales[0], matrix((17, 11), seed=2) * scales[1]
    save(tilewise.folder, left, right)
    result = tilewise(*WORDS, "-n", 2, "--verify", method)
    assert result.returncode == 0, result.stderr
    with numpy.errstate(all="ignore"):
        wanted = left @ right
    product = numpy.load(tilewise.folder / "C.npy")
    finite = numpy.isfinite(wanted)
    assert numpy.allclose(product[finite], wanted[finite], rtol=1e-9, atol=1e-320)
    assert numpy.array_equal(numpy.isfinite(product), finite)


def test_rows_of_very_different_size(tilewise: Tilewise) -> None:
    """Twenty orders of magnitude between rows of A and columns of B: every row is judged by itself."""
    left = matrix((21, 40), seed=1) * 10.0 ** -numpy.arange(21)[:, None]
    right = matrix((40, 21), seed=2) * 10.0 ** numpy.arange(21)
    save(tilewise.folder, left, right)
    record = record_of(tilewise(*WORDS, "-n", 3, "--verify", "fast", "--json", "-"))
    assert record["verification"]["passed"] is True and record["warnings"] is not None
    assert_product(tilewise.folder / "C.npy", left, right)


@pytest.mark.parametrize("kernel", ["fast", "plain"])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_long_sums_of_equal_numbers_are_not_condemned(
    tilewise: Tilewise, dtype: str, kernel: str, ranks: int
) -> None:
    """Rounding errors of one constant all point the same way: the hardest right product there is."""
    k = 100_000
    save(tilewise.folder, numpy.full((8, k), 0.1, dtype), numpy.full((k, 5), 0.1, dtype))
    result = tilewise(*WORDS, "-n", ranks, "--kernel", kernel, "--verify", "fast")
    assert result.returncode == 0, result.stderr
    product = numpy.load(tilewise.folder / "C.npy")
    exact = k * float(numpy.array(0.1, dtype).real) ** 2
    assert numpy.allclose(product.real, exact, rtol=1e-2 if dtype != "float64" else 1e-10)


@pytest.mark.parametrize(
    ("value", "shape"),
    [(1 / 3, (1, 1_000_000, 1)), (0.1, (3, 30_000, 64)), (3.3e7, (200, 2_000, 3)), (1.0, (2, 200_000, 2))],
)
def test_other_constants(tilewise: Tilewise, value: float, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    save(tilewise.folder, numpy.full((m, k), value, "float32"), numpy.full((k, n), value, "float32"))
    for kernel in ("fast", "plain"):
        result = tilewise(*WORDS, "--force", "--kernel", kernel, "--verify", "fast")
        assert result.returncode == 0, (kernel, result.stderr)


@pytest.mark.parametrize("fill", [0.0, -0.0])
def test_zeros(tilewise: Tilewise, fill: float) -> None:
    save(tilewise.folder, numpy.full((5, 6), fill), numpy.full((6, 7), fill))
    for method in ("fast", "serial"):
        record = record_of(tilewise(*WORDS, "--force", "-n", 2, "--verify", method, "--json", "-"))
        assert record["verification"]["passed"] is True
        assert not numpy.load(tilewise.folder / "C.npy").any()
