"""Rooflines: arithmetic rate over operational intensity, under what memory and the processor allow.

intensity = operations / the least bytes that a job must move through memory (every number of its matrices
once; of a stencil, read and written once a sweep)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from tilewise.base.units import bytes_text
from tilewise.files.dtypes import ITEMSIZE
from tilewise.launch.record import Matrix, Record
from tilewise.report.figures.curves import Axis, Curve, curves
from tilewise.report.figures.style import Plot
from tilewise.report.numbers import significant

_IN_FLOAT32 = ("float32", "int8", "uint8", "int16", "uint16")
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
    rate, result, variant = record.rates.flops_per_second, record.result, record.variant
    if not record.flops or not rate:
        return None
    output, field, copy = record.outputs[0] if record.outputs else None, 0.0, None
    if record.command == "stencil" and output is not None:
        field = _bytes(output) / _item(output) * _swept_item(output)
        moved = 2 * field * (_number(result.get("sweeps")) or 0)
        copy = _number(result.get("copy_bytes_per_second")) or None
    else:
        moved = float(sum(map(_bytes, [*record.inputs, *record.outputs])))
    if moved <= 0:
        return None
    shape = "×".join(map(str, output.shape)) if output is not None else ""
    name = f"{record.command} {variant.algorithm or variant.decomposition or ''}".strip()
    words = f"{name}, {shape}, {variant.ranks} ranks × {variant.threads} threads"
    intensity = record.flops / moved
    return Work(name, words, intensity, rate, record.peak_flops, copy, 2 * field if copy else 0.0)


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
        "Operations a second while computing, over operations for each byte that must at least move through "
        "memory. The roof is what was measured here for copying and for products."
    )
    across = Axis("operations a byte")
    return curves(key, "Roofline", caption, series, across, Axis("GFLOP/s"))


def _number(value: Any) -> float | None:
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if fits else None


def _bytes(matrix: Matrix) -> int:
    return math.prod(matrix.shape) * matrix.planes * _item(matrix)


def _swept_item(matrix: Matrix) -> int:
    """Bytes of a number as sweeps have it: small integers are float32 there, large ones float64."""
    return 4 if matrix.dtype in _IN_FLOAT32 else 8


def _item(matrix: Matrix) -> int:
    return ITEMSIZE.get(matrix.dtype, 8)
