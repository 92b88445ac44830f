"""Points to measure of memory, products and files, and the few that plans of a new machine need first."""

from __future__ import annotations

from tilewise.base.units import bytes_text, plural
from tilewise.files.dtypes import ITEMSIZE
from tilewise.lab.measurement.lines import CHOICES, TYPES
from tilewise.lab.measurement.request import MeasureRequest
from tilewise.lab.measurement.result import ARRAYS, Launch, PlannedPoint, refusal
from tilewise.launch.job import Point, Stop
from tilewise.machine import host, topology
from tilewise.machine.allocation import read_hosts
from tilewise.machine.facts import Facts
from tilewise.machine.host import REPORTED_AFTER, free_page_reporting
from tilewise.planning.names import BOTH_WAYS

OPERATIONS = ("copy", "triad", "read", "write")
_KIB, _MIB = 1 << 10, 1 << 20
_STEPS = (4, 16, 32, 128, 256, 1024, 2048, 4096, 16384, 32768, 65536)  # KiB
_LINE = 64  # bytes: each thread wants a cache line of its own
_NUMBER = 8
_CARRIERS = (64 * _KIB, _MIB, 4 * _MIB, 64 * _MIB)


def memory_launches(request: MeasureRequest, facts: Facts) -> list[Launch]:
    """A launch of one rank, whose points have the thread counts, and one for those beyond the processors."""
    sizes = request.bytes if request.kinds == ("memory",) and request.bytes else _array_sizes()
    return _memory(request, facts, sizes, OPERATIONS, thread_counts(request, facts))


def carriers(request: MeasureRequest, facts: Facts) -> list[Launch]:
    """Copies that messages and files are compared with, where memory itself was not asked for."""
    return _memory(request, facts, list(_CARRIERS), ("copy",), thread_counts(None, facts))


def thread_counts(request: MeasureRequest | None, facts: Facts) -> list[int]:
    """One thread, and all cores."""
    if request is not None and request.threads:
        return request.threads
    return sorted({1, facts.cores})


def _memory(
    request: MeasureRequest, facts: Facts, sizes: list[int], names: tuple[str, ...], counts: list[int]
) -> list[Launch]:
    return [
        Launch(
            what="memory",
            kind="memory",
            ranks=1,
            threads=max(some),
            oversubscribed=max(some) > facts.cpus,
            stop=stop_of(request, 0.03 if request.brief else 0.2),
            asks=[
                PlannedPoint(
                    point=Point(kind="memory", name=name, bytes=size, threads=threads),
                    skipped=_refusal(size, threads) or too_large(size * ARRAYS[name], facts),
                )
                for name in names
                for size in sizes
                for threads in some
            ],
        )
        for some in by_crowding(counts, facts)
    ]


def _refusal(size: int, threads: int) -> str:
    """Why arrays of `size` bytes cannot be shared by `threads`; empty where they can."""
    if size % _NUMBER:
        return f"the size of an array must be a multiple of {_NUMBER} bytes, not {size} bytes"
    if size < threads * _LINE:
        least = plural(threads * _LINE, "byte")
        return f"an array for {plural(threads, 'thread')} has {least} or more, one cache line each"
    return ""


def too_large(needed: int, facts: Facts) -> str:
    """Why `needed` bytes are too much for this node's memory; empty where they are not."""
    if needed <= facts.memory_available * 4 // 5:
        return ""
    return f"needs {bytes_text(needed)} of memory; {bytes_text(facts.memory_available)} are free"


def by_crowding(counts: list[int], facts: Facts) -> list[list[int]]:
    """Thread counts that have processors, and those that share some, whose launch is labelled so."""
    fitting = [count for count in counts if count <= facts.cpus]
    crowded = [count for count in counts if count > facts.cpus]
    return [some for some in (fitting, crowded) if some]


def stop_of(
    request: MeasureRequest, seconds: float, least: int = 10, most: int = 200, warmup: int = 2
) -> Stop:
    """When points have samples enough, unless flags say otherwise."""
    if request.runs:
        return Stop(
            least=request.runs, most=request.runs, warmup=warmup, relative=request.interval, seconds=1e9
        )
    limit = request.seconds if request.seconds is not None else seconds
    return Stop(least=least, most=most, warmup=warmup, relative=request.interval, seconds=limit)


def _array_sizes() -> list[int]:
    """The largest array is four times the last cache, within reason, so that no cache answers."""
    largest = min(max(4 * max(host.cache_bytes(level) for level in (1, 2, 3)), 64 * _MIB), 256 * _MIB)
    return [*(step * _KIB for step in _STEPS if step * _KIB < largest), largest]


_PRODUCT_SIZES = (64, 128, 256, 512, 1024, 2048)
_BRIEF_DTYPES = ("float32", "float64")
# On both sides of what the table of processors makes its choice by: 96 rows and, in single precision, 3072.
_CHOICE_SIZES = (64, 128, 512, 1024, 2048, 3072)
_BRIEF_CHOICE_SIZES = (128, 1024, 3072)


