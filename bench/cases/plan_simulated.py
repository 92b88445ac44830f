"""Predictions beside the worker on simulated ranks: the points of the study `scaling`, on three networks."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import ROOT, NotRun, Row, Setting
from tilewise.cli import jobs
from tilewise.engine.prepare import prepare
from tilewise.operations.prediction import cost_of, machine_of, predicted

POINTS = ROOT / "build/scaling/points.jsonl"
CLOSE = 0.02  # of algorithms that differ by less, either may come first


def simulated(setting: Setting) -> list[Row]:
    """How far predictions are off, and how often the fastest algorithm is the one that they name."""
    if not POINTS.exists():
        raise NotRun("no simulated points are there: make scaling makes them, in 15 minutes")
    found = [(point, predicted_of(point["command"])) for point in points(POINTS)]
    errors = [abs(foreseen / seconds_of(point) - 1) for point, foreseen in found]
    firsts = list(_firsts(found))
    samples = {_name(point): [seconds_of(point), foreseen] for point, foreseen in found}
    many = f"{len(errors)} points"
    return [
        Row(
            "simulated",
            "error beside simulated ranks, median",
            "at most",
            0.2,
            statistics.median(errors),
            note=many,
            samples=samples,
        ),
        Row(
            "simulated-near", "points within 20 %", "", 0, sum(error <= 0.2 for error in errors) / len(errors)
        ),
        Row(
            "simulated-first",
            "the fastest algorithm was named",
            "at least",
            0.9,
            sum(firsts) / max(1, len(firsts)),
            note=f"{len(firsts)} sets of ranks, size and network",
        ),
    ]


def points(path: Path) -> Iterator[dict[str, Any]]:
    """Those that were done, as the study keeps them."""
    for line in path.read_text().splitlines():
        point = json.loads(line)
        if point.get("status") == "done" and point.get("record"):
            yield point


def seconds_of(point: dict[str, Any]) -> float:
    """From the first barrier of all ranks to the last, without files, which take no simulated time."""
    return float(point["record"]["seconds"]["total"]["max"])


def predicted_of(words: list[str]) -> float:
    """Seconds that are predicted for the job of these words."""
    asked = jobs.asked_of(words[0], words[1:])
    assert asked is not None
    output = prepare(asked.request)
    machine = machine_of(output.plan)
    return predicted(output.plan, cost_of(output.plan, output.target), machine).total


def _firsts(found: list[tuple[dict[str, Any], float]]) -> Iterator[bool]:
    """Of products that differ in the algorithm alone, whether the fastest was predicted to be it."""
    alike: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for point, foreseen in found:
        axes = {name: value for name, value in point["axes"].items() if name != "algorithm"}
        if "algorithm" in point["axes"]:
            alike[json.dumps([point["run"], axes])].append((seconds_of(point), foreseen))
    for ways in alike.values():
        if len(ways) > 1:
            named = min(ways, key=lambda way: way[1])
            yield named[0] <= min(seconds for seconds, _ in ways) * (1 + CLOSE)


def _name(point: dict[str, Any]) -> str:
    return " ".join(map(str, [point["run"], *point["axes"].values()]))
