"""Questions that tables and plots ask of a measurement's lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from tilewise.base.units import listing, plural
from tilewise.lab.measurement.request import LEVELS
from tilewise.lab.measurement.result import Line, Measurement, kind_of
from tilewise.lab.report.table import (
    Cell,
    Footnotes,
    finite,
    interval_text,
    quantity,
    reach_text,
    size_text,
    time_text,
)
from tilewise.machine import disturbance

NOT_RUN = "not run"
_READS = re.compile(r"(?:its|these) reads are (.+)")  # how notes on the page cache end
_AS_ASKED = "before a read at most"  # how a note begins on a cold reading that was one
_ADVICE = {
    "busy": "end the other programs",
    "stolen": "wait until the host of this virtual machine is quieter",
    "oversubscribed": "take no more ranks than cores",
    "frequency": "let the processor cool down or fix its clock",
    "slow": "wait until the cores are as fast as before",
}
SMALL = 4096  # bytes: smaller messages are told as latency, larger ones as bandwidth

Key = TypeVar("Key", bound=Hashable)


def pick(lines: Iterable[Line], **wanted: Any) -> list[Line]:
    """The lines whose fields have these values."""
    return [line for line in lines if all(getattr(line, name) == value for name, value in wanted.items())]


def exchange(line: Line) -> str:
    """How messages went: `blocking`, or `blocking, device` for those between graphics processors."""
    return f"{line.name}, {line.buffer}" if line.buffer else line.name


def first(lines: Iterable[Line], **wanted: Any) -> Line | None:
    """The first line whose fields have these values; None where there is none."""
    return next(iter(pick(lines, **wanted)), None)


def ran(lines: Iterable[Line]) -> list[Line]:
    """The lines that were measured."""
    return [line for line in lines if median(line) is not None]


def grouped(lines: Iterable[Line], key: Callable[[Line], Key]) -> dict[Key, list[Line]]:
    """Lines by `key`, in order of first appearance."""
    groups: dict[Key, list[Line]] = {}
    for line in lines:
        groups.setdefault(key(line), []).append(line)
    return groups


def by_level(names: Iterable[str]) -> list[str]:
    """Levels from near to far; unknown ones after them, in order of appearance."""
    unique = list(dict.fromkeys(names))
    return sorted(unique, key=lambda name: LEVELS.index(name) if name in LEVELS else len(LEVELS))


def median(line: Line) -> float | None:
    """Seconds of one operation, where there are any."""
    return None if line.summary is None or line.skipped else finite(line.summary.median)


def ways(line: Line) -> int:
    """How many times an operation of `line` crosses the wire: a round trip twice, a put or get once."""
    return 2 if line.pattern == "roundtrip" and line.name not in ("put", "get") else 1


def one_way(line: Line) -> float | None:
    """Seconds of a message in one direction."""
    seconds = median(line)
    return None if seconds is None else seconds / ways(line)


def pair_rate(line: Line) -> float | None:
    """Bytes a second in one direction, of one pair."""
    seconds = one_way(line)
    return None if not seconds or seconds < 0 else line.bytes / seconds


def bounds(line: Line) -> tuple[float, float] | None:
    """The 95 % interval of the median, in seconds of one operation."""
    if line.summary is None:
        return None
    low, high = finite(line.summary.low), finite(line.summary.high)
    return None if low is None or high is None else (low, high)


def state(line: Line) -> str:
    """State in which reading found the page cache: `warm`, `cold`, `not cold` or, past it, `bypassed`."""
    if line.name == "uncached" or line.cache == "direct":
        return "bypassed"
    told = [match[1] for note in line.notes if (match := _READS.search(note))]
    return (told or [line.cache])[0]


def states(lines: Iterable[Line]) -> str:
    """States of the page cache for lines that a heading joins: `cache warm`, `cache warm or bypassed`."""
    of = list(lines)
    found = dict.fromkeys(map(state, [line for line in of if line.series == "read"] or of))
    return f"cache {listing(list(found), 'or')}" if any(found) else ""


def remarks(line: Line) -> list[str]:
    """The notes on a line as footnotes: without what other lines' notes do not share."""
    notes = [note.removeprefix(f"{line.name} ") for note in line.notes if not note.startswith(_AS_ASKED)]
    return [match[0] if (match := _READS.search(note)) else note for note in notes]


