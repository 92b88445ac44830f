"""The benchmark's common ground: runs the sides in turns, compares medians, says what was met."""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tilewise.lab.statistics.intervals import ratio_interval
from tilewise.machine.host import model_and_flags

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
Sample = Callable[[], list[float]]


class NotRun(Exception):  # noqa: N818 - a state of a row, not a fault
    """A row cannot be measured here; the text says what is missing."""


@dataclass
class Row:
    """One line of the table: our figure over (or under) a peer's, with a figure of every round behind it."""

    name: str
    what: str
    bound: str  # "at least", "at most", "within" so much of 1; empty where the row is only shown
    target: float
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = "x"
    note: str = ""
    samples: dict[str, list[float]] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        if not self.bound or self.ratio is None:
            return None
        if self.bound == "within":
            return abs(self.ratio - 1) <= self.target
        return self.ratio >= self.target if self.bound == "at least" else self.ratio <= self.target

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "medians": {k: statistics.median(v) for k, v in self.samples.items()},
            "met": self.met,
        }


@dataclass
class Setting:
    """What every case gets: how often to measure, and where large files may lie."""

    rounds: int
    quick: bool
    work: Path
    facts: dict[str, Any] = field(default_factory=dict)


def clean_environment(**more: str) -> dict[str, str]:
    """The environment for both sides: no variable may choose a slower BLAS kernel or a number of threads."""
    forcing = ("OPENBLAS_", "OMP_", "MKL_", "GOTO_", "BLIS_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(forcing)}
    return {**kept, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **more}


def run(command: list[Any], **more: str) -> str:
    """Runs a command, returns its standard output; NotRun with its last words where it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, env=clean_environment(**more), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise NotRun(f"`{' '.join(words)}` ended with {done.returncode}: {' / '.join(last)}")
    return done.stdout


def wall(command: list[Any], **more: str) -> float:
    start = time.perf_counter()
    run(command, **more)
    return time.perf_counter() - start


def tilewise(*arguments: Any, record: Path | None = None) -> dict[str, Any]:
    """Runs `tilewise`, returns the record that it wrote."""
    command = [BIN / "tilewise", *arguments]
    if record is None:
        run(command)
        return {}
    run([*command, "--json", record, "-q"])
    loaded: dict[str, Any] = json.loads(record.read_text())
    return loaded


def alternate(sides: Mapping[str, Sample], rounds: int) -> dict[str, list[float]]:
    """Measures the sides in turns, every other round backwards: a machine that drifts, drifts for all.

    A round gives one figure a side, the median of its samples: these share a process and its fortunes.
    """
    figures: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds):
        for name in list(sides)[:: 1 if turn % 2 == 0 else -1]:
            say(f"    {name}, round {turn + 1} of {rounds}")
            figures[name].append(statistics.median(sides[name]()))
    return figures


def compare(row: Row, above: list[float], below: list[float]) -> Row:
    """Sets the row's ratio of medians, above/below, and of two rounds or more its 95 % interval."""
    row.ratio = statistics.median(above) / statistics.median(below)
    if (interval := ratio_interval(above, below)) is not None:
        row.low, row.high = min(row.ratio, interval[0]), max(row.ratio, interval[1])
    return row


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def environment(work: Path) -> dict[str, Any]:
    """What the figures depend on."""
    mount = run(["df", "--output=fstype", work]).split()[-1]
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "cpu": model_and_flags()[0],
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load_at_start": os.getloadavg()[0],
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", ""),
        "python": platform.python_version(),
        "tilewise": run([BIN / "tilewise", "--version"]).strip(),
        "file_system": mount,
        "free_bytes": shutil.disk_usage(work).free,
    }


def _figure(value: float) -> str:
    """Three decimals; a power of ten where that would be a wall of digits."""
    return f"{value:.3f}" if abs(value) < 1e6 else f"{value:.1e}"


def table(rows: list[Row]) -> str:
    """The rows for people: what, target, measured, spread, met or not."""
    lines = [("", "target", "measured", "95 % interval", "")]
    for row in rows:
        sign = {"at least": "≥ ", "at most": "≤ ", "within": "1 ± "}.get(row.bound, "")
        target = f"{sign}{row.target:g}{row.unit}" if row.bound else "shown"
        if row.ratio is None:
            lines.append((row.what, target, "not run", "", row.note))
            continue
        spread = f"{row.low:.3f} - {row.high:.3f}" if row.low is not None else ""
        verdict = {True: "met", False: "MISSED", None: ""}[row.met]
        lines.append(
            (row.what, target, f"{_figure(row.ratio)}{row.unit}", spread, f"{verdict}  {row.note}".strip())
        )
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join(
        "  ".join(
            [line[0].ljust(widths[0]), *(line[i].rjust(widths[i]) for i in (1, 2, 3)), line[4]]
        ).rstrip()
        for line in lines
    )
