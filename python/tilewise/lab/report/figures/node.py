"""Figures of one node: memory rates over array size with its caches, products over size."""

from __future__ import annotations

from collections.abc import Iterator

from tilewise.lab.measurement.result import Line, Measurement
from tilewise.lab.report import measured as ask
from tilewise.lab.report.figures.curves import Axis, Curve, Guide, curves
from tilewise.lab.report.figures.style import Plot
from tilewise.lab.report.measure_node import cache_sizes
from tilewise.lab.report.numbers import significant, size_text

_NAMES = ("copy", "triad", "read", "write")  # one colour each; threads are told by the dash


def node_plots(measurement: Measurement) -> Iterator[Plot]:
    """Copying in memory, arithmetic, and every operation in memory, where they were measured."""
    memory = ask.ran(ask.pick(measurement.lines, kind="memory"))
    copies = ask.pick(memory, name="copy")
    if copies:
        yield _memory(measurement, copies, "Memory rate of copying by size and threads")
    compute = ask.ran(ask.pick(measurement.lines, kind="compute", series="seconds"))
    if compute:
        yield _compute(compute)
    if len(copies) < len(memory):
        yield _memory(measurement, memory, "Memory rate by size, operation and threads")


def _memory(measurement: Measurement, lines: list[Line], title: str) -> Plot:
    threads = sorted({line.threads for line in lines})
    series = []
    for (name, count), group in ask.grouped(lines, lambda line: (line.name, line.threads)).items():
        colour = _NAMES.index(name) if name in _NAMES else None
        words = f"{name}, {ask.threads_text(count)}"
        points = [
            _point(line, float(line.amount or line.bytes), f"{words}, {size_text(line.bytes)} an array")
            for line in group
        ]
        series.append(Curve(words, points, colour, threads.index(count)))
    guides = [Guide(f"{name} {size_text(size)}", x=size) for name, size in cache_sizes(measurement)]
    caption = (
        "Bytes read and written per second, against bytes touched in a pass; vertical lines: cache sizes."
    )
    return curves(
        "memory-copy" if {line.name for line in lines} == {"copy"} else "memory-curve",
        title,
        caption,
        series,
        Axis("bytes touched", "bytes"),
        Axis("GB/s"),
        guides,
    )


def _compute(lines: list[Line]) -> Plot:
    threads, types = sorted({line.threads for line in lines}), sorted({line.dtype for line in lines})
    series = []
    for (dtype, count), group in ask.grouped(lines, lambda line: (line.dtype, line.threads)).items():
        words = f"{dtype}, {ask.threads_text(count)}"
        points = [_point(line, float(line.size), f"{words}, {line.size}²") for line in group]
        series.append(Curve(words, points, types.index(dtype), threads.index(count)))
    sizes = sorted({float(line.size) for line in lines})
    caption = "Products of square matrices; bars or shading: 95 % interval of the median."
    return curves(
        "compute-curve",
        "Arithmetic rate by size, type and threads",
        caption,
        series,
        Axis("rows and columns", ticks=sizes[:10]),
        Axis("GFLOP/s", log=False),
    )


def _point(line: Line, x: float, words: str) -> tuple[float, float, float, float, str]:
    middle, low, high = ask.rates(line)
    unit = "GFLOP/s" if line.unit == "flop" else "GB/s"
    return x, middle, low, high, f"{words}: {significant(middle)} {unit}; {ask.hint(line)}"
