"""Our messages beside those of the OSU micro-benchmarks, size by size, on both MPI libraries."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from harness import BIN, NotRun, Row, Setting, run, say

from cases.measure_run import MPIS, lines, measure

APART = 1.05  # what the two may differ by, either way
SIZES = [1 << power for power in range(23)]
FOLDERS = {"mpich": "TILEWISE_OSU", "openmpi": "TILEWISE_OSU_OPENMPI"}
Curve = dict[int, float]  # seconds of a message, one way, by size in bytes


class Way(NamedTuple):
    """One curve: our words for it, their program, and what makes its figure seconds."""

    name: str
    exchange: str
    pattern: str
    program: str
    seconds: Callable[[float, int], float]


def _microseconds(figure: float, size: int) -> float:
    return figure * 1e-6


def _rate(figure: float, size: int) -> float:
    return size / (figure * 1e6)


WAYS = (
    Way("round trip", "blocking", "roundtrip", "osu_latency", _microseconds),
    Way("stream", "nonblocking", "stream", "osu_bw", _rate),
    Way("put", "put", "roundtrip", "osu_put_latency", _microseconds),
    Way("get", "get", "roundtrip", "osu_get_latency", _microseconds),
)


def messages(setting: Setting) -> list[Row]:
    """In turns, both on the same two cores, at least five rounds: medians over rounds, size by size."""
    rows = []
    for mpi in MPIS:
        for way in WAYS:
            try:
                rows += _curves(setting, mpi, way)
            except NotRun as reason:
                what = f"{mpi}, {way.name} beside {way.program}"
                rows.append(Row(f"measure-{mpi}-{way.program}", what, "", 0, note=str(reason)))
    return rows


def _curves(setting: Setting, mpi: str, way: Way) -> list[Row]:
    program = _find(mpi, way.program)
    sides: dict[str, dict[int, list[float]]] = {"tilewise": {}, "osu": {}}
    rounds = 2 if setting.quick else max(setting.rounds, 5)
    cores = sorted(os.sched_getaffinity(0))[:2]
    for turn in range(rounds):
        say(f"    {mpi}, {way.name}, round {turn + 1} of {rounds}")
        for side in ("tilewise", "osu") if turn % 2 == 0 else ("osu", "tilewise"):
            curve = _ours(setting, mpi, way, cores) if side == "tilewise" else _osu(mpi, way, program, cores)
            for size, seconds in curve.items():
                sides[side].setdefault(size, []).append(seconds)
    return [
        _row(mpi, way, size, {name: curves[size] for name, curves in sides.items()})
        for size in SIZES
        if all(size in curves for curves in sides.values())
    ]


def _row(mpi: str, way: Way, size: int, samples: dict[str, list[float]]) -> Row:
    ours, theirs = (statistics.median(samples[side]) for side in ("tilewise", "osu"))
    best = min(samples["tilewise"]) / min(samples["osu"])
    return Row(
        f"measure-{mpi}-{way.program}-{size}",
        f"{mpi}, {way.name} of {size} B: apart from {way.program} by",
        "" if way.exchange in ("put", "get") else "at most",  # theirs lock one rank, ours all of them
        APART,
        ratio=max(ours / theirs, theirs / ours),
        note=f"{ours * 1e6:.4g} µs and {theirs * 1e6:.4g} µs; the least of each: {best:.3f}",
        samples=samples,
    )


def _find(mpi: str, program: str) -> Path:
    folder = os.environ.get(FOLDERS[mpi], "")
    if not folder:
        raise NotRun(f"{FOLDERS[mpi]} names no folder in which the OSU micro-benchmarks were built")
    programs = [path for path in sorted(Path(folder).rglob(program)) if os.access(path, os.X_OK)]
    if not programs:
        raise NotRun(f"there is no {program} under {folder}")
    return programs[0]


def _ours(setting: Setting, mpi: str, way: Way, cores: list[int]) -> Curve:
    words = ["ping", "--levels", "core", "--pairs", 1, "--bytes", "1..4MiB", "--collectives", "none"]
    words += ["--exchange", way.exchange, "--pattern", way.pattern, "--no-matrix", "--launches", 1]
    words += ["--runs", 200]  # as long as theirs: ranks that live for a moment only are slower
    measurement, _ = measure(setting.work / "ping.json", *words, mpi=mpi)
    used = next(level["cpus"] for level in measurement["levels"] if level["name"] == "core")
    if sorted(used)[:2] != cores:
        raise NotRun(f"measured on the cores {used}, not on {cores}")
    there_and_back = 2 if way.program == "osu_latency" else 1
    chosen = lines(measurement, kind="ping", name=way.exchange, pattern=way.pattern, level="core", pairs=1)
    return {line["bytes"]: line["summary"]["median"] / there_and_back for line in chosen}


def _osu(mpi: str, way: Way, program: Path, cores: list[int]) -> Curve:
    from tilewise.launch.worker import ONE_NODE

    first, second = (["-n", 1, "taskset", "-c", core, program] for core in cores)
    if mpi == "mpich":
        said = run([BIN / "mpiexec", *first, ":", *second], **ONE_NODE)
    else:
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        said = run([shutil.which("mpiexec.openmpi"), *root, "--bind-to", "none", *first, ":", *second])
    words: list[Any] = [line.split() for line in said.splitlines() if line[:1].isdigit()]
    return {int(size): way.seconds(float(figure), int(size)) for size, figure, *_ in words if size != "0"}
