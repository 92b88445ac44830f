"""`tilewise generate` and `random:` names: the promised numbers, the same on any number of ranks."""

from __future__ import annotations

import numpy
import pytest
from conftest import Tilewise, one_message
from oracle import DTYPES, INTEGERS, Array, assert_product, record_of
from tilewise.files.generated import KINDS
from tilewise.planning.names import ONE_FILE

WITHOUT_CHILD = True
FRACTIONS = [dtype for dtype in DTYPES if dtype not in INTEGERS]
SHAPE = (61, 127)


def made(run: Tilewise, *words: object, name: str = "A.npy") -> Array:
    """The matrix that `generate words…` makes."""
    result = run("generate", "-o", name, *words)
    assert result.returncode == 0, result.stderr
    found: Array = numpy.load(run.folder / name)
    return found


def shape_of(extents: tuple[int, int]) -> str:
    return "x".join(map(str, extents))


def parts(values: Array) -> list[Array]:
    """Real and imaginary part of complex numbers, as float64; both must be what real ones would be."""
    if values.dtype.kind != "c":
        return [values.astype(numpy.float64)]
    return [values.real.astype(numpy.float64), values.imag.astype(numpy.float64)]


@pytest.mark.parametrize("dtype", DTYPES)
def test_random(tilewise: Tilewise, dtype: str) -> None:
    values = made(tilewise, "--shape", shape_of(SHAPE), "--dtype", dtype, "-n", 3, "--seed", 5)
    assert values.dtype == dtype and values.shape == SHAPE and values.flags.c_contiguous
    if dtype in INTEGERS:
        low, high = (0, 15) if dtype.startswith("u") else (-8, 7)
        assert set(numpy.unique(values).tolist()) == set(range(low, high + 1))
        counts = numpy.unique(values, return_counts=True)[1]
        assert counts.min() > 0.75 * values.size / 16 and counts.max() < 1.25 * values.size / 16
        return
    for part in parts(values):
        assert part.min() >= 0 and part.max() < 1
        assert abs(part.mean() - 0.5) < 0.02 and abs(part.var() - 1 / 12) < 0.005
        assert numpy.unique(part).size > (500 if dtype == "float16" else 0.99 * part.size)
    if dtype.startswith("complex"):
        assert abs(numpy.corrcoef(values.real.ravel(), values.imag.ravel())[0, 1]) < 0.05


@pytest.mark.parametrize(
    ("dtype", "shape", "bits"),
    [("float16", "2000x2000", 11), ("float32", "2100x2000", 24), ("complex64", "1700x1900", 24)],
)
def test_random_is_float64_cut_to_the_bits_of_a_narrow_type(
    tilewise: Tilewise, dtype: str, shape: str, bits: int
) -> None:
    """Not rounded: that would make 1 of the largest, in matrices of this size."""
    wide = "complex128" if dtype.startswith("complex") else "float64"
    values = made(tilewise, "--shape", shape, "--dtype", dtype, "-n", 2)
    exact = made(tilewise, "--shape", shape, "--dtype", wide, "-n", 1, name="exact.npy")
    for part, whole in zip(parts(values), parts(exact), strict=True):
        assert part.max() < 1
        assert numpy.array_equal(part, numpy.floor(whole * 2.0**bits) / 2.0**bits)
    named = tilewise("convert", f"random:{shape}:{dtype}", "-o", "named.npy", "-n", 3)
    assert named.returncode == 0, named.stderr
    assert (tilewise.folder / "named.npy").read_bytes() == (tilewise.folder / "A.npy").read_bytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_ramp(tilewise: Tilewise, dtype: str) -> None:
    extents = (7, 16) if dtype == "int8" else (15, 17) if dtype == "uint8" else SHAPE
    count = extents[0] * extents[1]
    values = made(tilewise, "--kind", "ramp", "--shape", shape_of(extents), "--dtype", dtype, "-n", 2)
    assert values.dtype == dtype
    assert numpy.array_equal(values, numpy.arange(count).astype(dtype).reshape(extents))


@pytest.mark.parametrize("dtype", ["int8", "float16", "complex128"])
@pytest.mark.parametrize("extents", [(9, 5), (3, 8)])
def test_identity(tilewise: Tilewise, dtype: str, extents: tuple[int, int]) -> None:
    values = made(tilewise, "--kind", "identity", "--shape", shape_of(extents), "--dtype", dtype, "-n", 4)
    assert numpy.array_equal(values, numpy.eye(*extents, dtype=dtype)) and values.dtype == dtype


@pytest.mark.parametrize("dtype", FRACTIONS)
def test_normal(tilewise: Tilewise, dtype: str) -> None:
    values = made(tilewise, "--kind", "normal", "--shape", shape_of(SHAPE), "--dtype", dtype, "-n", 3)
    assert values.dtype == dtype
    for part in parts(values):
        assert abs(part.mean()) < 0.05 and abs(part.var() - 1) < 0.07
        assert 3 < numpy.abs(part).max() < 7
        assert abs((part**4).mean() - 3) < 0.5  # as normal numbers have it, and uniform ones do not
        assert abs(numpy.corrcoef(part[:, 0], part[:, 1])[0, 1]) < 0.5


def test_both_parts_of_a_normal_number_are_independent(tilewise: Tilewise) -> None:
    """In their squares, too: with one source for an angle and a radius these depend on each other."""
    values = made(tilewise, "--kind", "normal", "--shape", "400x500", "--dtype", "complex128")
    squares = [part.ravel() ** 2 for part in parts(values)]
    assert abs(numpy.corrcoef(*squares)[0, 1]) < 0.01


