"""Figures of files: report 4's bandwidth over ranks, a line for each block size; strategies side by side."""

from __future__ import annotations

from collections.abc import Iterator

from tilewise.base.units import plural
from tilewise.measurement.result import Line, Measurement
from tilewise.report import measured as ask
from tilewise.report.figures.bars import Bar, bars
from tilewise.report.figures.curves import Axis, Curve, curves
from tilewise.report.figures.style import Plot, ordered
from tilewise.report.measure_files import WORDS, setting_text, settings, strategy_text
from tilewise.report.numbers import significant, size_text

_MOST = 4  # settings drawn: more are in the tables
_BESIDE = 2  # figures of strategies: those with the most
_BARS = 14


def file_plots(measurement: Measurement) -> Iterator[Plot]:
    """For each setting: write, rewrite and read of all ranks together and of one, as in report 4."""
    for number, group in enumerate(settings(measurement)[:_MOST], 1):
        lines = ask.ran(group)
        counts = sorted({line.ranks for line in lines})
        for series, words in WORDS.items():
            word = words.capitalize()
            of_series = ask.pick(lines, series=series)
            if not of_series:
                continue
            key = f"files-{number}-{series.replace('_', '-')}"
            if len(counts) > 1:
                yield _over_ranks(key, word, of_series, counts, each=False)
                if series != "write":
                    yield _over_ranks(f"{key}-rank", word, of_series, counts, each=True)
            else:
                yield _over_blocks(key, word, of_series)
    yield from _strategies(measurement)


def _over_ranks(key: str, word: str, lines: list[Line], counts: list[int], each: bool) -> Plot:
    series = []
    by_size = sorted(ask.grouped(lines, lambda line: line.bytes).items())
    for (size, group), tone in zip(by_size, ordered(len(by_size)), strict=True):
        points = [(float(line.ranks), *_rates(line, line.ranks if each else 1)) for line in group]
        series.append(Curve(size_text(size), points, tone=tone))
    whose = " a rank" if each else ""
    title = f"{word} bandwidth{whose}: {setting_text(lines[0])}"
    caption = f"Median; {_blocks(lines)} per rank; one line per block size; vertical bars: 95 % interval."
    across = Axis("ranks", ticks=[float(count) for count in counts])
    return curves(key, title, caption, series, across, Axis(f"GB/s{whose}", log=False))


def _over_blocks(key: str, word: str, lines: list[Line]) -> Plot:
    count = lines[0].ranks
    points = [(float(line.bytes), *_rates(line, 1)) for line in lines]
    across = Axis("block size", "bytes", ticks=sorted({float(line.bytes) for line in lines})[:10])
    title = f"{word} bandwidth, {plural(count, 'rank')}: {setting_text(lines[0])}"
    caption = f"Median; {_blocks(lines)} per rank, all ranks together; vertical bars: 95 % interval."
    return curves(key, title, caption, [Curve(word.lower(), points)], across, Axis("GB/s", log=False))


def _blocks(lines: list[Line]) -> str:
    counts = sorted({line.blocks for line in lines})
    return plural(counts[0], "block") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} blocks"


def _rates(line: Line, share: int) -> tuple[float, float, float, str]:
    middle, low, high = ask.rates(line, share)
    where = f"{plural(line.ranks, 'rank')}, {size_text(line.bytes)}"
    return middle, low, high, f"{where}: {significant(middle)} GB/s; {ask.hint(line)}"


def _strategies(measurement: Measurement) -> Iterator[Plot]:
    lines = ask.ran(ask.pick(measurement.lines, kind="file"))
    groups = ask.grouped(lines, lambda line: (line.ranks, line.bytes, line.buffer, line.cache, line.sync))
    beside = {
        place: ask.grouped(group, lambda line: (line.name, line.layout)) for place, group in groups.items()
    }
    wanted = sorted(
        (place for place in beside if len(beside[place]) > 1), key=lambda place: -len(beside[place])
    )
    for number, place in enumerate(wanted[:_BESIDE], 1):
        ranks, size, buffer, cache, _ = place
        names = beside[place]
        rows = []
        for (name, layout), told in list(names.items())[:_BARS]:
            word = strategy_text(name, layout)
            values = {line.series: _rates(line, 1) for line in told if line.series in WORDS}
            rows.append(Bar(word, {WORDS[series]: value for series, value in values.items()}))
        where = ", ".join(filter(None, [buffer, f"{cache} cache" if cache else ""]))
        title = f"Strategies, {plural(ranks, 'rank')}, blocks of {size_text(size)}, {where}"
        caption = "All ranks together; whiskers: 95 % interval of the median."
        yield bars(f"strategies-{number}-bars", title, caption, rows, "GB/s")
