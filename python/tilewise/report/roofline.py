"""Rooflines: arithmetic rate over operational intensity, under what memory and the processor allow.

intensity = operations / the least bytes that a job must move through memory, as its room counts them
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from tilewise.base.units import bytes_text
from tilewise.launch.record import Record
from tilewise.operations import show_of
from tilewise.report.figures.curves import Axis, Curve, curves
from tilewise.report.figures.style import Plot
from tilewise.report.numbers import significant

_SLATE = 5


@dataclasses.dataclass(frozen=True)
class Work:
    """One job: operations for each byte, operations a second, and the roofs where the record knows them.

    `copy` is the rate of copying `copied` bytes.
    """

    name: str
    words: str
    intensity: float
    rate: float
    peak: float | None
    copy: float | None
    copied: float = 0.0


def work_of(record: Record) -> Work | None:
    """What `record` says of its arithmetic; None where there is none, or where sizes are not known.

    Its peak is that of all ranks together.
    """
    rate, variant = record.rates.flops_per_second, record.variant
    traffic = show_of(record.command, record.variant.each).traffic(record)
    if not record.flops or not rate or traffic.bytes <= 0:
        return None
    shape = "×".join(map(str, record.outputs[0].shape)) if record.outputs else ""
    name = f"{record.command} {variant.algorithm or variant.decomposition or ''}".strip()
    words = f"{name}, {shape}, {variant.ranks} ranks × {variant.threads} threads"
    intensity = record.flops / traffic.bytes
    return Work(name, words, intensity, rate, record.peak_flops, traffic.copy_rate, traffic.copied)


def roofline(key: str, records: Iterable[Record]) -> Plot | None:
    """The arithmetic of `records` under the highest roofs that any of them knows; None where none does."""
    works = [work for record in records if (work := work_of(record)) is not None]
    peaks = [work.peak for work in works if work.peak]
    # What was copied by a small job may have lain in a cache: the largest speaks for memory.
    largest = max((work.copied for work in works if work.copy), default=0.0)
    copies = [work.copy for work in works if work.copy and work.copied == largest]
    if not works or not (peaks or copies):
        return None
    lowest, highest = min(work.intensity for work in works), max(work.intensity for work in works)
    peak, copy = max(peaks, default=math.inf), max(copies, default=math.inf)
    ridge = peak / copy if peaks and copies else highest
    ends = sorted({min(lowest, ridge) / 2, ridge, max(highest, ridge) * 2})
    roof = [(x, min(peak, copy * x) / 1e9) for x in ends]
    series = []
    for name in dict.fromkeys(work.name for work in works):
        points = []
        for work in works:
            if work.name == name:
                rate = work.rate / 1e9
                words = f"{work.words}; {significant(rate)} GFLOP/s; {significant(work.intensity)} a byte"
                points.append((work.intensity, rate, rate, rate, words))
        series.append(Curve(name, points, line=False))
    told = [f"memory {significant(copy / 1e9)} GB/s (copying {bytes_text(int(largest))})"] if copies else []
    told += [f"arithmetic {significant(peak / 1e9)} GFLOP/s"] if peaks else []
    series.append(
        Curve(f"roof: {', '.join(told)}", [(x, y, y, y, "") for x, y in roof], _SLATE, marker=False)
    )
    caption = (
        "Operations per second while computing, against operations per byte that must at least move through "
        "memory. The roof is what was measured here for copying and for products."
    )
    across = Axis("operations per byte")
    return curves(key, "Roofline", caption, series, across, Axis("GFLOP/s"))
