"""Results that a report is made of, each recognised by what is in it, never by its name alone.

folder with points.jsonl, or with such folders below ▶ study      JSON with traceEvents ▶ timeline
JSON with lines and kinds ▶ measurement                           JSON with a variant ▶ record
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.undecodable import UNDECODABLE
from tilewise.lab.measurement import stored
from tilewise.lab.measurement.result import Measurement
from tilewise.lab.report.measure_page import page_of
from tilewise.lab.report.page import ReportPage, Section
from tilewise.lab.report.record_page import record_page
from tilewise.lab.report.study_page import study_page
from tilewise.lab.report.style import short
from tilewise.lab.report.timeline_page import trace_page
from tilewise.lab.study import evaluation
from tilewise.lab.study.evaluation import Evaluated
from tilewise.lab.study.results import environments_of, refuse_mixture
from tilewise.launch.record import Record

_ADVICE = "a record (--json), a timeline (--trace), a measurement (measure --json), a study's results"
_LARGEST = 1 << 30


@dataclasses.dataclass
class FoundResults:
    """Everything that was given, by kind; `records` with the names of their files."""

    studies: list[Evaluated] = dataclasses.field(default_factory=list)
    records: list[tuple[str, Record]] = dataclasses.field(default_factory=list)
    measurements: list[Measurement] = dataclasses.field(default_factory=list)
    traces: list[str] = dataclasses.field(default_factory=list)


def find(paths: Sequence[str]) -> FoundResults:
    """Reads everything in `paths`. UsageError for what is missing, or is none of the four."""
    results = FoundResults()
    for path in paths:
        if os.path.isdir(path):
            results.studies.append(evaluation.load(path))
        else:
            _file(path, results)
    ran = [entry for each in results.studies for point in each.results.points for entry in point.entries]
    around = [*environments_of(ran), *(each.environment for each in results.measurements)]
    refuse_mixture(" ".join(paths), around)
    return results


class _Glance(msgspec.Struct):
    """The keys that tell one kind of file from another."""

    variant: msgspec.Raw = msgspec.Raw(b"")
    lines: msgspec.Raw = msgspec.Raw(b"")
    traceEvents: msgspec.Raw = msgspec.Raw(b"")  # noqa: N815 - as the format spells it


def _file(path: str, results: FoundResults) -> None:
    if path.endswith(".gz"):
        results.traces.append(path)
        return
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > _LARGEST:
                raise UsageError(f"{path} is larger than 1 GiB, too large for a result", _ADVICE)
            text = file.read(size)  # as much memory as there are bytes, not as there may be
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", _ADVICE) from None
    try:
        glance = msgspec.json.decode(text, type=_Glance)
    except UNDECODABLE:
        raise UsageError(f"{path} is not a result that a report can be made of", _ADVICE) from None
    if bytes(glance.traceEvents):
        results.traces.append(path)
    elif bytes(glance.variant):
        results.records.append((path, _record(path, text)))
    elif bytes(glance.lines):
        results.measurements.append(stored.read(path))
    else:
        raise UsageError(f"{path} is not a result that a report can be made of", _ADVICE)


def _record(path: str, text: bytes) -> Record:
    try:
        return msgspec.json.decode(text, type=Record)
    except UNDECODABLE as error:
        raise UsageError(f"{path} is not a record of this version: {error}") from None


def report_page(results: FoundResults) -> ReportPage:
    """One page of everything: results of the same study side by side, the rest one below the other."""
    pages = []
    by_study: dict[str, list[Evaluated]] = {}
    for each in results.studies:
        by_study.setdefault(each.results.study.text, []).append(each)
    pages += [study_page(group) for group in by_study.values()]
    if results.records:
        names = _short([path for path, _ in results.records])
        pages.append(record_page(names, [record for _, record in results.records]))
    if results.traces:
        pages.append(trace_page(results.traces))
    pages += [page_of(measurement) for measurement in results.measurements]
    return pages[0] if len(pages) == 1 else _joined(pages)


def _short(paths: Sequence[str]) -> list[str]:
    """Names of files; whole paths where names are not enough."""
    names = [os.path.basename(path) for path in paths]
    return names if len(set(names)) == len(names) else list(paths)


def _joined(pages: Sequence[ReportPage]) -> ReportPage:
    sections = []
    for number, page in enumerate(pages, 1):
        first = True
        for section in page.sections:
            if section.empty():
                continue
            told = number == 1 or not first or section.title == page.title
            title = section.title if told else f"{page.title}: {section.title}"
            sections.append(dataclasses.replace(section, key=f"{number}-{section.key}", title=title))
            first = False
    titles = [page.title for page in pages]
    several = sum(bool(page.facts) for page in pages) > 1
    return ReportPage(
        title=" · ".join(titles[:3]) + (" …" if len(titles) > 3 else ""),
        subtitle=" · ".join(dict.fromkeys(page.subtitle for page in pages)),
        sections=list[Section](sections),
        facts=[
            dataclasses.replace(fact, name=f"{short(page.title)}: {fact.name}") if several else fact
            for page in pages
            for fact in page.facts
        ][:8],
        warnings=list(dict.fromkeys(text for page in pages for text in page.warnings)),
    )
