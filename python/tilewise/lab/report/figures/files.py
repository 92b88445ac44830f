"""Figures of files: report 4's bandwidth over ranks, a line for each block size; strategies side by side."""

from __future__ import annotations

from collections.abc import Iterator

from tilewise.base.units import plural
from tilewise.lab.measurement.result import Line, Measurement
from tilewise.lab.report import measured as ask
from tilewise.lab.report.figures.bars import Bar, bars
from tilewise.lab.report.figures.curves import Axis, Curve, curves
from tilewise.lab.report.figures.style import Plot, ordered
from tilewise.lab.report.measure_files import (
    WORDS,
    beside,
    beside_text,
    setting_text,
    settings,
    strategy_text,
)
from tilewise.lab.report.numbers import significant, size_text

_MOST = 4  # settings drawn: more are in the tables
_BESIDE = 2  # figures of strategies: those with the most
_BARS = 14


def file_plots(measurement: Measurement) -> Iterator[Plot]:
    """For each setting: write, rewrite and read of all ranks together and of one, as in report 4."""
    for number, group in enumerate(settings(measurement)[:_MOST], 1):
        for series, words in WORDS.items():
            if lines := ask.pick(ask.ran(group), series=series):
                yield _bandwidth(f"files-{number}-{series.replace('_', '-')}", words.capitalize(), lines)
    yield from _strategies(measurement)


def _bandwidth(key: str, word: str, lines: list[Line]) -> Plot:
    """Over ranks, a curve for each block size, or over block sizes where there is one number of ranks."""
    counts, sizes = (sorted({getattr(line, name) for line in lines}) for name in ("ranks", "bytes"))
    if len(counts) > 1:
        across = Axis("ranks", ticks=counts)
        groups = [(size_text(size), ask.pick(lines, bytes=size)) for size in sizes]
    else:
        across = Axis("block size", "bytes", ticks=sizes[:10])
        groups = [(plural(counts[0], "rank"), lines)]
    series = []
    for (name, group), tone in zip(groups, ordered(len(groups)) if len(groups) > 1 else [""], strict=True):
        points = [(float(line.ranks if len(counts) > 1 else line.bytes), *_rates(line)) for line in group]
        series.append(Curve(name, points, tone=tone))
    title = f"{word} bandwidth: {setting_text(lines)}"
    caption = f"Median; all ranks together, {_blocks(lines)} per rank; vertical bars: 95 % interval."
    return curves(key, title, caption, series, across, Axis("GB/s", log=False))


def _blocks(lines: list[Line]) -> str:
    counts = sorted({line.blocks for line in lines})
    return plural(counts[0], "block") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} blocks"


def _rates(line: Line) -> tuple[float, float, float, str]:
    middle, low, high = ask.rates(line)
    where = f"{plural(line.ranks, 'rank')}, {size_text(line.bytes)}"
    return middle, low, high, f"{where}: {significant(middle)} GB/s; {ask.hint(line)}"


def _strategies(measurement: Measurement) -> Iterator[Plot]:
    groups = [_by_strategy(ask.ran(group)) for group in beside(measurement)]
    wanted = sorted((names for names in groups if len(names) > 1), key=lambda names: -len(names))
    for number, names in enumerate(wanted[:_BESIDE], 1):
        rows = []
        for told in list(names.values())[:_BARS]:
            values = {WORDS[line.series]: _rates(line) for line in told if line.series in WORDS}
            other = ask.state(told[0]) != told[0].cache
            rows.append(Bar(strategy_text(told[0]) + f" ({ask.state(told[0])})" * other, values))
        lines = next(iter(names.values()))
        cache = f" Cache {lines[0].cache} unless a row says otherwise." if lines[0].cache else ""
        caption = f"All ranks together; whiskers: 95 % interval of the median.{cache}"
        yield bars(f"strategies-{number}-bars", beside_text(lines), caption, rows, "GB/s")


def _by_strategy(lines: list[Line]) -> dict[tuple[str, str], list[Line]]:
    return ask.grouped(lines, lambda line: (line.name, line.layout))
