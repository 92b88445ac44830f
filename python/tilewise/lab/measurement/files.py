"""Which files are written and read: ranks × block sizes × strategies; where they lie for a while."""

from __future__ import annotations

from tilewise.lab.measurement.memory import stop_of
from tilewise.lab.measurement.points import Launch, PlannedPoint, refusal
from tilewise.lab.measurement.request import MeasureRequest
from tilewise.launch.job import Point
from tilewise.machine.allocation import read_hosts
from tilewise.machine.facts import Facts
from tilewise.machine.host import REPORTED_AFTER, free_page_reporting
from tilewise.planning.names import BOTH_WAYS

BLOCKS_PER_RANK = 64  # as in the report
_BLOCKS = (128_000, 1_000_000, 4_000_000, 16_000_000)
_STRATEGIES = ("collective", "independent", "positioned")
_TWO_SIZES = (128_000, 4_000_000)  # of blocks: a call's cost and a byte's, of every other strategy
_BYTES = 128_000_000  # of one rank, unless somebody says how many blocks
_BRIEF_BYTES = 32_000_000  # the same where all kinds share the time
_PAUSE = REPORTED_AFTER + 1


def sample_names(request: MeasureRequest, facts: Facts) -> list[str]:
    """Files that a launch may leave for a moment: one for all ranks, or one for each."""
    return ["sample", *(f"sample.{rank}" for rank in range(max(_ranks(request, facts))))]


def launches(request: MeasureRequest, facts: Facts, path: str, no_gpu: str = "") -> list[Launch]:
    """One launch for each number of ranks; `path` is the sample file, which no point leaves behind.

    `no_gpu` says why buffers of a graphics processor cannot be had, and is empty where they can.
    """
    planned = []
    for ranks in _ranks(request, facts):
        asks = [
            PlannedPoint(point=point, ranks=ranks, skipped=refusal(point.buffer, no_gpu))
            for name in _names(request)
            for point in _points(request, name, ranks, path)
        ]
        if request.io is None:
            asks += [
                PlannedPoint(point=point, ranks=ranks, skipped=refusal(point.buffer, no_gpu))
                for name in BOTH_WAYS
                if name not in _STRATEGIES and ranks == _ranks(request, facts)[-1]
                for point in _points(request, name, ranks, path, list(_TWO_SIZES))
            ]
        over = ranks > facts.cpus and not request.hosts
        planned.append(
            Launch(
                what=f"files, {ranks} rank{'s' * (ranks > 1)}",
                kind="file",
                ranks=ranks,
                hosts=read_hosts(request.hosts) if request.hosts else {},
                oversubscribed=over,
                stop=stop_of(request, 0.2 if request.brief else 1.0, least=2, most=20, warmup=0),
                asks=asks,
            )
        )
    return planned


def _ranks(request: MeasureRequest, facts: Facts) -> list[int]:
    counts = request.ranks if request.ranks and "file" in request.kinds else None
    return sorted(counts or {1, max(2, facts.cores)})


def _names(request: MeasureRequest) -> list[str]:
    return request.io if request.io is not None else list(_STRATEGIES)


def _points(
    request: MeasureRequest, name: str, ranks: int, path: str, sizes: list[int] | None = None
) -> list[Point]:
    shift = request.shift if request.shift is not None else 1
    layouts = request.layouts or ["interleaved"]
    sizes = sizes or request.blocks or list(_BLOCKS)
    caches = request.caches or ["warm"]
    pauses = request.io is None and request.blocks is None and free_page_reporting()
    rested = "positioned", max(sizes), caches[0], layouts[0]  # as most jobs write
    return [
        Point(
            kind="file",
            name=name,
            bytes=size,
            blocks=_blocks(request, size),
            path=path,
            layout=layout,
            buffer=buffer,
            cache=cache,
            check=request.check,
            pause=_PAUSE if pauses and (name, size, cache, layout) == rested else 0,
            shift=shift % ranks,
            sync=request.sync,
            gpus=request.gpus or 0,
        )
        for size in sizes
        for layout in (["per_rank"] if name == "per_rank" else layouts)
        for buffer in request.buffers or ["malloc"]
        for cache in caches
    ]


def _blocks(request: MeasureRequest, size: int) -> int:
    """The report's 64; fewer large ones if nobody says, so that it does not take minutes."""
    if request.blocks_per_rank is not None:
        return request.blocks_per_rank
    return max(1, min(BLOCKS_PER_RANK, (_BRIEF_BYTES if request.brief else _BYTES) // size))
