"""Which products are measured: by size, type and threads, and by both kernels that jobs choose between."""

from __future__ import annotations

from tilewise.files.dtypes import ITEMSIZE
from tilewise.lab.measurement.kernels import CHOICES, TYPES
from tilewise.lab.measurement.memory import by_crowding, stop_of, thread_counts, too_large
from tilewise.lab.measurement.points import Launch, PlannedPoint
from tilewise.lab.measurement.request import MeasureRequest
from tilewise.launch.job import Point
from tilewise.machine.facts import Facts

_SIZES = (64, 128, 256, 512, 1024, 2048)
_BRIEF_DTYPES = ("float32", "float64")
# On both sides of what the table of processors makes its choice by: 96 rows and, in single precision, 3072.
_CHOICE_SIZES = (64, 128, 512, 1024, 2048, 3072)
_BRIEF_CHOICE_SIZES = (128, 1024, 3072)


def launches(request: MeasureRequest, facts: Facts) -> list[Launch]:
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
