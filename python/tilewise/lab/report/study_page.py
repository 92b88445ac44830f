"""The page of a study: claims and verdicts first, then its tables and plots, data paths, what is missing.

Several results of one study stand side by side: columns of one table, curves of one figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewise.base.units import plural
from tilewise.lab.report import study_claims, study_tables
from tilewise.lab.report.page import Fact, Page, Section, section
from tilewise.lab.report.roofline import roofline
from tilewise.lab.report.study_labels import date, labels, last
from tilewise.lab.report.study_paths import paths, timelines
from tilewise.lab.report.study_plots import declared, phases
from tilewise.lab.study.claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE
from tilewise.lab.study.evaluation import Evaluated
from tilewise.lab.study.labels import band
from tilewise.launch.record import Record


def study_page(studies: Sequence[Evaluated]) -> Page:
    """The page of one study; `studies` are results of it, oldest first, at least one."""
    study = studies[0].results.study
    session = last(studies[0].results)
    words = [f"study {study.name}"]
    if len(studies) > 1:
        words += labels(studies)
    elif session is not None:
        words += [session.environment.machine, session.environment.cpu, date(studies[0].results)]
    return Page(
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


def _facts(studies: Sequence[Evaluated]) -> Iterator[Fact]:
    names = labels(studies)
    for each, name in zip(studies, names, strict=True):
        told = study_claims.counts(each.verdicts)
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
    own = study_claims.claims(studies, own=True)
    yield section("claims", "Claims", [], study_claims.claims(studies), own)
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
