"""Rooflines: arithmetic rate over operational intensity, under what memory and the processor allow.

intensity = operations / the least bytes that a job must move through memory (every number of its matrices
once; of a stencil, read and written once a sweep)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from tilewise.report.figures.curves import Axis, Curve, curves
from tilewise.report.figures.style import Plot
from tilewise.report.numbers import significant
from tilewise.units import bytes_text

_ITEM = {"int16": 2, "uint16": 2, "int32": 4, "float32": 4, "float64": 8, "int64": 8, "uint8": 1, "int8": 1}
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


def work_of(record: Mapping[str, Any]) -> Work | None:
    """What `record` says of its arithmetic; None where there is none, or where sizes are not known.

    So it is of a record of foreign make, whose fields are not what their names say.
    """
    try:
        return _work(record)
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


def _work(record: Mapping[str, Any]) -> Work | None:
    command, flops = record.get("command"), _number(record.get("flops"))
    rate = _number((record.get("rates") or {}).get("flops_per_second"))
    if not flops or not rate:
        return None
    variant, result = record.get("variant") or {}, record.get("result") or {}
    moved, field, copy = 0.0, 0.0, None
    outputs = record.get("outputs") or []
    if command == "stencil" and outputs:
        field = _bytes(outputs[0]) / _item(outputs[0]) * _swept_item(outputs[0])
        moved = 2 * field * (_number(result.get("sweeps")) or 0)
        copy = _number(result.get("copy_bytes_per_second")) or None
    else:
        moved = float(sum(_bytes(each) for each in [*(record.get("inputs") or []), *outputs]))
    if moved <= 0:
        return None
    ranks = int(variant.get("ranks") or 1)
    peak = _number(record.get("peak_flops"))
    shape = "×".join(str(extent) for extent in (outputs[0].get("shape", []) if outputs else []))
    name = f"{command} {variant.get('algorithm') or variant.get('decomposition') or ''}".strip()
    words = f"{name}, {shape}, {ranks} ranks × {variant.get('threads', 1)} threads"
    return Work(name, words, flops / moved, rate, peak, copy, 2 * field if copy else 0.0)


def roofline(key: str, works: Sequence[Work]) -> Plot | None:
    """All of `works` under the highest roofs that any of their records knows; None where none knows one."""
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


def _bytes(matrix: Mapping[str, Any]) -> int:
    extents = [int(extent) for extent in matrix.get("shape") or [0]]
    return math.prod(extents) * int(matrix.get("planes") or 1) * _item(matrix)


def _swept_item(matrix: Mapping[str, Any]) -> int:
    """Bytes of a number as sweeps have it: small integers are float32 there, large ones float64."""
    return 4 if str(matrix.get("dtype", "")).lstrip("<>=|") in _IN_FLOAT32 else 8


def _item(matrix: Mapping[str, Any]) -> int:
    return _ITEM.get(str(matrix.get("dtype", "")).lstrip("<>=|"), 8)
