"""In memory: a matrix times its transpose, beside numpy, which computes half of it too (by syrk)."""

from __future__ import annotations

import json
import sys

from harness import Row, Sample, Setting, alternate, compare, run, tilewise

from cases.compute import PEERS

REPEAT = 4


def ours(setting: Setting, shape: tuple[int, int], dtype: str, side: str, ranks: int) -> Sample:
    """Seconds of compute and exchange of each repetition on two cores, the slowest rank of each."""

    def sample() -> list[float]:
        output = setting.work / "C.npy"
        a = f"random:{shape[0]}x{shape[1]}:{dtype}:1"
        in_memory = ["-n", ranks, "-t", 2 // ranks, "--verify", "off", "--warmup", 1, "--repeat", REPEAT]
        words = ["multiply", a, a, f"--transpose-{side}", "-o", output, *in_memory]
        record = tilewise(*words, record=setting.work / "record.json")
        output.unlink()
        return [one["compute"] + one["exchange"] for one in record["samples"]]

    return sample


def numpy_gram(setting: Setting, shape: tuple[int, int], dtype: str, side: str) -> Sample:
    def sample() -> list[float]:
        answer = json.loads(run([sys.executable, PEERS / "numpy_gram.py", *shape, dtype, side, 1, REPEAT]))
        setting.facts["numpy"] = answer["numpy"]
        return list(answer["seconds"])

    return sample


def two_cores(setting: Setting) -> list[Row]:
    """Two threads and two ranks, both sides, both precisions."""
    rows = []
    long, short = (2000, 1500) if setting.quick else (4000, 3000)
    for dtype in ("float64", "float32"):
        for side, words, shape in (("a", "AᵀA", (long, short)), ("b", "AAᵀ", (short, long))):
            samples = alternate(
                {
                    "2 threads": ours(setting, shape, dtype, side, 1),
                    "2 ranks": ours(setting, shape, dtype, side, 2),
                    "numpy": numpy_gram(setting, shape, dtype, side),
                },
                setting.rounds,
            )
            for how in ("2 threads", "2 ranks"):
                row = Row(
                    f"gram-{side}-{dtype}-{how.replace(' ', '-')}",
                    f"speed, {words}, {dtype}, {how}, A {shape[0]}×{shape[1]}, over numpy",
                    "at least",
                    1.0,
                )
                row.samples = {"tilewise": samples[how], "numpy": samples["numpy"]}
                rows.append(compare(row, samples["numpy"], samples[how]))
    return rows
