"""The page of a study, or of several results of one, with the way of the data and timelines."""

from __future__ import annotations

import dataclasses
import os
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from tilewise.base.errors import UsageError
from tilewise.base.units import plural
from tilewise.files.checks import printable
from tilewise.lab.measurement.result import Measurement
from tilewise.lab.report import study_tables
from tilewise.lab.report.data_path import DataWay, data_path, way_of
from tilewise.lab.report.page import Drawing, Fact, ReportPage, Section, section
from tilewise.lab.report.roofline import roofline
from tilewise.lab.report.study_format import date, labels, last, said, telling
from tilewise.lab.report.study_plots import declared, phases
from tilewise.lab.report.table import time_text
from tilewise.lab.report.timeline import Timeline, read_timeline
from tilewise.lab.report.timeline_page import ABREAST, timeline_section
from tilewise.lab.study.claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE
from tilewise.lab.study.evaluation import Evaluated
from tilewise.lab.study.observations import figure_of
from tilewise.lab.study.results import band
from tilewise.lab.study.run import nothing_decided
from tilewise.lab.study.store import DONE, Entry, load_entries
from tilewise.launch.record import Record

_PATHS = 6  # drawn, those of most points first: more tell nothing new
_TYPICAL = 1.5  # of the median of a point's launches: what is further from it is marked


def paths(studies: Sequence[Evaluated]) -> Iterator[Drawing]:
    """A drawing for each way that the data took in any point, with the ranks of the largest such job."""
    seen: dict[tuple[str, str], _Path] = {}
    for each in studies:
        for point in each.results.points:
            for entry in point.entries[-1:]:
                _note(point.run, entry.result(), seen)
    yield from _drawings(seen)


def _drawings(seen: dict[tuple[str, str], _Path]) -> Iterator[Drawing]:
    often = sorted(seen.values(), key=lambda path: -path.points)
    for number, path in enumerate(often[:_PATHS]):
        way = dataclasses.replace(path.way, between=_named(list(path.between)))
        title = way.read if way.read == way.write else f"{way.read} in, {way.write} out"
        several = f"{path.least} to {path.ranks}" if path.least < path.ranks else str(path.ranks)
        told = f"Runs: {', '.join(path.runs)}, on {several} ranks."
        told += f" Drawn for {way.drawn}." if way.drawn < path.ranks else ""
        left = len(often) - _PATHS if number == _PATHS - 1 else 0
        told += f" Not drawn: {plural(left, 'rarer way')}." if left > 0 else ""
        yield data_path(f"path-{number}", title, way, told)


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
    """Who took a way, on how many ranks, and what went between these; dictionaries as sets in order."""

    way: DataWay
    least: int
    ranks: int = 0
    points: int = 0
    runs: dict[str, None] = dataclasses.field(default_factory=dict)
    between: dict[str, None] = dataclasses.field(default_factory=dict)


def _note(run: str, record: Record | Measurement | None, seen: dict[tuple[str, str], _Path]) -> None:
    if isinstance(record, Record):
        way, ranks = way_of(record), record.variant.ranks
        path = seen.setdefault((way.read, way.write), _Path(way, ranks))
        path.points += 1
        path.least = min(path.least, ranks)
        if ranks > path.ranks:
            path.way, path.ranks = way, ranks
        path.runs[run] = None
        if way.between:
            path.between[way.between] = None


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
                    lines.append(read_timeline(_within(one[0].results.folder, one[2].trace)))
                    shown.append(one)
                except UsageError as error:
                    unread.append(f"Omitted: {error.message}.")
        left = [one for one in left if _numbers(one[2]) != _numbers(longest)]
    if not lines:
        return Section("timeline", "Timeline", unread)
    axes = {*telling([entry.axes for _, _, entry in shown]), *_numbers(shown[0][2])}
    strange = []
    for line, (each, name, entry) in zip(lines, shown, strict=True):
        told = [said(axis, value) for axis, value in entry.axes.items() if axis in axes]
        words = ", ".join([entry.run, *told])
        line.title = f"{words} · {name}" if name else words
        if told_of_it := _untypical(each, entry):
            strange.append(f"Not typical: {line.title}: {told_of_it}.")
            line.title += " · not typical"
    return dataclasses.replace(timeline_section(lines), words=[*strange, *unread])


def _untypical(each: Evaluated, entry: Entry) -> str:
    """How far the traced launch is from those that count; empty where it is near, or nobody knows."""
    there = [point for point in each.results.points if point.key == entry.point]
    counted = [figure_of("seconds.total.max", one) for point in there for one in point.entries]
    known = [seconds for seconds in counted if seconds]
    mine = figure_of("seconds.total.max", entry)
    if not known or not mine:
        return ""
    usual = statistics.median(known)
    if 1 / _TYPICAL <= mine / usual <= _TYPICAL:
        return ""
    launches = plural(len(known), "launch")
    return f"{time_text(mine)} here, {time_text(usual)} in the {launches} that count"


