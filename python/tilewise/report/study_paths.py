"""Of a study: the way of the data in each variant, and timelines of points that differ in words only."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any

from tilewise.base.errors import UsageError
from tilewise.launch.record import Record
from tilewise.measurement.result import Measurement
from tilewise.report.data_path import data_path, way_of
from tilewise.report.page import Drawing, Section
from tilewise.report.study_labels import labels, said, telling
from tilewise.report.timeline import Timeline, read_timeline
from tilewise.report.trace_page import ABREAST, timeline_section
from tilewise.study.evaluation import Evaluated
from tilewise.study.paths import figure_of
from tilewise.study.store import DONE, Entry, load_entries

_PATHS = 12  # drawn: more tell nothing new


def paths(studies: Sequence[Evaluated]) -> Iterator[Drawing]:
    """A drawing for each way that the data took in any point."""
    seen: dict[tuple[str, str], _Path] = {}
    for each in studies:
        for point in each.results.points:
            for entry in point.entries[-1:]:
                _note(point.run, entry.result(), seen)
    for number, ((read, write), path) in enumerate(list(seen.items())[:_PATHS]):
        name = _named(list(path.between))
        title = read if read == write else f"{read} in, {write} out"
        yield data_path(f"path-{number}", title, read, write, name, f"Runs: {', '.join(path.runs)}.")


def _named(between: Sequence[str]) -> str:
    """One name for all that went between ranks: `gather, blocking or one_sided_fence`."""
    algorithms = list(dict.fromkeys(each.partition(", ")[0] for each in between))
    exchanges = list(dict.fromkeys(each.partition(", ")[2] for each in between))
    if len(algorithms) > 1:
        return "set by the algorithm"
    several = f"{len(exchanges)} exchanges" if len(exchanges) > 2 else " or ".join(exchanges)
    return f"{algorithms[0]}, {several}" if algorithms else ""


@dataclasses.dataclass
class _Path:
    """Who took it, and what went between ranks; dictionaries as sets in order."""

    runs: dict[str, None] = dataclasses.field(default_factory=dict)
    between: dict[str, None] = dataclasses.field(default_factory=dict)


def _note(run: str, record: Record | Measurement | None, seen: dict[tuple[str, str], _Path]) -> None:
    if isinstance(record, Record):
        way = way_of(record)
        path = seen.setdefault(way[:2], _Path())
        path.runs[run] = None
        if way[2]:
            path.between[way[2]] = None


def timelines(studies: Sequence[Evaluated]) -> Section | None:
    """The longest traced point, and those whose numbers are the same but whose words differ, on one axis.

    What cannot be read is left out, in words; None where no point was traced.
    """
    names = labels(studies)
    traced = [
        (each, name, entry) for each, name in zip(studies, names, strict=True) for entry in _traced(each)
    ]
    if not traced:
        return None
    left = sorted(traced, key=lambda one: _size(one[2]), reverse=True)
    shown: list[tuple[Evaluated, str, Entry]] = []
    lines: list[Timeline] = []
    unread: list[str] = []
    while left and not lines:  # until something can be read: files may be moved or cut short
        longest = left[0][2]
        alike = [one for one in traced if _numbers(one[2]) == _numbers(longest)]
        for one in alike:
            if len(lines) < ABREAST:
                try:
                    lines.append(read_timeline(os.path.join(one[0].results.folder, one[2].trace)))
                    shown.append(one)
                except UsageError as error:
                    unread.append(f"Omitted: {error.message}.")
        left = [one for one in left if _numbers(one[2]) != _numbers(longest)]
    if not lines:
        return Section("timeline", "Timeline", unread)
    axes = {*telling([entry.axes for _, _, entry in shown]), *_numbers(shown[0][2])}
    for line, (_, name, entry) in zip(lines, shown, strict=True):
        told = [said(axis, value) for axis, value in entry.axes.items() if axis in axes]
        words = ", ".join([entry.run, *told])
        line.title = f"{words} · {name}" if name else words
    return dataclasses.replace(timeline_section(lines), words=unread)


def _size(entry: Entry) -> tuple[float, float]:
    """Ranks, then seconds: a timeline of one rank shows little."""
    return figure_of("variant.ranks", entry) or 0.0, figure_of("seconds.total.max", entry) or entry.seconds


def _traced(each: Evaluated) -> list[Entry]:
    """The last traced launch of each point."""
    entries, _ = load_entries(each.results.folder)
    last = {entry.point: entry for entry in entries if entry.trace and entry.status == DONE}
    return list(last.values())


def _numbers(entry: Entry) -> dict[str, Any]:
    return {axis: value for axis, value in entry.axes.items() if isinstance(value, (int, float))}
