"""`tilewise transpose` against numpy: every scheme, exchange and way of touching files, shapes and types."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import numpy
import pytest
from conftest import Done, Tilewise, one_message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from machines import facts
from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.launch.constants import constants
from tilewise.machine import storage
from tilewise.operations.transpose.cost import TransposeSizes
from tilewise.operations.transpose.options import ALGORITHMS as TRANSPOSE
from tilewise.operations.transpose.options import ROOT_WRITES, Transpose
from tilewise.planning import need
from tilewise.planning.choices import Strategies
from tilewise.planning.plan import Plan

JOB = ("transpose", "--force")
TYPES = ("int8", "uint16", "float16", "float32", "int64", "float64", "complex64", "complex128")
FACTS = facts()
SHAPES = ((1, 1), (1, 9), (1000, 3), (7, 64), (131, 257), (0, 5))


def numbers(shape: tuple[int, int], dtype: str = "float64") -> Any:
    """Numbers of which hardly two are the same."""
    generator = numpy.random.default_rng(7)
    return (generator.standard_normal(shape) * 100).astype(dtype)


@pytest.mark.parametrize(("dtype", "shape"), [*zip(TYPES, itertools.cycle(SHAPES), strict=False)])
def test_types_and_odd_shapes(tilewise: Tilewise, done: Done, dtype: str, shape: tuple[int, int]) -> None:
    matrix = numbers(shape, dtype)
    numpy.save(tilewise.folder / "A.npy", matrix)
    done("A.npy", "-o", "B.npy")
    result = numpy.load(tilewise.folder / "B.npy")
    assert result.dtype == matrix.dtype and result.flags.c_contiguous
    assert numpy.array_equal(result, matrix.T)


@pytest.mark.parametrize(
    ("algorithm", "exchange"),
    [(name, exchange) for name, entry in TRANSPOSE.items() for exchange in entry.exchanges],
)
def test_every_exchange(tilewise: Tilewise, done: Done, algorithm: str, exchange: str) -> None:
    matrix = numbers((61, 45))
    numpy.save(tilewise.folder / "A.npy", matrix)
    for ranks, grid in ((4, "2x2"), (6, "3x2")):
        how = ("-n", ranks, "-t", 1, "--grid", grid, "--algorithm", algorithm, "--exchange", exchange)
        record = done("A.npy", "-o", "B.npy", *how, "--repeat", 2, "--verify", "fast")
        assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
        assert record["variant"]["exchange"] == exchange and record["ranks_working"] == ranks
        assert record["verification"]["passed"] and len(record["samples"]) == 2


@pytest.mark.parametrize("root_write", ROOT_WRITES)
def test_every_way_of_rank_0(tilewise: Tilewise, done: Done, root_write: str) -> None:
    matrix = numbers((33, 50), "int16")
    numpy.save(tilewise.folder / "A.npy", matrix)
    record = done("A.npy", "-o", "B.npy", "-n", 3, "--root-write", root_write)
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
    assert record["variant"]["root_write"] == root_write and record["variant"]["algorithm"] == "gather"


@pytest.mark.parametrize("algorithm", ["reread", "staged", "swap"])
@pytest.mark.parametrize(
    "io",
    [
        "collective",
        "independent",
        "ordered",
        "shared_pointer:collective",
        "two_phase",
        "root",
        "sieve",
        "uncached",
        "mapped:positioned",
    ],
)
def test_every_way_of_touching_files(tilewise: Tilewise, done: Done, algorithm: str, io: str) -> None:
    matrix = numbers((600, 513), "float32")
    numpy.save(tilewise.folder / "A.npy", matrix)
    record = done("A.npy", "-o", "B.npy", "-n", 2, "--algorithm", algorithm, "--io", io)
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
    assert record["variant"]["algorithm"] == algorithm


def test_more_ranks_than_blocks(tilewise: Tilewise, done: Done) -> None:
    matrix = numbers((2, 2))
    numpy.save(tilewise.folder / "A.npy", matrix)
    record = done("A.npy", "-o", "B.npy", "-n", 6, "--algorithm", "swap")
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
    assert record["ranks_working"] < 6


def test_orders_of_storage(tilewise: Tilewise, done: Done) -> None:
    """Between C and F order nothing is turned, and the record says so."""
    matrix = numbers((70, 41))
    for order in "CF":
        numpy.save(tilewise.folder / "A.npy", numpy.asarray(matrix, order=order))  # type: ignore[call-overload]
        for wanted in "CF":
            record = done("A.npy", "-o", "B.npy", "--order", wanted)
            result = numpy.load(tilewise.folder / "B.npy")
            assert numpy.array_equal(result, matrix.T)
            assert result.flags.f_contiguous == (wanted == "F")
            assert record["result"]["turned"] == (order == wanted)


def test_byte_order_and_formats(tilewise: Tilewise, done: Done) -> None:
    matrix = numbers((53, 88))
    numpy.save(tilewise.folder / "big.npy", matrix.astype(">f8"))
    for words in ((), ("--algorithm", "swap", "-n", 2), ("--io", "positioned")):
        done("big.npy", "-o", "B.npy", *words)
        assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
    for name in ("B.txt", "B.tiles", "B.h5:/B", "B.mtx"):
        for words in ((), ("--algorithm", "gather", "-n", 2), ("--algorithm", "reread", "-n", 3)):
            done("big.npy", "-o", name, *words, "--verify", "fast")
            done(name, "-o", "C.npy", *words)
            assert numpy.array_equal(numpy.load(tilewise.folder / "C.npy"), matrix)
    done(
        "random:40x30:float32:5",
        "-o",
        "R.npy",
        "-n",
        2,
        "--algorithm",
        "swap",
        "--verify",
        "serial",
    )
    done("random:40x30:float32:5", "-o", "S.npy")
    assert numpy.array_equal(numpy.load(tilewise.folder / "R.npy"), numpy.load(tilewise.folder / "S.npy"))


def test_a_cap_far_below_the_size(tilewise: Tilewise, done: Done) -> None:
    """Tiles of a few MiB, of which many are needed; ranks never hold more than they may."""
    matrix = numbers((3000, 2500))
    numpy.save(tilewise.folder / "A.npy", matrix)
    for io in ("positioned", "uncached"):
        record = done("A.npy", "-o", "B.npy", "--memory", "64MiB", "-n", 1, "--io", io)
        assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
        assert record["peak_rss_bytes"]["node_sum"] <= 64 << 20


LONG = 4_000_000  # numbers in a row, of which a proof or a band should not hold a whole one


def test_a_proof_does_not_hold_long_rows(tilewise: Tilewise, done: Done) -> None:
    for dtype, ranks in (("float64", 1), ("int8", 1), ("float32", 2)):
        matrix = numpy.arange(LONG, dtype=dtype).reshape(1, -1)
        numpy.save(tilewise.folder / "A.npy", matrix)
        words = ("--io", "positioned", "--verify", "fast", "--memory", f"{64 * ranks}MiB", "-n", ranks)
        record = done("A.npy", "-o", "B.npy", *words)
        assert record["verification"]["passed"]
        assert record["peak_rss_bytes"]["max_rank"] <= 64 << 20
        assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)


@pytest.mark.parametrize("ranks", [1, 2])
def test_long_lines_are_counted(tilewise: Tilewise, done: Done, ranks: int) -> None:
    """Lines of a text are parsed and formatted whole: what that takes is refused, or known before."""
    matrix = numbers((1, LONG // 4))
    numpy.save(tilewise.folder / "A.npy", matrix.T)
    staged = ("-n", ranks, "-t", 1, "--algorithm", "staged")
    for name, result in (("A.npy", "B.txt"), ("B.txt", "C.npy")):
        small = tilewise("transpose", name, "-o", result, *staged, "--memory", f"{85 * ranks}MiB", "--force")
        assert "but --memory allows" in one_message(small, 2)
        for verify in ("off", "fast", "serial"):
            if (ranks, verify) != (2, "serial"):
                record = done(name, "-o", result, *staged, "--verify", verify)
                assert record["peak_rss_bytes"]["node_sum"] <= record["needed_bytes"]
    assert numpy.array_equal(numpy.load(tilewise.folder / "C.npy"), matrix.T)


@pytest.mark.parametrize("method", ["fast", "serial"])
@pytest.mark.parametrize("name", ["B.npy", "B.txt", "B.csv", "B.mtx", "B.tiles"])
def test_a_wrong_number_is_found(tilewise: Tilewise, done: Done, name: str, method: str) -> None:
    for dtype in ("float64", "uint64", "complex128"):
        matrix = numbers((50, 60), "float64" if dtype == "float64" else "int16").astype(dtype)
        matrix[-1, -1] = numpy.iinfo("uint64").max if dtype == "uint64" else -0.0
        numpy.save(tilewise.folder / "A.npy", matrix)
        words = ("A.npy", "-o", name, "-n", 2, "--verify", method)
        assert done(*words)["verification"]["passed"]
        before = contents(tilewise, name)
        tilewise.environment["TILEWISE_FAULT"] = "element"
        run = tilewise("transpose", *words, "--force")
        del tilewise.environment["TILEWISE_FAULT"]
        assert run.returncode == 3, run.stderr
        assert contents(tilewise, name) == before


def contents(tilewise: Tilewise, name: str) -> list[bytes]:
    """The bytes of a file, or of all files of a folder."""
    path = tilewise.folder / name
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file.read_bytes() for file in files]


@pytest.mark.parametrize("method", ["fast", "serial"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex128", ">f8"])
def test_a_text_has_one_word_for_nan(tilewise: Tilewise, done: Done, dtype: str, method: str) -> None:
    matrix = numbers((30, 40)).astype(dtype)
    matrix[3, 5], matrix[7, 0] = numpy.nan, numpy.copysign(numpy.nan, -1)
    if dtype == "float64":
        matrix.view("uint64")[9, 9] = 0x7FF0_0000_0000_BEEF  # with a payload, and signalling
    numpy.save(tilewise.folder / "A.npy", matrix)
    words = ("A.npy", "-o", "B.txt", "--verify", method)
    assert done(*words)["verification"]["passed"]
    tilewise.environment["TILEWISE_FAULT"] = "element"
    assert tilewise("transpose", *words, "--force").returncode == 3


def planned(source: Region, name: str, **choices: Any) -> Plan:
    """The plan for transposing `source` to a file called `name`, on 8 cores with much memory."""
    target = Target(f"/nowhere/{name}", name, None)
    return Transpose(a=source.name, output=name, **choices).plan([source], target, FACTS, None)


def test_the_grid_lies_over_the_input_as_stored() -> None:
    tall = Region(path="/a.npy", name="a.npy", rows=1000, columns=10, dtype="float64", order="F")
    plan = planned(tall, "b.npy", ranks=6, algorithm="swap", exchange="overlap")
    assert plan.job.variant.grid == (2, 3)
    # Stored it is 10 × 1000, and so 5 × 334 as read; the result is stored 10 × 1000 where it is not turned.
    assert plan.need.blocks == 5 * 334 * 8
    fixed = need.FIXED
    assert plan.need.rank == 4 * 5 * 334 * 8 + fixed
    square = msgspec.structs.replace(tall, order="C")  # 1000 × 10 on 3 × 2 ranks, and 10 × 1000 on the same
    plan = planned(square, "b.npy", ranks=6, algorithm="swap", exchange="overlap")
    assert plan.job.variant.grid == (3, 2)
    assert plan.need.rank == 2 * (334 * 5 + 4 * 500) * 8 + fixed


@pytest.mark.parametrize(
    ("name", "dtype", "byte_order", "strips"),
    [
        ("b.npy", "float64", "little", True),
        ("b.npy", "float64", "big", False),
        ("b.petsc", "float64", "little", False),
        ("b.petsc", "float64", "big", True),
        ("b.pgm", "uint16", "little", False),
        ("b.pgm", "uint8", "little", True),
    ],
)
def test_mapped_strips_need_one_byte_order(name: str, dtype: str, byte_order: str, strips: bool) -> None:
    source = Region(path="/a.npy", name="a.npy", rows=9000, columns=9000, dtype=dtype, byte_order=byte_order)
    plan = planned(source, name, ranks=1, threads=1, io=Strategies("mapped", "positioned"))
    expected = (
        constants("transpose", TransposeSizes).mapped_strip_bytes if strips else 3 * plan.job.band_bytes
    )
    assert plan.need.buffers == expected


def test_what_a_small_page_cache_would_not_gather_goes_past_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the result are no whole pages: the page cache makes long writes of pieces, if it holds them."""
    monkeypatch.setattr(storage, "takes_direct", lambda path: True)
    source = Region(path="/a.npy", name="a.npy", rows=17001, columns=17001, dtype="float64")
    for available, write in ((4 << 30, "positioned"), (256 << 20, "uncached")):
        options = Transpose(a="a.npy", output="b.npy", memory=128 << 20, ranks=1)
        target = Target("/nowhere/b.npy", "b.npy", None)
        plan = options.plan([source], target, facts(memory_available=available), None)
        assert plan.job.variant.write == write


