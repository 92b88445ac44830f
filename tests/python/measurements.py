"""Made-up measurements, honest and hostile, for tests of what is shown of them."""

from __future__ import annotations

from typing import Any

import numpy
from tilewise.lab.measurement.result import (
    CurvePiece,
    Disturbance,
    FittedCurve,
    Level,
    Line,
    Measurement,
    Model,
    PairMatrix,
)
from tilewise.lab.statistics.summary import Summary

LAUNCHES, SAMPLES = 3, 10
COLLECTIVES = ("bcast", "scatter", "gather", "allreduce", "alltoallv")
EXCHANGES = ("blocking", "nonblocking", "put", "get")
STRATEGIES = ("root", "collective", "independent", "sieve", "mapped", "two_phase", "uncached")
SERIES = {"write_new": 1.1e9, "write": 2.3e9, "read": 5.4e9}  # bytes a second
ALPHA = {"sibling": 2e-7, "core": 4e-7, "cache": 9e-7, "socket": 4.5e-6, "node": 6.2e-5}
BETA = {"sibling": 1e-10, "core": 1.4e-10, "cache": 1.8e-10, "socket": 2.1e-10, "node": 9e-9}
COPY = {"carrier": "memory copy, 11.6 GB/s"}
EVIL = "<script>alert('x')</script>&\"$x^2$\x1b[2J\x00"
_random = numpy.random.default_rng(7)


def line(seconds: float, **fields: Any) -> Line:
    """A line whose samples lie about `seconds`, summarised plainly."""
    shifts = _random.lognormal(0, 0.01, LAUNCHES)
    launches = [(seconds * shift * _random.lognormal(0, 0.03, SAMPLES)).tolist() for shift in shifts]
    every = numpy.concatenate(launches)
    medians = [float(numpy.median(launch)) for launch in launches]
    summary = Summary(
        n=every.size,
        median=float(numpy.median(every)),
        low=float(numpy.percentile(every, 30)),
        high=float(numpy.percentile(every, 70)),
        mean=float(every.mean()),
        minimum=float(every.min()),
        maximum=float(every.max()),
        outliers=1,
        spread=max(medians) / min(medians) - 1,
    )
    words = (
        "kind",
        "level",
        "name",
        "pattern",
        "series",
        "pairs",
        "ranks",
        "threads",
        "bytes",
        "size",
        "dtype",
    )
    key = "/".join(str(fields[word]) for word in words if fields.get(word))
    return Line(**{"key": key, **fields}, launches=launches, outliers=[(0, 1)], summary=summary, warmup=2)


def ping(level: str = "core", name: str = "blocking", pairs: int = 1, sizes: int = 23) -> list[Line]:
    """A curve of round trips (of puts and gets: one way), powers of two from 1 byte."""
    lines = []
    ways = 1 if name in ("put", "get") else 2
    for size in (2**power for power in range(sizes)):
        seconds = ways * (ALPHA.get(level, 1e-6) + BETA.get(level, 1e-9) * size) * pairs**0.3
        amount = float(ways * size * pairs)
        told = {"kind": "ping", "level": level, "name": name, "pattern": "roundtrip", "series": "roundtrip"}
        shape = {"pairs": pairs, "ranks": 2 * pairs, "bytes": size, "amount": amount}
        lines.append(line(seconds, **told, **shape, share=amount / seconds / 1.16e10, **COPY))
    return lines


def collectives(ranks: int = 2) -> list[Line]:
    """Each one by the library and by a loop, at three sizes."""
    lines = []
    for name in COLLECTIVES:
        for size in (8, 8192, 1048576):
            for pattern, factor in (("library", 1.0), ("loop", 1.7)):
                told = {"kind": "collective", "name": name, "pattern": pattern, "ranks": ranks}
                lines.append(line((1e-6 + 2e-10 * size) * factor, **told, bytes=size, amount=float(size)))
    return lines


