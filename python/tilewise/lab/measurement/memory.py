"""Which streaming operations are measured: from the first cache to well past the last, per thread count."""

from __future__ import annotations

from tilewise.base.units import bytes_text, plural
from tilewise.lab.measurement.points import ARRAYS, Launch, PlannedPoint
from tilewise.lab.measurement.request import MeasureRequest
from tilewise.launch.job import Point, Stop
from tilewise.machine import host
from tilewise.machine.facts import Facts

OPERATIONS = ("copy", "triad", "read", "write")
_KIB, _MIB = 1 << 10, 1 << 20
_STEPS = (4, 16, 32, 128, 256, 1024, 2048, 4096, 16384, 32768, 65536)  # KiB
_LINE = 64  # bytes: each thread wants a cache line of its own
_NUMBER = 8
_CARRIERS = (64 * _KIB, _MIB, 4 * _MIB, 64 * _MIB)


def launches(request: MeasureRequest, facts: Facts) -> list[Launch]:
    """A launch of one rank, whose points have the thread counts, and one for those beyond the processors."""
    sizes = request.bytes if request.kinds == ("memory",) and request.bytes else _sizes()
    return _launches(request, facts, sizes, OPERATIONS, thread_counts(request, facts))


def carriers(request: MeasureRequest, facts: Facts) -> list[Launch]:
    """Copies that messages and files are compared with, where memory itself was not asked for."""
    return _launches(request, facts, list(_CARRIERS), ("copy",), thread_counts(None, facts))


def thread_counts(request: MeasureRequest | None, facts: Facts) -> list[int]:
    """One thread, and all cores."""
    if request is not None and request.threads:
        return request.threads
    return sorted({1, facts.cores})


def _launches(
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


def _sizes() -> list[int]:
    """The largest array is four times the last cache, within reason, so that no cache answers."""
    largest = min(max(4 * max(host.cache_bytes(level) for level in (1, 2, 3)), 64 * _MIB), 256 * _MIB)
    return [*(step * _KIB for step in _STEPS if step * _KIB < largest), largest]
