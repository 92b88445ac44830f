"""The product kernel alone beside numpy's matmul, on squares and random shapes; what the table should say.

The table is `cpp/tilewise/kernel/product/gemm_blocking.cpp`. Where it takes our own tiles, rows named "tiles
over BLAS" say whether that is right on this machine: above one, it is.
"""

from __future__ import annotations

import math
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from harness import BIN, ROOT, Row, Setting, clean_environment, compare, run, say

PEERS = Path(__file__).resolve().parents[1] / "peers"
THREADS = 2
CALM = 0.08  # seconds until the threads that numpy's BLAS keeps spinning sleep

Shape = tuple[str, int, int, int]


class Server:
    """A program that answers each line with the seconds of one product, and what computed it."""

    def __init__(self, command: Sequence[str | Path], **more: str) -> None:
        environment = clean_environment(**more)
        self._process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.told = ""

    def seconds(self, shape: Shape, kernel: str) -> float:
        """Of the second of two products in a row: the first wakes threads and fills caches."""
        assert self._process.stdin is not None and self._process.stdout is not None
        for _ in range(2):
            self._process.stdin.write(" ".join(map(str, shape)) + f" {kernel} {THREADS}\n")
            self._process.stdin.flush()
            seconds, _, self.told = self._process.stdout.readline().strip().partition(" ")
        return float(seconds)

    def close(self) -> None:
        self._process.communicate()


def measured(shape: Shape, ours: Server, numpy: Server, rounds: int) -> dict[str, list[float]]:
    """Seconds of both kernels of ours and of numpy, in turns."""
    samples: dict[str, list[float]] = {"fast": [], "blas": [], "numpy": []}
    for _ in range(rounds):
        for kernel in ("fast", "blas"):
            samples[kernel].append(ours.seconds(shape, kernel))
        samples["numpy"].append(numpy.seconds(shape, "-"))
        time.sleep(CALM)
    return samples


@cache
def build() -> Path:
    folder = ROOT / "build/bench-memory"
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DTILEWISE_BENCH=ON", f"-DPython_EXECUTABLE={BIN / 'python'}"]
    run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options])
    run(["cmake", "--build", folder, "--target", "tilewise-products"])
    return folder / "bench/tilewise-products"


def servers() -> tuple[Server, Server]:
    numpy: list[str | Path] = [sys.executable, PEERS / "numpy_products.py"]
    # One thread of BLAS, as jobs have it: others would spin for a tenth of a second when the program begins.
    return Server([build()], OPENBLAS_NUM_THREADS="1"), Server(numpy, OPENBLAS_NUM_THREADS=str(THREADS))


def squares(setting: Setting) -> list[Row]:
    """Squares of both types on two threads, and what the table should say of this processor."""
    rows = []
    ours, numpy = servers()
    for dtype in ("float64", "float32"):
        for n in (1024, 2048) if setting.quick else (1024, 2048, 4096):
            say(f"    {dtype}, {n}")
            samples = measured((dtype, n, n, n), ours, numpy, setting.rounds)
            setting.facts[f"products_{dtype}"] = ours.told
            row = Row(f"product-{dtype}-{n}", f"speed, {dtype}, N={n}, over numpy", "at least", 1.0)
            row.samples = {"tilewise": samples["fast"], "numpy": samples["numpy"]}
            rows.append(compare(row, samples["numpy"], samples["fast"]))
            row = Row(f"choice-{dtype}-{n}", f"{dtype}, N={n}, tiles over BLAS", "", 1.0)
            row.samples = {"tilewise": samples["fast"], "BLAS": samples["blas"]}
            rows.append(compare(row, samples["blas"], samples["fast"]))
    ours.close()
    numpy.close()
    return rows


def random_shapes(setting: Setting) -> list[Row]:
    """Sides drawn evenly by their logarithm: the median of all ratios, and the worst."""
    draw = random.Random(23)
    count, most = (20, 1000) if setting.quick else (200, 4096)
    ours, numpy = servers()
    ratios: dict[Shape, float] = {}
    for index in range(count):
        m, n, k = (round(math.exp(draw.uniform(math.log(64), math.log(most)))) for _ in range(3))
        shape = (("float64", "float32")[index % 2], m, n, k)
        samples = measured(shape, ours, numpy, max(3, setting.rounds))
        ratios[shape] = statistics.median(samples["numpy"]) / statistics.median(samples["fast"])
    ours.close()
    numpy.close()
    worst = min(ratios, key=lambda shape: ratios[shape])
    median = Row("random-median", f"speed over numpy, median of {count} shapes", "at least", 1.02)
    least = Row("random-worst", f"speed over numpy, worst of {count} shapes", "at least", 0.93)
    median.ratio, least.ratio = statistics.median(ratios.values()), ratios[worst]
    least.note = " ".join(map(str, worst))
    median.samples = {"ratios": list(ratios.values())}
    return [median, least]
