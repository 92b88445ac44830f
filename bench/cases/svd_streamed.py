"""Larger than memory: all components beside the same in memory, and the largest ones beside Dask."""

from __future__ import annotations

import json
import os
import statistics
from pathlib import Path
from typing import Any

import numpy
from harness import ROOT, Row, Sample, Setting, alternate, compare, run
from numpy.typing import NDArray

from cases.svd_side import TWO_RANKS, TWO_THREADS, decomposed, reported

BLOCK = 1 << 24  # numbers that are made at once
THEIRS = 4


def tall(setting: Setting) -> list[Row]:
    """200,000 x 500 float32 within 256 MiB, over the time of the fastest way in memory."""
    shape, memory = ((20_000, 60), 80) if setting.quick else ((200_000, 500), 256)
    path = _made(setting.work / f"tall-{shape[0]}x{shape[1]}.npy", shape, "float32")
    exact = _values(path)
    rows = []
    for way, how in {"2 threads": TWO_THREADS, "2 ranks": TWO_RANKS}.items():
        rows += reported(f"svd-tall-{way}", way, _tall, setting, path, exact, way, how, memory)
    return rows


def _tall(
    setting: Setting, path: Path, exact: NDArray[Any], way: str, how: tuple[object, ...], memory: int
) -> list[Row]:
    said: dict[str, dict[str, Any]] = {}

    def ours(algorithm: str, *limit: object) -> Sample:
        def sample() -> list[float]:
            record = decomposed(setting, path, *how, *limit, "--no-verify", algorithm=algorithm)
            found = numpy.load(setting.work / "svd/s.npy").astype("float64")
            error = float(numpy.abs(found - exact).max() / exact[0])
            said[algorithm] = {"error": error, "resident": record["peak_rss_bytes"]["node_sum"] >> 20}
            return [record["seconds"]["total"]["max"]]

        return sample

    sides = {"tall": ours("tall", "--memory", f"{memory}MiB"), "in memory": ours("two_stage")}
    samples = alternate(sides, setting.rounds)
    row = Row(f"svd-tall-{way.replace(' ', '-')}", f"{way}, {memory} MiB: time over two_stage", "", 0)
    row.samples = samples
    row.note = "; ".join(
        f"{name}: {one['resident']} MiB, values to {one['error']:.1e}" for name, one in said.items()
    )
    return [compare(row, samples["tall"], samples["in memory"])]


def beside_dask(setting: Setting) -> list[Row]:
    """The 50 largest of 1,000,000 x 200 within 512 MiB, over Dask's time with iterations that are as exact.

    Dask is looked for in the Python that TILEWISE_BENCH_DASK names. Its process may write to THEIRS times as
    much memory: with as much, and now and then with twice as much, it dies.
    """
    python = os.environ.get("TILEWISE_BENCH_DASK", "")
    if not python:
        return [Row("svd-dask", "Dask", "", 0, note="TILEWISE_BENCH_DASK names no Python that has it")]
    shape, k, memory = ((50_000, 60), 10, 256) if setting.quick else ((1_000_000, 200), 50, 512)
    path = _made(setting.work / f"dask-{shape[0]}x{shape[1]}.npy", shape, "float64")
    exact, rows = _values(path)[:k], []
    for iterations in (0, 2, 8):
        name = f"svd-dask-{iterations}"
        rows += reported(name, name, _dask, setting, python, path, exact, iterations, memory)
    return rows


def _dask(
    setting: Setting, python: str, path: Path, exact: NDArray[Any], iterations: int, memory: int
) -> list[Row]:
    said: dict[str, Any] = {}

    def ours() -> list[float]:
        words = ("--components", len(exact), "--memory", f"{memory}MiB", "--no-verify", *TWO_THREADS)
        record = decomposed(setting, path, *words, algorithm="auto")
        found = numpy.load(setting.work / "svd/s.npy")
        said["ours"] = (found, record["peak_rss_bytes"]["node_sum"])
        return [record["seconds"]["total"]["max"]]

    def theirs() -> list[float]:
        program = ROOT / "bench/peers/dask_svd.py"
        words = [python, program, path, len(exact), iterations, THEIRS * memory, 25_000]
        answer = json.loads(run(words))
        said["Dask"] = (numpy.array(answer["s"]), answer["resident"])
        return [answer["seconds"]]

    samples = alternate({"Dask": theirs, "ours": ours}, setting.rounds)
    row = Row(f"svd-dask-{iterations}", f"faster than Dask with {iterations} iterations", "", 0)
    row.samples = samples
    digits = {name: float(numpy.abs(s / exact - 1).max()) for name, (s, _) in said.items()}
    row.note = "; ".join(
        f"{name}: {statistics.median(samples[name]):.4g} s, values to {digits[name]:.1e}, {used >> 20} MiB"
        for name, (_, used) in said.items()
    )
    return [compare(row, samples["Dask"], samples["ours"])]


def _made(path: Path, shape: tuple[int, int], dtype: str) -> Path:
    """Normal numbers whose columns fall from 1 to 1/20 in scale; made once, a block after the other."""
    if path.exists():
        return path
    rows, columns = shape
    scales = 20.0 ** -numpy.linspace(0, 1, columns)
    part = path.with_suffix(".part")
    draw = numpy.random.default_rng(1)
    with part.open("wb") as file:
        head = {"descr": numpy.dtype(dtype).str, "fortran_order": False, "shape": shape}
        numpy.lib.format.write_array_header_1_0(file, head)
        high = BLOCK // columns
        for first in range(0, rows, high):
            block = draw.standard_normal((min(high, rows - first), columns)) * scales
            file.write(block.astype(dtype).tobytes())
    part.rename(path)
    return path


def _values(path: Path) -> NDArray[Any]:
    """By eigenvalues of AᵀA in float64, which knows these, none of which is small, to some 13 digits."""
    matrix = numpy.load(path, mmap_mode="r")
    columns = matrix.shape[1]
    gram = numpy.zeros((columns, columns))
    for first in range(0, len(matrix), BLOCK // columns):
        block = numpy.asarray(matrix[first : first + BLOCK // columns], dtype="float64")
        gram += block.T @ block
    values: NDArray[Any] = numpy.sqrt(numpy.linalg.eigvalsh(gram)[::-1])
    return values
