"""The algorithm that `svd` chooses for a shape and ranks, beside every other that could be chosen."""

from __future__ import annotations

import statistics
from pathlib import Path

from harness import Row, Sample, Setting, alternate, compare, say

from cases.svd_side import decomposed, stored

SHAPES = (
    *((n, n) for n in (64, 128, 192, 256, 384, 512, 640, 768, 1024, 1536, 2048, 4096)),
    *(
        (2000, 64),
        (5000, 100),
        (20_000, 200),
        (6000, 600),
        (4000, 2000),
        (100, 3000),
        (500, 1000),
        (1500, 4000),
    ),
)
QUICK = ((64, 64), (200, 200), (600, 300))
RANKS = (0, 1, 2, 4)  # 0: as many as `svd` chooses itself
ALGORITHMS = ("local", "two_stage", "jacobi")  # those that hold the matrix in memory
WORK = 3e8  # multiplications over M·N·min(M, N), below which a run decomposes more than once


def choice(setting: Setting) -> list[Row]:
    """Time of the choice over that of the fastest, which may have other ranks where none are asked for."""
    rows = []
    for shape in QUICK if setting.quick else SHAPES:
        say(f"  {shape[0]}x{shape[1]}")
        sides = _sides(setting, shape)
        samples = alternate(sides, setting.rounds)
        for ranks in RANKS:
            chosen = _name("auto", ranks)
            others = {
                name: statistics.median(took)
                for name, took in samples.items()
                if not name.startswith("auto") and (ranks == 0 or name.endswith(_name("", ranks)))
            }
            fastest = min(others, key=lambda name: others[name])
            what = f"{shape[0]}x{shape[1]}, {f'-n {ranks}' if ranks else 'ranks left open'}"
            row = Row(f"svd-choice-{what}", f"{what}: time over the fastest's", "at most", 1.05)
            row.samples = {name: samples[name] for name in (chosen, *others)}
            row.note = f"{setting.facts['chosen'][str(shape)][chosen]}; fastest: {fastest}"
            rows.append(compare(row, samples[chosen], samples[fastest]))
    return rows


def _name(algorithm: str, ranks: int) -> str:
    return f"{algorithm} -n {ranks}" if ranks else algorithm


def _sides(setting: Setting, shape: tuple[int, int]) -> dict[str, Sample]:
    """Every algorithm on every number of ranks that it works on."""
    path = stored(setting, "random", *shape)
    sides = {}
    for ranks in RANKS:
        sides[_name("auto", ranks)] = _side(setting, path, shape, "auto", ranks)
        for algorithm in ALGORITHMS if ranks else ():
            if algorithm == "local" and ranks > 1:
                continue
            sides[_name(algorithm, ranks)] = _side(setting, path, shape, algorithm, ranks)
    return sides


def _side(setting: Setting, path: Path, shape: tuple[int, int], algorithm: str, ranks: int) -> Sample:
    repeat = int(min(20, WORK // (shape[0] * shape[1] * min(shape))))
    how: list[object] = ["--no-verify"]
    how += ["--warmup", 1, "--repeat", repeat] if repeat > 1 else []
    how += ["-n", ranks] if ranks else []

    def sample() -> list[float]:
        record = decomposed(setting, path, *how, algorithm=algorithm)
        chosen = setting.facts.setdefault("chosen", {}).setdefault(str(shape), {})
        chosen[_name(algorithm, ranks)] = (
            f"{record['variant']['algorithm']} on {record['variant']['ranks']}x{record['variant']['threads']}"
        )
        return [one["total"] - one["input"] - one["output"] for one in record["samples"]]

    return sample