def files(
    name: str = "positioned",
    ranks: tuple[int, ...] = (1, 2, 4),
    blocks: tuple[int, ...] = (128000, 1000000, 16000000),
    **fields: Any,
) -> list[Line]:
    """First write, rewrite and read of each ranks × block; the largest of several is not run."""
    lines = []
    setting = {"kind": "file", "name": name, "blocks": 64, "layout": "interleaved", "buffer": "malloc"}
    for count in ranks:
        for block in blocks:
            shape = {**setting, "cache": "warm", "ranks": count, "bytes": block, **fields}
            amount = float(count * 64 * block)
            for series, rate in SERIES.items():
                if len(ranks) > 1 and (count, block) == (max(ranks), max(blocks)):
                    reason = "needs 4.1 GB, the disk has 2.0 GB free"
                    key = f"file/{name}/{series}/{count}/{block}"
                    lines.append(Line(key=key, series=series, skipped=reason, **shape))
                else:
                    seconds = amount / rate / count**0.4 + 64 * 5e-6
                    share = rate / 1.16e10
                    lines.append(line(seconds, series=series, amount=amount, share=share, **COPY, **shape))
    return lines


def node(threads: tuple[int, ...] = (1, 2)) -> list[Line]:
    """Memory and arithmetic."""
    lines = []
    for count in threads:
        for name, arrays in (("copy", 2), ("triad", 3), ("read", 1)):
            for power in range(12, 28, 2):
                amount = float(arrays * 2**power)
                rate = 9e10 if power < 15 else 4e10 if power < 20 else 2e10 if power < 24 else 1.2e10
                told = {"kind": "memory", "name": name, "threads": count, "bytes": 2**power}
                lines.append(line(amount / rate / count**0.6, **told, amount=amount))
        for dtype, peak in (("float32", 1.9e11), ("float64", 1e11)):
            for size in (64, 256, 1024, 2048):
                amount = 2.0 * size**3
                seconds = amount / (peak * count * size / (size + 90))
                told = {"kind": "compute", "name": "gemm", "threads": count, "size": size, "dtype": dtype}
                lines.append(line(seconds, **told, amount=amount, unit="flop"))
    return lines


def model(levels: tuple[str, ...] = ("core",)) -> Model:
    """Three pieces for each level."""
    costs = []
    for level in levels:
        alpha, beta = ALPHA[level], BETA[level]
        pieces = [
            CurvePiece(0, alpha, 2 * beta),
            CurvePiece(4096, 1.5 * alpha, beta),
            CurvePiece(262144, 9 * alpha, beta),
        ]
        key = f"ping/{level}/blocking"
        costs.append(FittedCurve(key=key, median_error=0.021, largest_error=0.134, pieces=pieces))
    return Model(costs=costs, copy_rate=1.16e10)


def wrap(lines: list[Line], **fields: Any) -> Measurement:
    """A measurement of `lines`."""
    environment = {
        "host": "anode",
        "cpu": "A Processor 9000",
        "cores": 2,
        "mpi_library": "MPICH Version: 5.0.2",
        "binding": "each rank to its own cores",
        "caches": {"L1": 32768, "L2": 1048576, "L3": 34603008},
        "versions": {"python": "3.11", "tilewise": "0.1.0"},
        "storage": [{"path": "/data", "file_system": "ext4", "cache": "warm"}],
    }
    told = {
        "tilewise": "0.1.0",
        "command": ["tilewise", "measure"],
        "time": "2026-11-21T22:00:00+00:00",
        "seconds": 71.3,
        "environment": environment,
        "clock": {"resolution": 1e-9, "overhead": 2.4e-8},
    }
    return Measurement(lines=lines, **{**told, **fields})