def product_launches(request: MeasureRequest, facts: Facts) -> list[Launch]:
    """A launch of one rank, whose points have the thread counts, and one for those beyond the processors."""
    sizes = request.sizes or list(_PRODUCT_SIZES)
    dtypes = request.dtypes or list(_BRIEF_DTYPES)
    return [
        Launch(
            what="arithmetic",
            kind="compute",
            ranks=1,
            threads=max(some),
            oversubscribed=max(some) > facts.cpus,
            stop=stop_of(request, 0.15 if request.brief else 0.5, least=3, most=50, warmup=1),
            asks=[
                *[
                    _ask(size, dtype, threads, facts)
                    for dtype in dtypes
                    for size in sizes
                    for threads in some
                ],
                *(_choices(request, dtypes, max(some), facts) if max(some) <= facts.cpus else []),
            ],
        )
        for some in by_crowding(thread_counts(request, facts), facts)
    ]


def _choices(request: MeasureRequest, dtypes: list[str], threads: int, facts: Facts) -> list[PlannedPoint]:
    """Products by tiles and by BLAS in turn, which say whether the table's choice is right here."""
    sizes = request.sizes or (_BRIEF_CHOICE_SIZES if request.brief else _CHOICE_SIZES)
    return [
        _ask(size, dtype, threads, facts, CHOICES) for dtype in dtypes if dtype in TYPES for size in sizes
    ]


def _ask(size: int, dtype: str, threads: int, facts: Facts, kernels: tuple[str, ...] = ()) -> PlannedPoint:
    return PlannedPoint(
        point=Point(
            kind="compute", name="gemm", size=size, dtype=dtype, threads=threads, kernels=list(kernels)
        ),
        skipped=too_large(3 * size * size * ITEMSIZE[dtype], facts),
    )


BLOCKS_PER_RANK = 64  # as in the report
_BLOCKS = (128_000, 1_000_000, 4_000_000, 16_000_000)
_STRATEGIES = ("collective", "independent", "positioned")
_TWO_SIZES = (128_000, 4_000_000)  # of blocks: a call's cost and a byte's, of every other strategy
_BYTES = 128_000_000  # of one rank, unless somebody says how many blocks
_BRIEF_BYTES = 32_000_000  # the same where all kinds share the time
_PAUSE = REPORTED_AFTER + 1


def sample_names(request: MeasureRequest, facts: Facts) -> list[str]:
    """Files that a launch may leave for a moment: one for all ranks, or one for each."""
    return ["sample", *(f"sample.{rank}" for rank in range(max(_file_ranks(request, facts))))]


def file_launches(request: MeasureRequest, facts: Facts, path: str, no_gpu: str = "") -> list[Launch]:
    """One launch for each number of ranks; `path` is the sample file, which no point leaves behind.

    `no_gpu` says why buffers of a graphics processor cannot be had, and is empty where they can.
    """
    planned = []
    for ranks in _file_ranks(request, facts):
        asks = [
            PlannedPoint(point=point, ranks=ranks, skipped=refusal(point.buffer, no_gpu))
            for name in _strategies(request)
            for point in _file_points(request, name, ranks, path)
        ]
        if request.io is None:
            asks += [
                PlannedPoint(point=point, ranks=ranks, skipped=refusal(point.buffer, no_gpu))
                for name in BOTH_WAYS
                if name not in _STRATEGIES and ranks == _file_ranks(request, facts)[-1]
                for point in _file_points(request, name, ranks, path, list(_TWO_SIZES))
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


def _file_ranks(request: MeasureRequest, facts: Facts) -> list[int]:
    counts = request.ranks if request.ranks and "file" in request.kinds else None
    return sorted(counts or {1, max(2, facts.cores)})


def _strategies(request: MeasureRequest) -> list[str]:
    return request.io if request.io is not None else list(_STRATEGIES)


def _file_points(
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


FILE_BYTES, FILE_BLOCKS = 4 << 20, 8
_ARRAY = 64 << 20
_STOP = Stop(least=3, most=10, warmup=1, relative=0.1, seconds=0.06)
_FIRST_SIZES = {"float64": 1024, "float32": 1024}  # of products
_MESSAGES = (8, 1 << 20)


def first_launches(facts: Facts, path: str) -> list[Launch]:
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
        for dtype, size in _FIRST_SIZES.items()
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
            asks=[*arrays, *products, _first_file(1, path)],
        )
    ]
    if facts.cores > 1 and cpus:
        found.append(
            Launch(what="messages", kind="ping", ranks=2, cpus=cpus, level="core", stop=_STOP, asks=pairs)
        )
        found.append(
            Launch(
                what="a file",
                kind="file",
                ranks=facts.cores,
                stop=_STOP,
                asks=[_first_file(facts.cores, path)],
            )
        )
    return found


def _first_file(ranks: int, path: str) -> PlannedPoint:
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
