"""`tilewise transpose` against numpy: every scheme, exchange and way of touching files, shapes and types."""

from __future__ import annotations

import json
from typing import Any

import numpy
import pytest
from conftest import Tilewise, one_message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from tilewise.plan.names import ROOT_WRITES, TRANSPOSE

TYPES = ("int8", "uint16", "float16", "float32", "int64", "float64", "complex64", "complex128")
SHAPES = ((1, 1), (1, 9), (1000, 3), (7, 64), (131, 257), (0, 5))


def numbers(shape: tuple[int, int], dtype: str = "float64") -> Any:
    """Numbers of which hardly two are the same."""
    generator = numpy.random.default_rng(7)
    return (generator.standard_normal(shape) * 100).astype(dtype)


def done(tilewise: Tilewise, *words: object) -> dict[str, Any]:
    """Runs `tilewise transpose` to its end and returns the record."""
    run = tilewise("transpose", *map(str, words), "--force", "-q", "--json", "record.json")
    assert run.returncode == 0, run.stderr
    record: dict[str, Any] = json.loads((tilewise.folder / "record.json").read_text())
    return record


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_and_odd_shapes(tilewise: Tilewise, shape: tuple[int, int], dtype: str) -> None:
    matrix = numbers(shape, dtype)
    numpy.save(tilewise.folder / "A.npy", matrix)
    done(tilewise, "A.npy", "-o", "B.npy")
    result = numpy.load(tilewise.folder / "B.npy")
    assert result.dtype == matrix.dtype and result.flags.c_contiguous
    assert numpy.array_equal(result, matrix.T)


@pytest.mark.parametrize(
    ("algorithm", "exchange"),
    [(name, exchange) for name, entry in TRANSPOSE.items() for exchange in entry.exchanges],
)
def test_every_exchange(tilewise: Tilewise, algorithm: str, exchange: str) -> None:
    matrix = numbers((61, 45))
    numpy.save(tilewise.folder / "A.npy", matrix)
    for ranks, grid in ((4, "2x2"), (6, "3x2")):
        how = ("-n", ranks, "-t", 1, "--grid", grid, "--algorithm", algorithm, "--exchange", exchange)
        record = done(tilewise, "A.npy", "-o", "B.npy", *how, "--repeat", 2, "--verify", "fast")
        assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
        assert record["variant"]["exchange"] == exchange and record["ranks_working"] == ranks
        assert record["verification"]["passed"] and len(record["samples"]) == 2


@pytest.mark.parametrize("root_write", ROOT_WRITES)
def test_every_way_of_rank_0(tilewise: Tilewise, root_write: str) -> None:
    matrix = numbers((33, 50), "int16")
    numpy.save(tilewise.folder / "A.npy", matrix)
    record = done(tilewise, "A.npy", "-o", "B.npy", "-n", 3, "--root-write", root_write)
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
    assert record["variant"]["root_write"] == root_write and record["variant"]["algorithm"] == "gather"


@pytest.mark.parametrize("algorithm", ["reread", "staged", "swap"])
@pytest.mark.parametrize(
    "io", ["collective", "independent", "two_phase", "root", "sieve", "uncached", "mapped:positioned"]
)
def test_every_way_of_touching_files(tilewise: Tilewise, algorithm: str, io: str) -> None:
    matrix = numbers((600, 513), "float32")
    numpy.save(tilewise.folder / "A.npy", matrix)
    record = done(tilewise, "A.npy", "-o", "B.npy", "-n", 2, "--algorithm", algorithm, "--io", io)
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
    assert record["variant"]["algorithm"] == algorithm


def test_more_ranks_than_blocks(tilewise: Tilewise) -> None:
    matrix = numbers((2, 2))
    numpy.save(tilewise.folder / "A.npy", matrix)
    record = done(tilewise, "A.npy", "-o", "B.npy", "-n", 6, "--algorithm", "swap")
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
    assert record["ranks_working"] < 6


def test_orders_of_storage(tilewise: Tilewise) -> None:
    """Between C and F order nothing is turned, and the record says so."""
    matrix = numbers((70, 41))
    for order in "CF":
        numpy.save(tilewise.folder / "A.npy", numpy.asarray(matrix, order=order))  # type: ignore[call-overload]
        for wanted in "CF":
            record = done(tilewise, "A.npy", "-o", "B.npy", "--order", wanted)
            result = numpy.load(tilewise.folder / "B.npy")
            assert numpy.array_equal(result, matrix.T)
            assert result.flags.f_contiguous == (wanted == "F")
            assert record["result"]["turned"] == (order == wanted)


def test_byte_order_and_formats(tilewise: Tilewise) -> None:
    matrix = numbers((53, 88))
    numpy.save(tilewise.folder / "big.npy", matrix.astype(">f8"))
    for words in ((), ("--algorithm", "swap", "-n", 2), ("--io", "positioned")):
        done(tilewise, "big.npy", "-o", "B.npy", *words)
        assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
    for name in ("B.txt", "B.tiles", "B.h5:/B", "B.mtx"):
        for words in ((), ("--algorithm", "gather", "-n", 2), ("--algorithm", "reread", "-n", 3)):
            done(tilewise, "big.npy", "-o", name, *words, "--verify", "fast")
            done(tilewise, name, "-o", "C.npy", *words)
            assert numpy.array_equal(numpy.load(tilewise.folder / "C.npy"), matrix)
    done(
        tilewise,
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
    done(tilewise, "random:40x30:float32:5", "-o", "S.npy")
    assert numpy.array_equal(numpy.load(tilewise.folder / "R.npy"), numpy.load(tilewise.folder / "S.npy"))


def test_a_cap_far_below_the_size(tilewise: Tilewise) -> None:
    """Tiles of a few MiB, of which many are needed; ranks never hold more than they may."""
    matrix = numbers((3000, 2500))
    numpy.save(tilewise.folder / "A.npy", matrix)
    for io in ("positioned", "uncached"):
        record = done(tilewise, "A.npy", "-o", "B.npy", "--memory", "64MiB", "-n", 1, "--io", io)
        assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
        assert record["peak_rss_bytes"]["node_sum"] <= 64 << 20


@pytest.mark.parametrize("method", ["fast", "serial"])
def test_a_wrong_byte_is_found(tilewise: Tilewise, method: str) -> None:
    numpy.save(tilewise.folder / "A.npy", numbers((50, 60)))
    (tilewise.folder / "B.npy").write_bytes(b"old")
    tilewise.environment["TILEWISE_FAULT"] = "element"
    run = tilewise("transpose", "A.npy", "-o", "B.npy", "--force", "--verify", method)
    assert run.returncode == 3
    assert (tilewise.folder / "B.npy").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--algorithm", "cannon"), "known are auto, gather, swap, reread, staged"),
        (("--algorithm", "staged", "--exchange", "overlap"), "makes no sense with staged"),
        (("--algorithm", "swap", "--root-write", "rows"), "--root-write makes no sense with swap"),
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
def test_any_shape(tilewise: Tilewise, rows: int, columns: int, algorithm: str, ranks: int) -> None:
    matrix = numbers((rows, columns), "int32")
    numpy.save(tilewise.folder / "A.npy", matrix)
    done(tilewise, "A.npy", "-o", "B.npy", "-n", ranks, "-t", 1, "--algorithm", algorithm)
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.T)
