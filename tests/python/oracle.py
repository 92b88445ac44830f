"""What a product must be, matrices to multiply, and what a run may leave behind."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import psutil
from conftest import Tilewise, wait_for
from stopwatch import within
from tilewise.operations.multiply.options import ALGORITHMS
from tilewise.planning.names import ONE_FILE

Array = numpy.ndarray[Any, numpy.dtype[Any]]

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
RANKS = (4, 3, 2, 1, 6)
DTYPES = (*INTEGERS, "float16", "float32", "float64", "complex64", "complex128")


def matrix(shape: tuple[int, int], dtype: str = "float64", seed: int = 0, order: str = "C") -> Array:
    """Small whole numbers for integers, else normally distributed ones; `dtype` may say > for big endian."""
    kind = numpy.dtype(dtype)
    random = numpy.random.default_rng(seed)
    if kind.kind == "b":
        values: Array = random.integers(0, 2, shape)
    elif kind.kind in "iu":
        values = random.integers(0 if kind.kind == "u" else -9, 10, shape)
    else:
        values = random.standard_normal(shape)
        if kind.kind == "c":
            values = values + 1j * random.standard_normal(shape)
    return numpy.array(values.astype(kind), order="F" if order == "F" else "C")


def promised(left: numpy.dtype[Any], right: numpy.dtype[Any]) -> numpy.dtype[Any]:
    """The product's type: 64-bit integers, float32 instead of float16, else what numpy makes of both."""
    if left.kind in "iub" and right.kind in "iub":
        return numpy.dtype("int64" if "i" in (left.kind, right.kind) else "uint64")
    common = numpy.result_type(left.newbyteorder("="), right.newbyteorder("="))
    return numpy.dtype("float32") if common == numpy.float16 else common


def assert_product(path: Path, left: Array, right: Array) -> None:
    """Checks the file at `path`: type, shape and order; integers exactly, the rest within rounding."""
    product = numpy.load(path)
    dtype = promised(left.dtype, right.dtype)
    assert product.dtype == dtype and product.dtype.isnative
    assert product.shape == (left.shape[0], right.shape[1])
    assert product.flags.c_contiguous
    if dtype.kind in "iu":
        assert numpy.array_equal(product, left.astype(dtype) @ right.astype(dtype))
        return
    wide = numpy.complex128 if dtype.kind == "c" else numpy.float64
    a, b = left.astype(wide), right.astype(wide)
    bound = (left.shape[1] + 8) * numpy.finfo(dtype).eps * (numpy.abs(a) @ numpy.abs(b))
    error = numpy.abs(product - a @ b)
    assert (error <= bound).all(), (
        f"off by {(error / numpy.maximum(bound, 1e-300)).max():.3g} times the bound"
    )


def save(folder: Path, left: Array, right: Array) -> None:
    """A.npy and B.npy."""
    numpy.save(folder / "A.npy", left)
    numpy.save(folder / "B.npy", right)


def ways_to_multiply(without: str = "") -> list[tuple[str, str | None, int, str]]:
    """Algorithm, exchange, ranks and io: each algorithm meets each of the others at least once.

    No way has the exchange `without`. The library's own tests run each exchange on each number of ranks.
    """
    ways: list[tuple[str, str | None, int, str]] = []
    for algorithm in ALGORITHMS.values():
        counts = [ranks for ranks in RANKS if algorithm.takes(ranks)]
        exchanges = [each for each in algorithm.exchanges if each != without] or [None]
        for i in range(max(len(exchanges), len(ONE_FILE))):
            exchange, io = exchanges[i % len(exchanges)], list(ONE_FILE)[i % len(ONE_FILE)]
            ways.append((algorithm.name, exchange, counts[i % len(counts)], io))
    return ways


def record_of(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The record that `--json -` printed, and nothing else there."""
    assert result.returncode == 0, result.stderr
    record: dict[str, Any] = json.loads(result.stdout)
    return record


def processes_in(folder: Path) -> list[int]:
    """Pids of the living processes whose working folder is `folder`: ranks, launchers, whatever else."""
    processes = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()) == folder:
                processes.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return [pid for pid in processes if pid != os.getpid()]


def state_of(path: Path) -> tuple[int, int, bytes]:
    """What shows whether anybody touched a file: its identity, its time, its bytes."""
    facts = path.stat()
    return facts.st_ino, facts.st_mtime_ns, path.read_bytes()


@contextmanager
def nothing_left(run: Tilewise, seconds: float, settle: float = 1.0) -> Iterator[None]:
    """Checks that what is done inside takes at most `seconds`, keeps C.npy and leaves nothing new."""
    target = run.folder / "C.npy"
    if not target.exists():
        numpy.save(target, numpy.full((2, 2), 7.0))
    before, names = state_of(target), run.files()
    with within(seconds):
        yield
    with within(settle):
        wait_for(lambda: not processes_in(run.folder))
    assert state_of(target) == before
    assert run.files() == names
