"""Products through the real command, against numpy: every variant, uneven shapes, every type and layout."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy
import pytest
from conftest import InProcess, Tilewise
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import DTYPES, INTEGERS, RANKS, assert_product, matrix, record_of, save, ways_to_multiply
from tilewise.operations.multiply.options import ALGORITHMS as MULTIPLY
from tilewise.planning.names import ONE_FILE, ONLY_READ

WITHOUT_CHILD = True


# Rows, inner extent, columns. A prime number of them, so that variants meet them in ever new pairs.
SHAPES = (
    (37, 23, 41),
    (1, 17, 29),
    (31, 1, 13),
    (53, 1601, 7),
    (2, 3, 1),
    (0, 5, 3),
    (4, 0, 3),
    (3, 2, 0),
    (1, 1, 1),
    (5, 941, 3),
    (101, 97, 103),
)


class Case(NamedTuple):
    """One variant with one shape."""

    algorithm: str
    exchange: str | None
    ranks: int
    read: str
    write: str
    shape: tuple[int, int, int]

    def __str__(self) -> str:
        extents = "x".join(map(str, self.shape))
        return f"{self.algorithm}-{self.exchange}-{self.ranks}-{self.read}-{self.write}-{extents}"


WRITING = [name for name in ONE_FILE if name not in ONLY_READ]
CASES = [
    Case(*way, WRITING[(i * 3 + i // len(WRITING)) % len(WRITING)], SHAPES[i % len(SHAPES)])
    for i, way in enumerate(ways_to_multiply())
]


def test_the_sample_covers_the_table() -> None:
    for algorithm in MULTIPLY.values():
        cases = [case for case in CASES if case.algorithm == algorithm.name]
        assert {case.exchange for case in cases} == set(algorithm.exchanges or (None,))
        assert {case.ranks for case in cases} == set(filter(algorithm.takes, RANKS))
        assert {case.read for case in cases} == set(ONE_FILE)
    assert {case.write for case in CASES} == set(WRITING) and {case.shape for case in CASES} == set(SHAPES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_variant(tilewise: Tilewise, inside: InProcess, case: Case) -> None:
    """What the table does not hold (types, orders, threads, repetitions) is drawn, the same for one case."""
    draw = random.Random(str(case))
    m, k, n = case.shape
    turned = draw.choice(["", "a", "b", "ab"])
    dtypes = ("float64", "float64", "float32", "complex128", "int32", ">f8")
    left = matrix((k, m) if "a" in turned else (m, k), draw.choice(dtypes), 1, draw.choice("CF"))
    right = matrix((n, k) if "b" in turned else (k, n), draw.choice(dtypes), 2, draw.choice("CF"))
    save(tilewise.folder, left, right)
    words: list[object] = ["multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", case.ranks, "--json", "-"]
    words += ["--algorithm", case.algorithm, "--io", f"{case.read}:{case.write}"]
    words += ["--exchange", case.exchange] if case.exchange else []
    words += [f"--transpose-{side}" for side in turned]
    words += draw.choice([[], ["--repeat", 2, "--warmup", 1]])
    words += draw.choice([[], ["--remainder", "last"]])
    words += draw.choice([[], [], ["-t", 2], ["--kernel", "plain"]])

    record = record_of(inside(*words))

    assert_product(
        tilewise.folder / "C.npy", left.T if "a" in turned else left, right.T if "b" in turned else right
    )
    variant = record["variant"]
    assert (variant["algorithm"], variant["ranks"]) == (case.algorithm, case.ranks)
    assert (variant["exchange"], variant["io"]) == (case.exchange or "none", f"{case.read}:{case.write}")
    assert record["verification"]["passed"] is True
    assert tilewise.files() == {"A.npy", "B.npy", "C.npy"}


@pytest.mark.parametrize(
    ("algorithm", "grid"),
    [("summa", "6x1"), ("summa", "3x2"), ("summa", "1x6"), ("replicated", "3x1"), ("replicated", "1x2")],
)
def test_a_grid_of_the_users_own(tilewise: Tilewise, algorithm: str, grid: str) -> None:
    left, right = matrix((29, 31), seed=1), matrix((31, 7), seed=2)
    save(tilewise.folder, left, right)
    how = ("-n", 6, "--algorithm", algorithm, "--grid", grid, "--exchange", "overlap", "--json", "-")
    record = record_of(tilewise("multiply", "A.npy", "B.npy", "-o", "C.npy", *how))
    assert "x".join(map(str, record["variant"]["grid"])) == grid
    assert_product(tilewise.folder / "C.npy", left, right)


@pytest.mark.parametrize("io", ONE_FILE)
def test_more_than_one_buffer_of_numbers(tilewise: Tilewise, io: str) -> None:
    """Reading and writing go by bands of some MiB: here are several, and blocks that begin within them."""
    left, right = matrix((2503, 1021), seed=1, order="F"), matrix((1021, 1201), seed=2)
    save(tilewise.folder, left, right)
    result = tilewise("multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", 3, "--io", io, "-q")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert_product(tilewise.folder / "C.npy", left, right)


@pytest.mark.parametrize("ranks", [1, 3])
def test_the_same_file_twice(tilewise: Tilewise, ranks: int) -> None:
    both = matrix((19, 23))
    numpy.save(tilewise.folder / "A.npy", both)
    result = tilewise("multiply", "A.npy", "A.npy", "-o", "C.npy", "-n", ranks, "--transpose-b")
    assert result.returncode == 0, result.stderr
    assert_product(tilewise.folder / "C.npy", both, both.T)


@pytest.mark.parametrize("ranks", [1, 2])
def test_an_input_may_be_replaced_by_the_product(tilewise: Tilewise, ranks: int) -> None:
    left, right = matrix((9, 9), seed=1), matrix((9, 9), seed=2)
    save(tilewise.folder, left, right)
    result = tilewise("multiply", "A.npy", "B.npy", "-o", "A.npy", "-n", ranks, "--force")
    assert result.returncode == 0, result.stderr
    assert_product(tilewise.folder / "A.npy", left, right)


# ---- types ---------------------------------------------------------------------------------------

_PAIRS = [
    *((dtype, dtype) for dtype in (*DTYPES, "bool")),
    ("int8", "uint8"),
    ("uint64", "int64"),
    ("uint8", "uint32"),
    ("bool", "int16"),
    ("float16", "int8"),
    ("float16", "float32"),
    ("int16", "float16"),
    ("float32", "int32"),
    ("float32", "uint16"),
    ("int64", "float32"),
    ("uint64", "complex64"),
    ("complex64", "float64"),
    ("float32", "complex64"),
    ("bool", "complex128"),
]


@pytest.mark.parametrize(("left", "right"), _PAIRS)
def test_types(tilewise: Tilewise, inside: InProcess, left: str, right: str) -> None:
    """Big endian on the one side, Fortran order and a transposition on the other."""
    a = matrix((13, 7), numpy.dtype(left).newbyteorder(">").str, 1)
    b = matrix((11, 7), right, 2, "F")
    save(tilewise.folder, a, b)
    result = inside("multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", 2, "--transpose-b")
    assert result.returncode == 0, result.stderr
    assert_product(tilewise.folder / "C.npy", a, b.T)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_ends_of_an_integers_range(tilewise: Tilewise, dtype: str) -> None:
    ends = numpy.iinfo(dtype)
    small = numpy.array([[1], [0]], dtype)
    save(tilewise.folder, numpy.array([[ends.max, 0], [0, 1]], dtype), small)
    result = tilewise("multiply", "A.npy", "B.npy", "-o", "C.npy")
    assert result.returncode == 0, result.stderr
    assert numpy.load(tilewise.folder / "C.npy").tolist() == [[ends.max], [0]]


@pytest.mark.parametrize("value", [2**64 - 1, 2**63])
def test_the_largest_unsigned_number(tilewise: Tilewise, value: int) -> None:
    save(tilewise.folder, numpy.array([[value]], "uint64"), numpy.array([[1]], "uint8"))
    result = tilewise("multiply", "A.npy", "B.npy", "-o", "C.npy")
    assert result.returncode == 0, result.stderr
    assert numpy.load(tilewise.folder / "C.npy").tolist() == [[value]]


def test_half_precision_keeps_every_bit(tilewise: Tilewise) -> None:
    """All 65536 halves, subnormal and infinite ones and NaN too, times one."""
    halves = numpy.arange(65536, dtype=numpy.uint16).view(numpy.float16).reshape(65536, 1)
    save(tilewise.folder, halves, numpy.ones((1, 1), numpy.float16))
    result = tilewise("multiply", "A.npy", "B.npy", "-o", "C.npy", "-n", 2)
    assert result.returncode == 0, result.stderr
    found = numpy.load(tilewise.folder / "C.npy")
    assert numpy.array_equal(found, halves.astype(numpy.float32), equal_nan=True)


@st.composite
def products(draw: st.DrawFn) -> tuple[Any, Any, list[object]]:
    """Two matrices as they are stored, and the flags that go with them."""
    m, k, n = (draw(st.integers(0, 24)) for _ in range(3))
    words: list[object] = ["-n", draw(st.sampled_from([1, 2, 3]))]
    stored = []
    for side, (rows, columns) in (("a", (m, k)), ("b", (k, n))):
        dtype = numpy.dtype(draw(st.sampled_from([*DTYPES, "bool"]))).newbyteorder(
            draw(st.sampled_from("<>"))
        )
        turned = draw(st.booleans())
        words += [f"--transpose-{side}"] if turned else []
        extents = (columns, rows) if turned else (rows, columns)
        stored.append(matrix(extents, dtype.str, draw(st.integers(0, 9)), draw(st.sampled_from("CF"))))
    words += draw(
        st.sampled_from([[], ["--verify", "serial"], ["--kernel", "plain"], ["--remainder", "last"]])
    )
    words += ["--io", f"{draw(st.sampled_from(sorted(ONE_FILE)))}:{draw(st.sampled_from(WRITING))}"]
    return stored[0], stored[1], words


@settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(products())
def test_whatever_fits_is_multiplied(
    tilewise: Tilewise, inside: InProcess, product: tuple[Any, Any, list[object]]
) -> None:
    left, right, words = product
    save(tilewise.folder, left, right)
    result = inside("multiply", "A.npy", "B.npy", "-o", "C.npy", "--force", *words)
    assert result.returncode == 0, result.stderr
    assert_product(
        tilewise.folder / "C.npy",
        left.T if "--transpose-a" in words else left,
        right.T if "--transpose-b" in words else right,
    )
