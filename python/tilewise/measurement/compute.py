"""Which products are measured: by size, type and thread count."""

from __future__ import annotations

from tilewise.files.dtypes import ITEMSIZE
from tilewise.launch.job import Point
from tilewise.machine.facts import Facts
from tilewise.measurement.memory import by_crowding, stop_of, thread_counts, too_large
from tilewise.measurement.points import Launch, PlannedPoint
from tilewise.measurement.request import Request

_SIZES = (64, 128, 256, 512, 1024, 2048)
_BRIEF_DTYPES = ("float32", "float64")


def launches(request: Request, facts: Facts) -> list[Launch]:
    """A launch of one rank, whose points have the thread counts, and one for those beyond the processors."""
    sizes = request.sizes or list(_SIZES)
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
                PlannedPoint(
                    point=Point(kind="compute", name="gemm", size=size, dtype=dtype, threads=threads),
                    skipped=too_large(3 * size * size * ITEMSIZE[dtype], facts),
                )
                for dtype in dtypes
                for size in sizes
                for threads in some
            ],
        )
        for some in by_crowding(thread_counts(request, facts), facts)
    ]
