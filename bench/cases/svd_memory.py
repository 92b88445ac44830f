"""All singular vectors in memory: beside ScaLAPACK, beside LAPACK, and beside our kernel without MPI."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from harness import NotRun, Row, Sample, Setting, alternate, compare, run, say
from peers import lapack_svd, pdgesvd
from peers.pdgemm import Settings

from cases.svd_side import (
    TWO_RANKS,
    TWO_THREADS,
    decomposed,
    in_memory,
    lapack,
    ours,
    relative,
    reported,
    stored,
)

# Shape: at least so much faster than pdgesvd and gejsv, at most so many times gesdd's time; 0: only shown.
TARGETS = {
    (512, 512): (4.0, 0.0, 0.0),
    (1024, 1024): (8.0, 1.8, 2.9),
    (1536, 1536): (8.0, 0.0, 0.0),
    (2048, 2048): (0.0, 1.8, 2.0),
    (8192, 512): (0.0, 0.0, 2.1),
}
QUICK = {(96, 96): (4.0, 1.8, 2.9), (256, 64): (0.0, 0.0, 2.1)}
SPEEDUPS = (256, 512, 768, 1024, 1536)


def two_cores(setting: Setting) -> list[Row]:
    """Two ranks, and one rank with two threads, beside pdgesvd on two ranks and LAPACK with two threads."""
    lapack_svd.build("tilewise-lapack-svd")
    tuned, missing = _tuned(setting)
    rows = [Row("svd-pdgesvd", "pdgesvd", "", 0, note=missing)] if missing else []
    for shape, targets in (QUICK if setting.quick else TARGETS).items():
        name = _named(shape)
        rows += reported(f"svd-{name}", name, _beside, setting, shape, targets, tuned)
    return rows


def _tuned(setting: Setting) -> tuple[Settings | None, str]:
    """What suits pdgesvd best on two ranks; or why it is not there."""
    n = 96 if setting.quick else 512
    matrix = stored(setting, "random", n, n)
    try:
        best = pdgesvd.tune(2, matrix)
        values = pdgesvd.measure(best, matrix, 0, 1)["sigma"]
    except NotRun as reason:
        return None, str(reason)
    setting.facts["pdgesvd_2_ranks"] = pdgesvd.describe(best)
    error = relative(values, lapack_svd.measure("gesdd", matrix, 2, 0, 1)["sigma"])
    if not error <= 1e-9:
        return None, f"pdgesvd's singular values differ from gesdd's by {error:.1e}"
    return best, ""


def _beside(
    setting: Setting, shape: tuple[int, int], targets: tuple[float, ...], tuned: Settings | None
) -> list[Row]:
    """One shape: each of our two ways beside every peer that there is."""
    path, repeat = stored(setting, "random", *shape), max(1, 2048 // shape[1])
    sides = {
        "2 ranks": ours(setting, path, repeat, *TWO_RANKS),
        "2 threads": ours(setting, path, repeat, *TWO_THREADS),
        "gesdd": lapack(setting, path, "gesdd", 1, 2 * repeat),
        "gejsv": lapack(setting, path, "gejsv", 0, 1 + repeat // 2),
    }
    if tuned and shape[0] == shape[1] <= 1536:  # above, it takes minutes
        sides["pdgesvd"] = lambda: list(pdgesvd.measure(tuned, path, 0, 1 + repeat // 4)["seconds"])
    samples = alternate(sides, setting.rounds)
    rows = []
    for way in ("2 ranks", "2 threads"):
        for peer, target in zip(("pdgesvd", "gejsv", "gesdd"), targets, strict=True):
            if peer not in samples:
                continue
            slower = peer == "gesdd"  # we are not expected to be faster than it
            bound = ("at most" if slower else "at least") if target else ""
            row = Row(
                f"svd-{peer}-{way.replace(' ', '-')}-{_named(shape)}",
                f"{_named(shape)}, {way}: {'time over gesdd' if slower else f'faster than {peer}'}",
                "" if (peer, way) == ("pdgesvd", "2 threads") else bound,
                target,
                note=f"{_median(samples[way]):.4g} s and {_median(samples[peer]):.4g} s",
                samples={way: samples[way], peer: samples[peer]},
            )
            above, below = (way, peer) if slower else (peer, way)
            rows.append(compare(row, samples[above], samples[below]))
    return rows


def speedups(setting: Setting) -> list[Row]:
    """Our kernel without MPI over 1, 2 and 4 ranks, with messages and bytes of a sweep; what else costs."""
    program = lapack_svd.build("tilewise-svd-memory")
    rows = []
    sizes = (64, 128) if setting.quick else SPEEDUPS
    for n in sizes:
        for start in ("eigen", "qr"):
            rows += reported(f"svd-speedup-{n}-{start}", f"{n}²", _speedup, setting, program, n, start)
    return rows + _ways(setting)


def _speedup(setting: Setting, program: Path, n: int, start: str) -> list[Row]:
    path, repeat = stored(setting, "random", n, n), max(1, 1024 // n)
    records: dict[int, dict[str, Any]] = {}

    def on(ranks: int) -> Sample:
        def sample() -> list[float]:
            how = ("-n", ranks, "-t", 1, "--start", start, "--no-verify", "--warmup", 1, "--repeat", repeat)
            records[ranks] = decomposed(setting, path, *how)
            return in_memory(records[ranks])

        return sample

    def alone() -> list[float]:
        lines = run([program, n, n, 1, repeat, "normal", start]).splitlines()
        said: dict[str, Any] = {line["side"]: line for line in map(json.loads, lines)}
        return list(said[start]["seconds"])

    samples = alternate({"alone": alone, **{str(ranks): on(ranks) for ranks in (1, 2, 4)}}, setting.rounds)
    rows = []
    for ranks, record in sorted(records.items()):
        mine = samples[str(ranks)]
        row = Row(
            f"svd-speedup-{n}-{start}-{ranks}",
            f"{n}² on {ranks}, {start}: over the kernel alone",
            "",
            0,
        )
        row.samples = {"ranks": mine, "without MPI": samples["alone"]}
        row.note = f"{_median(mine):.4g} s; {_sweeps(record)}"
        rows.append(compare(row, samples["alone"], mine))
    return rows


def _ways(setting: Setting) -> list[Row]:
    """What single rotations, single columns and an uneven cut cost, without the fast start."""
    n, width = (128, 3) if setting.quick else (1024, 11)  # about as narrow as on 48 ranks, and no divisor
    narrow = ("--block-columns", width)
    ways: list[tuple[int, tuple[object, ...]]] = [
        (2, ()),
        (2, ("--inner", "rotations")),
        (2, ("--block-columns", 1)),
        (2, ("--block-columns", 1, "--inner", "rotations")),
        (4, ()),
        (4, (*narrow, "--remainder", "spread")),
        (4, (*narrow, "--remainder", "last")),
    ]
    rows = []
    for ranks, how in ways:
        words = " ".join(map(str, how)) or "as planned"
        say(f"    {n}² on {ranks}: {words}")
        rows += reported(f"svd-way-{n}-{ranks}-{words}", words, _way, setting, n, ranks, words, how)
    return rows


def _way(setting: Setting, n: int, ranks: int, words: str, how: tuple[object, ...]) -> list[Row]:
    path = stored(setting, "random", n, n)
    fixed = ("--no-verify", "--start", "qr", "--repeat", 2)
    record = decomposed(setting, path, "-n", ranks, "-t", 1, *how, *fixed)
    seconds, what = in_memory(record), f"{n}² on {ranks}: {words}"
    row = Row(f"svd-way-{n}-{ranks}-{words}", what, "", 0, unit=" s", note=_sweeps(record))
    row.ratio, row.samples = _median(seconds), {"seconds": seconds}
    return [row]


def _sweeps(record: dict[str, Any]) -> str:
    said = record["result"]
    least, most = said["block_columns"]
    width = f"{least}" if least == most else f"{least} to {most}"
    moved = f"{said['sweep_messages']} messages, {said['sweep_bytes'] / 2**20:.2f} MiB"
    return f"{said['sweeps']} sweeps of {moved}; blocks of {width} columns; from {said['start_used']}"


def _named(shape: tuple[int, int]) -> str:
    return f"{shape[0]}²" if shape[0] == shape[1] else f"{shape[0]}x{shape[1]}"


def _median(values: list[float]) -> float:
    return statistics.median(values)
