"""Predictions beside what jobs take, and what is lost by going with the plan's choice.

A new profile is filled by `tilewise measure` and by jobs of other sizes than those that count. Then every way
to do each job that the plan lists (algorithms, exchanges, ranks) is measured, in turns.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import BIN, Row, Setting, run, say

TEACHING = 3  # times that each job of the lesson is run
CLOSE = 0.10  # of two ways that differ by less, either may come first
MOST_WAYS = 10  # of a job, those that are predicted to be the fastest, and the chosen one


@dataclass
class Case:
    """A job, its words without the output, and whether it is one that the profile learns from."""

    name: str
    words: list[str]
    output: str
    lesson: bool = False


@dataclass
class Way:
    """A way to do a job: its flags, the seconds that were predicted, and those that it took each time."""

    flags: list[str]
    predicted: float
    chosen: bool
    took: list[float]

    @property
    def seconds(self) -> float:
        return statistics.median(self.took)


def plan(setting: Setting) -> list[Row]:
    """Errors of predictions, and the regret of the choice."""
    profile = setting.work / "profile"
    around = {"XDG_CACHE_HOME": str(profile)}
    run([BIN / "tilewise", "measure", "--launches", "1", "--seconds", "0.05", "--store"], **around)
    cases = list(_cases(setting))
    for case, _ in itertools.product((case for case in cases if case.lesson), range(TEACHING)):
        _job(case, [], setting, around)
    found: dict[str, list[Way]] = {}
    for case in cases:
        if case.lesson:
            continue
        say(f"  {case.name}")
        ways = _ways(case, setting, around)
        for turn in range(setting.rounds):
            for way in ways[:: 1 if turn % 2 == 0 else -1]:
                way.took.append(_job(case, way.flags, setting, around)["seconds"]["wall"])
        found[case.name] = ways
    return list(_rows(found))


def _cases(setting: Setting) -> Iterator[Case]:
    lessons, sizes = (
        ([1000, 3000], [1500, 2200]) if setting.quick else ([1000, 2000, 5000], [1500, 3000, 6000])
    )
    folders = {"disk": setting.work, "memory": Path("/dev/shm")}
    for size in (*lessons, *sizes):
        path = setting.work / f"A{size}.npy"
        run([BIN / "tilewise", "generate", "-o", path, "--shape", f"{size}x{size}", "-q"])
        lesson = size in lessons
        for where, folder in folders.items():
            out = folder / f"tilewise-bench-{os.getpid()}"
            name = f"{size}², {where}"
            yield Case(f"multiply {name}", ["multiply", str(path), str(path)], f"{out}.npy", lesson)
            yield Case(f"transpose {name}", ["transpose", str(path)], f"{out}.npy", lesson)
            sweeps = ["stencil", str(path), "--steps", "50"]
            yield Case(f"stencil {name}", sweeps, f"{out}.npy", lesson)
        yield Case(f"convert {size}²", ["convert", str(path), "--dtype", "float32"], f"{out}.npy", lesson)
        if size <= 2200:
            yield Case(f"svd {size}²", ["svd", str(path)], str(setting.work / "factors"), lesson)


def _job(case: Case, flags: list[str], setting: Setting, around: dict[str, str]) -> dict[str, Any]:
    words = [*case.words, "-o", case.output, *flags, "--force", "--json", "-"]
    told: dict[str, Any] = json.loads(run([BIN / "tilewise", *words], **around))
    if case.output.startswith("/dev/shm"):
        Path(case.output).unlink()
    return told


def _ways(case: Case, setting: Setting, around: dict[str, str]) -> list[Way]:
    words = ["plan", *case.words, "-o", case.output, "--force", "--json", "-"]
    variants = json.loads(run([BIN / "tilewise", *words], **around))["variants"]
    chosen = variants[0]["variant"]["io"]
    ways: list[Way] = []
    for each in variants:
        variant = each["variant"]
        if not each["fits"] or (not each["chosen"] and len(ways) >= MOST_WAYS):
            continue
        flags = ["-n", str(variant["ranks"]), "-t", str(variant["threads"])]
        if variant["algorithm"] not in ("local", "sweeps") or case.words[0] == "multiply":
            flags += ["--algorithm", variant["algorithm"]]
        if variant["exchange"] != "none":
            flags += ["--exchange", variant["exchange"]]
        if variant["io"] != chosen:
            flags += ["--io", variant["io"]]
        ways.append(
            Way([] if each["chosen"] else flags, each["predicted_seconds"]["wall"], each["chosen"], [])
        )
    return ways


def _rows(found: dict[str, list[Way]]) -> Iterator[Row]:
    errors = [abs(way.predicted / way.seconds - 1) for ways in found.values() for way in ways]
    regrets = {
        name: next(way.seconds for way in ways if way.chosen) / min(way.seconds for way in ways) - 1
        for name, ways in found.items()
    }
    ordered = [
        (one.predicted < other.predicted) == (one.seconds < other.seconds)
        for ways in found.values()
        for one, other in itertools.combinations(ways, 2)
        if abs(one.seconds / other.seconds - 1) > CLOSE
    ]
    values = sorted(regrets.values())
    samples = {name: [way.seconds for way in ways] for name, ways in found.items()}
    worst = max(regrets, key=lambda name: regrets[name])
    yield Row(
        "error", "error of a prediction, median", "at most", 0.15, statistics.median(errors), samples=samples
    )
    yield Row("regret", "regret of the choice, median", "at most", 0.05, statistics.median(values))
    yield Row("regret-95", "regret, 95 % of jobs", "at most", 0.10, values[int(0.95 * (len(values) - 1))])
    yield Row("regret-most", "regret, worst job", "at most", 0.30, values[-1], note=worst)
    if ordered:
        yield Row("order", "pairs in the right order", "at least", 0.9, sum(ordered) / len(ordered))