def whole(levels: tuple[str, ...] = ("core",), pairs: tuple[int, ...] = (1,)) -> Measurement:
    """Everything that a small machine measures."""
    lines = []
    for level in levels:
        for name in EXCHANGES:
            for count in pairs:
                lines += ping(level, name, count)
    for found in lines[3:5]:
        found.labels = ["other programs busy (0.4 cores)"]
    lines += collectives() + files()
    for name in STRATEGIES:
        lines += files(name, (2,), (1000000,))
    ranks = [f"core {core}" for core in range(4)]
    small = [[0.0 if a == b else 4e-7 if a // 2 == b // 2 else 2e-6 for b in range(4)] for a in range(4)]
    large = [[0.0 if a == b else 1.5e-4 if a // 2 == b // 2 else 2.2e-4 for b in range(4)] for a in range(4)]
    quiet = {"seconds": 4.2, "stolen": 0.001, "others": 0.02, "slowdown": 0.01, "switches": 3.0}
    busy = {"seconds": 9.1, "stolen": 0.0, "others": 0.21, "slowdown": 0.3, "megahertz": (2400.0, 3100.0)}
    return wrap(
        lines + node(),
        kinds=["ping", "file", "memory", "compute"],
        levels=[Level(name="core", cpus=[0, 1]), Level(name="socket", missing="this node has one socket")],
        matrices=[
            PairMatrix(bytes=8, ranks=ranks, seconds=small),
            PairMatrix(bytes=2**20, ranks=ranks, seconds=large),
        ],
        disturbances=[
            Disturbance(launch=0, what="ping", **quiet),
            Disturbance(launch=1, what="file", labels=["busy"], **busy),
        ],
        model=model(levels),
        warnings=["the second launch was disturbed; close other programs and measure again"],
    )


def hostile() -> Measurement:
    """Words that are markup in every language we write, numbers that are none, and nothing at all."""
    nan, inf = float("nan"), float("inf")
    broken = {"low": nan, "high": inf, "mean": nan, "minimum": -1.0, "maximum": inf}
    lines = ping(sizes=5)
    for found in lines:
        found.level, found.name, found.key, found.carrier, found.share = EVIL, EVIL, EVIL, EVIL, nan
        found.labels, found.notes = [EVIL], [EVIL]
    nothing = Summary(n=0, median=nan, outliers=0, spread=nan, **broken)
    zero = Summary(n=1, median=0.0, outliers=9, spread=inf, **broken)
    for kind in ("ping", "collective", "file", "memory", "compute", EVIL):
        told = {"kind": kind, "name": EVIL, "level": EVIL, "layout": EVIL, "cache": EVIL, "dtype": EVIL}
        for summary in (nothing, zero, None):
            lines.append(Line(key=EVIL, summary=summary, launches=[[nan]], outliers=[(7, 7)], **told))
        lines.append(Line(key=EVIL, skipped=EVIL, **told))
        lines.append(Line(key=EVIL, launches=[[1e-6]], summary=one(1e-6), bytes=64, amount=64.0, **told))
    return wrap(
        lines,
        command=[EVIL],
        environment={EVIL: {EVIL: [EVIL, 1]}, "host": EVIL, "cpu": EVIL, "caches": {EVIL: 32768, "L2": nan}},
        levels=[Level(name=EVIL, missing=EVIL)],
        matrices=[
            PairMatrix(bytes=8, ranks=[EVIL, "b"], seconds=[[0.0, nan], [1e-6, 0.0]]),
            PairMatrix(bytes=8, ranks=[], seconds=[]),
            PairMatrix(bytes=1 << 20, ranks=["a"], seconds=[[0.0]]),
        ],
        disturbances=[Disturbance(launch=0, what=EVIL, seconds=nan, stolen=nan, labels=[EVIL])],
        model=Model(
            costs=[FittedCurve(key=f"ping/{EVIL}/{EVIL}", pieces=[CurvePiece(0, 0, 0)])], injection=nan
        ),
        warnings=[EVIL],
    )


def one(seconds: float) -> Summary:
    """The summary of a single sample."""
    return Summary(
        n=1,
        median=seconds,
        low=seconds,
        high=seconds,
        mean=seconds,
        minimum=seconds,
        maximum=seconds,
        outliers=0,
        spread=0.0,
    )
