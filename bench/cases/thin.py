"""Products that are not square, beside numpy: few columns or rows, a long sum for a small C, few k.

Both sides compute in memory, on two cores: tilewise on one rank with two threads and on two ranks.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
from pathlib import Path

from harness import Row, Sample, Setting, alternate, compare, run, tilewise

PEER = Path(__file__).resolve().parents[1] / "peers" / "numpy_thin.py"
RUNS = 5
NAMED = (
    (256, 65536, 256, "float64"),
    (1000, 1000, 17, "float64"),
    (8192, 8192, 1, "float64"),
    (8192, 8192, 1, "float32"),
    (1, 8192, 8192, "float64"),
    (8192, 8192, 8, "float64"),
    (4000, 16, 4000, "float64"),
)
WAYS = (("1 rank × 2 threads", ("-n", 1, "-t", 2)), ("2 ranks", ("-n", 2, "-t", 1)))
NUMBERS = (2e6, 4e7)  # of A, B and C together, of a random shape
OPERATIONS = 4e9  # multiplications of one, at most

Shape = tuple[int, int, int, str]


def words(shape: Shape) -> str:
    m, k, n, dtype = shape
    return f"{m}x{k}x{n}:{dtype}"


def ours(setting: Setting, shape: Shape, how: tuple[object, ...]) -> Sample:
    """Seconds of compute and exchange of each repetition, the slowest rank of each."""

    def sample() -> list[float]:
        m, k, n, dtype = shape
        inputs = (f"random:{m}x{k}:{dtype}:1", f"random:{k}x{n}:{dtype}:2")
        in_memory = ("--verify", "off", "--warmup", 1, "--repeat", RUNS)
        output, record = setting.work / "C.npy", setting.work / "record.json"
        answer = tilewise("multiply", *inputs, "-o", output, *how, *in_memory, record=record)
        output.unlink()
        return [one["compute"] + one["exchange"] for one in answer["samples"]]

    return sample


def numpy_product(shape: Shape) -> Sample:
    return lambda: list(json.loads(run([sys.executable, PEER, RUNS, words(shape)]))[0])


def named(setting: Setting) -> list[Row]:
    """The shapes that stand in tables."""
    rows = []
    for shape in NAMED[:2] if setting.quick else NAMED:
        sides = {way: ours(setting, shape, how) for way, how in WAYS}
        samples = alternate({**sides, "numpy": numpy_product(shape)}, setting.rounds)
        for way, _ in WAYS:
            what = f"speed, {words(shape)}, {way}, over numpy"
            row = Row(f"thin-{words(shape)}-{way[0]}", what, "at least", 1.0)
            rows.append(compare(row, samples["numpy"], samples[way]))
            rows[-1].samples = {way: samples[way], "numpy": samples["numpy"]}
    return rows


def drawn(count: int) -> list[Shape]:
    """Shapes of each of four kinds in turn, the same in every run."""
    source = random.Random(1)

    def about(least: float, most: float) -> int:
        return int(math.exp(source.uniform(math.log(least), math.log(most))))

    shapes: list[Shape] = []
    while len(shapes) < count:
        many, few, deep = about(500, 50000), about(1, 32), about(500, 20000)
        kinds = (
            (many, deep, few),
            (few, deep, many),
            (about(16, 400), about(20000, 300000), about(16, 400)),
            (about(500, 6000), about(2, 64), about(500, 6000)),
        )
        m, k, n = kinds[len(shapes) % len(kinds)]
        if NUMBERS[0] < m * k + k * n + m * n < NUMBERS[1] and m * k * n < OPERATIONS:
            shapes.append((m, k, n, source.choice(("float64", "float32"))))
    return shapes


def random_shapes(setting: Setting) -> list[Row]:
    """Median and worst ratio over many shapes, each a median of its runs."""
    shapes = drawn(8 if setting.quick else 60)
    rows = []
    for way, how in WAYS:
        ratios = {}
        for shape in shapes:
            pair = alternate({"ours": ours(setting, shape, how), "numpy": numpy_product(shape)}, 2)
            ratios[words(shape)] = min(pair["numpy"]) / min(pair["ours"])
        worst = min(ratios, key=lambda name: ratios[name])
        for name, target, ratio, note in (
            ("median", 1.02, statistics.median(ratios.values()), ""),
            ("worst", 0.93, ratios[worst], worst),
        ):
            what = f"speed, {len(shapes)} thin shapes, {name}, {way}, over numpy"
            row = Row(f"thin-random-{name}-{way[0]}", what, "at least", target, ratio, note=note)
            row.samples = {"ratio": sorted(ratios.values())}
            rows.append(row)
    return rows
