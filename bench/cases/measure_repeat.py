"""All of `tilewise measure` twice, compared, and once more with a busy core; how well the model fits."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from harness import BIN, NotRun, Row, Setting, run, say

from cases.measure_run import MPIS, lines, measure

LIMIT = 90.0  # seconds of a whole measurement


def repeat(setting: Setting) -> list[Row]:
    """Wall time of each, the share of lines that `compare` cannot tell apart, the share that is labelled."""
    words = ["ping", "--bytes", "1..1KiB"] if setting.quick else []
    files, walls = [], []
    for number in (1, 2):
        say(f"    measurement {number} of 2")
        files.append(setting.work / f"measured{number}.json")
        walls.append(measure(files[-1], *words)[1])
    rows = [
        Row(
            "measure-wall",
            "all of tilewise measure, seconds",
            "at most",
            LIMIT,
            max(walls),
            unit=" s",
            samples={"seconds": walls},
        )
    ]
    verdicts = json.loads(run([BIN / "tilewise", "measure", "compare", *files, "--json", "-"]))["changes"]
    same = [line["word"] == "not distinguishable" for line in verdicts]
    others = [line["key"] for line in verdicts if line["word"] != "not distinguishable"]
    rows.append(
        Row(
            "measure-repeat",
            "lines of a second measurement not distinguishable from the first",
            "at least",
            0.95,
            sum(same) / len(same),
            unit="",
            note=f"{sum(same)} of {len(same)}; not: {', '.join(others[:6]) or 'none'}",
        )
    )
    say("    with a busy core")
    with _busy(min(os.sched_getaffinity(0))):
        measurement, _ = measure(setting.work / "busy.json", *words)
    measured = lines(measurement)
    labelled = [line for line in measured if line["labels"]]
    said = sorted({label for line in measured for label in line["labels"]})
    rows.append(
        Row(
            "measure-busy",
            "lines that are labelled where a core is kept busy",
            "at least",
            0.95,
            len(labelled) / len(measured),
            unit="",
            note="; ".join(said)[:160],
        )
    )
    return rows


def model(setting: Setting) -> list[Row]:
    """How far the cost model misses the sizes that were left out of its fit, on both libraries."""
    rows: list[Row] = []
    for mpi in MPIS:
        try:
            say(f"    {mpi}")
            measurement, _ = measure(setting.work / "model.json", "ping", "--levels", "core", mpi=mpi)
        except NotRun as reason:
            rows.append(Row(f"measure-model-{mpi}", f"{mpi}: cost model", "", 0, note=str(reason)))
            continue
        costs = [
            cost
            for cost in measurement["model"]["costs"]
            if cost["median_error"] is not None and cost["key"].startswith("ping/")
        ]
        if not costs:
            raise NotRun(f"{mpi}: no cost has sizes left out of its fit")
        for which, limit in (("median_error", 0.05), ("largest_error", 0.20)):
            worst = max(costs, key=lambda cost: float(cost[which]))
            middle = statistics.median(cost[which] for cost in costs)
            rows.append(
                Row(
                    f"measure-model-{mpi}-{which}",
                    f"{mpi}: {which.replace('_', ' ')} on sizes left out, worst of {len(costs)} costs",
                    "at most",
                    limit,
                    worst[which],
                    unit="",
                    note=f"{worst['key']}; median of all {middle:.3f}",
                )
            )
    return rows


@contextmanager
def _busy(core: int) -> Iterator[None]:
    """A process that never rests on that core."""
    script = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    child = subprocess.Popen([sys.executable, "-c", script])
    try:
        yield
    finally:
        child.kill()
        child.wait()