def _size(entry: Entry) -> tuple[float, float]:
    """Ranks, then seconds: a timeline of one rank shows little."""
    return figure_of("variant.ranks", entry) or 0.0, figure_of("seconds.total.max", entry) or entry.seconds


def _within(folder: str, name: str) -> str:
    """The path of a file of the results; UsageError where `name` leads out of their `folder`."""
    if os.path.isabs(name) or ".." in name.split("/"):
        raise UsageError(f"{printable(name)} is not a file of these results")
    return os.path.join(folder, name)


def _traced(each: Evaluated) -> list[Entry]:
    """The last traced launch of each point."""
    entries, _ = load_entries(each.results.folder)
    last = {entry.point: entry for entry in entries if entry.trace and entry.status == DONE}
    return list(last.values())


def _numbers(entry: Entry) -> dict[str, Any]:
    return {axis: value for axis, value in entry.axes.items() if isinstance(value, (int, float))}


def study_page(studies: Sequence[Evaluated]) -> ReportPage:
    """The page of one study; `studies` are results of it, oldest first, at least one."""
    study = studies[0].results.study
    session = last(studies[0].results)
    words = [f"study {study.name}"]
    if len(studies) > 1:
        words += labels(studies)
    elif session is not None:
        words += [session.environment.machine, session.environment.cpu, date(studies[0].results)]
    return ReportPage(
        title=study.file.title,
        subtitle=" · ".join(filter(None, words)),
        sections=list(_sections(studies)),
        facts=list(_facts(studies)),
        warnings=list(dict.fromkeys(note for each in studies for note in _warnings(each))),
    )


def _warnings(each: Evaluated) -> Iterator[str]:
    """Notes on the results, and the band of labels."""
    yield from each.results.notes
    if told := band(each.results.points):
        yield told
    if undecided := nothing_decided(each):
        yield undecided


def _facts(studies: Sequence[Evaluated]) -> Iterator[Fact]:
    names = labels(studies)
    for each, name in zip(studies, names, strict=True):
        told = study_tables.counts(each.verdicts)
        if total := sum(told.values()):
            note = f"{told[FAILS]} do not, {told[UNDECIDED]} undecided, {told[UNTESTABLE]} not testable here"
            yield Fact(f"Claims that hold {name or 'here'}", f"{told[HOLDS]} of {total}", note)
        points = each.results.points
        ran = sum(bool(point.entries) for point in points)
        failed = sum(point.reason.startswith("failed") for point in points)
        note = f"{plural(failed, 'point')} failed, {len(points) - ran - failed} not run"
        yield Fact(f"Points {name}".strip(), f"{ran} of {len(points)}", note)
        launches = [entry for point in points for entry in point.entries]
        minutes = sum(entry.seconds for entry in launches) / 60
        yield Fact(f"Launches {name}".strip(), str(len(launches)), f"{minutes:.1f} minutes of measuring")
    session = last(studies[0].results)
    if session is not None and len(studies) == 1:
        yield Fact("Cores", str(session.environment.cores), f"scale {session.scale}")


def _sections(studies: Sequence[Evaluated]) -> Iterator[Section]:
    file = studies[0].results.study.file
    words = [" ".join(part.split()) for part in file.description.strip().split("\n\n") if part.strip()]
    words += [f"After {file.source}."] if file.source else []
    around = study_tables.environment(studies)
    around.folded = len(studies) == 1
    yield section("about", "About this study", words, around)
    own = study_tables.claims(studies, own=True)
    yield section("claims", "Claims", [], study_tables.claims(studies), own)
    plots = [plot for place in range(len(file.plots)) for plot in declared(studies, place)]
    yield section("plots", "Figures", [], *plots)
    tables = [table for place in range(len(file.tables)) for table in study_tables.figures(studies, place)]
    yield section("tables", "Tables", [], *tables)
    points = [point for each in studies for point in each.results.points]
    results = [entry.result() for point in points for entry in point.entries[-1:]]
    records = [record for record in results if isinstance(record, Record)]
    roofed = any(plot.roofs for each in studies for plot in each.plots)
    general = None if roofed else roofline("roofline", records)
    yield section("phases", "Where the time goes", [], *phases(studies), general)
    timeline = timelines(studies)
    if timeline is not None:
        yield timeline
    drawings = list(paths(studies))
    told = ["Colours show which rank owns a piece."]
    yield section("paths", "Data paths", told if drawings else [], *drawings)
    yield section("missing", "Not run, and failed", [], study_tables.missing(studies))
    yield section("points", "Points", [], study_tables.points(studies))