def test_reasons_speak_of_one_matrix() -> None:
    source = Region(path="/a.npy", name="a.npy", rows=900, columns=900, dtype="float64")
    reasons = planned(source, "b.npy", ranks=4, algorithm="swap").reasons
    assert "shared: all ranks are on one node and /dev/shm has space for the matrix" in reasons


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--algorithm", "staged", "--exchange", "overlap"), "staged: every rank works on its own"),
        (("--algorithm", "reread", "--exchange", "shared"), "try: --algorithm swap"),
        (("--algorithm", "staged", "--grid", "1x1"), "--grid makes no sense with staged"),
        (("--algorithm", "staged", "--repeat", "2"), "make no sense with staged"),
    ],
)
def test_what_makes_no_sense(tilewise: Tilewise, words: tuple[str, ...], said: str) -> None:
    numpy.save(tilewise.folder / "A.npy", numbers((5, 6)))
    assert said in one_message(tilewise("transpose", "A.npy", "-o", "B.npy", *words), 2)
    assert tilewise.files() == {"A.npy"}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some.integers(1, 90), some.integers(1, 90), some.sampled_from(list(TRANSPOSE)), some.integers(1, 4))
def test_any_shape(
    tilewise: Tilewise, done: Done, rows: int, columns: int, algorithm: str, ranks: int
) -> None:
    matrix = numbers((rows, columns), "int32")
    numpy.save(tilewise.folder / "A.npy", matrix)
    done("A.npy", "-o", "B.npy", "-n", ranks, "-t", 1, "--algorithm", algorithm)
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