def disturbed(measurement: Measurement) -> list[str]:
    """Say what disturbed how many lines, behind its signs; for more than a quarter also what that means."""
    there = ran(measurement.lines)
    found = [line.labels for line in there if disturbance.words(line.labels)]
    kinds = dict.fromkeys(kind_of(label) for labels in found for label in labels)
    what = f"{', '.join(kinds)}: {len(found)} of {plural(len(there), 'line')}."
    said = f"{marks(measurement).sign(*kinds)} {what.capitalize()}"
    if 4 * len(found) > len(there):
        advice = [_ADVICE[word] for word in disturbance.words(label for labels in found for label in labels)]
        said += " Rates here are lower bounds, times are upper bounds. "
        said += f"{listing([*advice, 'measure again']).capitalize()}."
    return [said] if found else []


def marks(measurement: Measurement) -> Footnotes:
    """Footnotes that have the same signs in every table: labels first."""
    lines = measurement.lines
    labels = [kind_of(label) for line in lines for label in line.labels]
    return Footnotes(
        [*labels, *(line.skipped for line in lines), *(note for line in lines for note in remarks(line))]
    )


def within(line: Line) -> str:
    """How far the interval reaches from the median: `±1.3 %`, `> ±100 %`."""
    part = _reach(line)
    return "" if part is None else reach_text(part)


def _reach(line: Line) -> float | None:
    interval, middle = bounds(line), median(line)
    if interval is None or not middle or middle <= 0:
        return None
    return max(interval[1] - middle, middle - interval[0]) / middle


def certainty(lines: Iterable[Line]) -> list[str]:
    """A note on the figures of a table that has no room for n and the interval of each."""
    summarised = [line for line in ran(lines) if line.summary is not None]
    reach = sorted(part for line in summarised if (part := _reach(line)) is not None)
    if not reach:
        return []
    counts = sorted(line.summary.n for line in summarised if line.summary is not None)
    most = f"n = {counts[0]}" + (f" to {counts[-1]}" if counts[-1] > counts[0] else "")
    middle, widest = reach[len(reach) // 2], reach_text(reach[-1])
    said = f"half within {reach_text(middle)}, the widest {widest}" if middle <= 1 else "most beyond ±100 %"
    return [f"medians; {most}; 95 % intervals: {said}"]


def rates(line: Line) -> tuple[float, float, float]:
    """The rate at the median and the ends of its interval, in units of 10⁹."""
    middle, interval = median(line), bounds(line)
    low, high = interval if interval else (middle, middle)
    told = [
        line.amount / seconds / 1e9 if seconds is not None and seconds > 0 else float("nan")
        for seconds in (middle, high, low)
    ]
    return told[0], told[1], told[2]


def cell_of(
    line: Line | None,
    marks: Footnotes | None = None,
    show: Callable[[float], str] = time_text,
    value: Callable[[Line], float | None] = median,
) -> Cell:
    """The `value` of a line as `show` writes it; where there is none, that it was not run, and why."""
    there = None if line is None or median(line) is None else value(line)
    if line is None or there is None:
        return not_run(line, marks)
    told = [*map(kind_of, line.labels), *(remarks(line) if line.kind == "ping" else [])]
    return Cell(show(there), there, hint(line), marks.sign(*told) if marks else "")


def hint(line: Line) -> str:
    """All that is known of one figure, for whoever points at it."""
    summary = line.summary
    if summary is None:
        return line.skipped
    samples = f"n = {summary.n} in {plural(len(line.launches), 'launch')}"
    parts = [
        f"median {time_text(summary.median)}",
        f"95 % interval {interval_text(summary.low, summary.high)}",
        samples,
        f"mean {time_text(summary.mean)}, {time_text(summary.minimum)} to {time_text(summary.maximum)}",
        f"outliers {summary.outliers}, warm-up {line.warmup}",
    ]
    if line.cache:
        parts.append(states([line]))
    return "; ".join([*parts, *line.labels, *line.notes])


def not_run(line: Line | None, marks: Footnotes | None) -> Cell:
    """Says that there is no figure, and why (as a footnote where `marks` are kept)."""
    reason = line.skipped if line is not None else ""
    return Cell(NOT_RUN, None, reason, marks.sign(reason) if marks else "", "faint")


def size_cell(count: int) -> Cell:
    """A size in bytes as a cell."""
    return quantity(count, size_text)