@pytest.mark.parametrize("dtype", FRACTIONS)
def test_graded(tilewise: Tilewise, dtype: str) -> None:
    values = made(tilewise, "--kind", "graded", "--shape", "400x20", "--dtype", dtype, "-n", 3)
    assert values.dtype == dtype
    if dtype == "float16":  # most of its columns are too small to be seen
        assert numpy.isfinite(values).all() and values[:, 0].any() and not values[:, -1].any()
        return
    norms = numpy.sqrt((numpy.abs(values.astype(numpy.complex128)) ** 2).mean(axis=0))
    wanted = 10.0 ** -numpy.arange(20) * (numpy.sqrt(2) if dtype.startswith("complex") else 1)
    assert numpy.allclose(norms, wanted, rtol=0.2)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bytes_on_any_number_of_ranks(tilewise: Tilewise, kind: str) -> None:
    dtype = {"random": "int16", "ramp": "uint32", "normal": "complex64", "identity": "float16"}.get(
        kind, "float64"
    )
    words = ("--kind", kind, "--shape", "103x59", "--dtype", dtype, "--seed", 9)
    made(tilewise, *words, "-n", 1, name="1.npy")
    alone = (tilewise.folder / "1.npy").read_bytes()
    for ranks, io in zip((2, 3, 4, 6), ONE_FILE, strict=False):
        made(tilewise, *words, "-n", ranks, "--io", io, name="many.npy")
        assert (tilewise.folder / "many.npy").read_bytes() == alone, (ranks, io)
        (tilewise.folder / "many.npy").unlink()
    made(tilewise, *words[:-1], 10, name="other.npy")
    other = (tilewise.folder / "other.npy").read_bytes()
    assert (other == alone) == (kind in ("identity", "ramp"))


@pytest.mark.parametrize("io", ONE_FILE)
def test_few_rows_for_many_ranks(tilewise: Tilewise, io: str) -> None:
    turn = list(ONE_FILE).index(io)
    for extents in (((0, 4), (4, 0))[turn % 2], (2, 7)):
        values = made(
            tilewise, "--kind", "ramp", "--shape", shape_of(extents), "-n", 3, "--io", io, "--force"
        )
        assert numpy.array_equal(values, numpy.arange(extents[0] * extents[1], dtype=float).reshape(extents))


@pytest.mark.parametrize("io", ONE_FILE)
def test_more_than_one_buffer_of_numbers(tilewise: Tilewise, io: str) -> None:
    values = made(tilewise, "--kind", "ramp", "--shape", "1501x3001", "-n", 3, "--io", io, "--sync")
    assert numpy.array_equal(values, numpy.arange(1501 * 3001, dtype=float).reshape(1501, 3001))


@pytest.mark.parametrize("dtype", ["int32", "complex64", "float16"])
def test_a_random_name_means_the_file_that_generate_makes(tilewise: Tilewise, dtype: str) -> None:
    """On 1, 2 and 3 ranks, every one of which makes its own block."""
    left = made(tilewise, "--shape", "47x31", "--dtype", dtype, "--seed", 3, name="A.npy")
    right = made(tilewise, "--shape", "31x29", "--dtype", dtype, "--seed", 4, name="B.npy")
    for ranks in (1, 2, 3):
        record = record_of(
            tilewise(
                "multiply",
                f"random:47x31:{dtype}:3",
                f"random:31x29:{dtype}:4",
                "-o",
                "C.npy",
                "-n",
                ranks,
                "--force",
                "--json",
                "-",
            )
        )
        assert record["bytes"]["read"] == 0
        assert_product(tilewise.folder / "C.npy", left, right)


@pytest.mark.parametrize(
    ("made_as", "other"),
    [("int32", "float64"), ("uint8", "int8"), ("float32", "float64"), ("float16", "float32")],
)
def test_a_random_name_keeps_its_own_type_beside_another(
    tilewise: Tilewise, made_as: str, other: str
) -> None:
    """The product has another type than the generated operand, whose numbers stay those of its own type."""
    left = made(tilewise, "--shape", "9x11", "--dtype", made_as, name="A.npy")
    right = numpy.eye(11, dtype=other)
    numpy.save(tilewise.folder / "B.npy", right)
    result = tilewise("multiply", f"random:9x11:{made_as}", "B.npy", "-o", "C.npy", "-n", 2)
    assert result.returncode == 0, result.stderr
    assert_product(tilewise.folder / "C.npy", left, right)


def test_a_random_name_and_a_file(tilewise: Tilewise) -> None:
    left = made(tilewise, "--shape", "31x47", name="A.npy")
    result = tilewise("multiply", "A.npy", "random:31x47", "-o", "C.npy", "-n", 3, "--transpose-a")
    assert result.returncode == 0, result.stderr
    assert_product(tilewise.folder / "C.npy", left.T, left)


@pytest.mark.parametrize(
    "words", [("--kind", "normal", "--dtype", "int8"), ("--kind", "graded", "--dtype", "uint64")]
)
def test_kinds_that_a_type_cannot_hold(tilewise: Tilewise, words: tuple[str, ...]) -> None:
    assert "fractions" in one_message(tilewise("generate", "-o", "A.npy", "--shape", "3x3", *words), 2)
    assert tilewise.files() == set()


def test_a_ramp_that_a_type_cannot_hold(tilewise: Tilewise) -> None:
    words = ("generate", "-o", "A.npy", "--kind", "ramp", "--dtype", "float16", "--shape")
    assert "65504" in one_message(tilewise(*words, "5x13102"), 2)
    assert tilewise.files() == set()
    values = made(tilewise, *words[3:], "5x13101")  # to 65504, its largest number
    assert numpy.array_equal(values, numpy.arange(65505).astype("float16").reshape(5, 13101))
