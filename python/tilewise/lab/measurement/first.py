"""The first measurement of a machine: the least that plans need, in three starts, or one on a single core."""

from __future__ import annotations

from tilewise.lab.measurement.memory import too_large
from tilewise.lab.measurement.points import Launch, PlannedPoint
from tilewise.launch.job import Point, Stop
from tilewise.machine import topology
from tilewise.machine.facts import Facts

FILE_BYTES, FILE_BLOCKS = 4 << 20, 8
_ARRAY = 64 << 20
_STOP = Stop(least=3, most=10, warmup=1, relative=0.1, seconds=0.06)
_SIZES = {"float64": 1024, "float32": 1024}  # of products
_MESSAGES = (8, 1 << 20)


def launches(facts: Facts, path: str) -> list[Launch]:
    """On one rank memory, products and the file at `path`, then messages, then the file on all cores."""
    threads = sorted({1, facts.cores})
    arrays = [
        PlannedPoint(
            point=Point(kind="memory", name="copy", bytes=_ARRAY, threads=count),
            skipped=too_large(2 * _ARRAY, facts),
        )
        for count in threads
    ]
    products = [
        PlannedPoint(point=Point(kind="compute", name="gemm", size=size, dtype=dtype, threads=facts.cores))
        for dtype, size in _SIZES.items()
    ]
    placed = topology.read().pairs_at("core", 1)
    pairs = [
        PlannedPoint(
            point=Point(kind="ping", name="blocking", pattern="roundtrip", bytes=size, pairs=[(0, 1)]),
            level="core",
            ranks=2,
        )
        for size in _MESSAGES
    ]
    cpus = [cpu for pair in placed.pairs for cpu in pair]
    found = [
        Launch(
            what="memory, products and a file",
            kind="memory",
            ranks=1,
            threads=facts.cores,
            stop=_STOP,
            asks=[*arrays, *products, _file(1, path)],
        )
    ]
    if facts.cores > 1 and cpus:
        found.append(
            Launch(what="messages", kind="ping", ranks=2, cpus=cpus, level="core", stop=_STOP, asks=pairs)
        )
        found.append(
            Launch(what="a file", kind="file", ranks=facts.cores, stop=_STOP, asks=[_file(facts.cores, path)])
        )
    return found


def _file(ranks: int, path: str) -> PlannedPoint:
    point = Point(
        kind="file",
        name="positioned",
        bytes=FILE_BYTES,
        blocks=FILE_BLOCKS,
        path=path,
        layout="interleaved",
        buffer="malloc",
        cache="warm",
        check="none",
        shift=1 % ranks,
    )
    return PlannedPoint(point=point, ranks=ranks)
