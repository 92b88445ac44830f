"""What a page shows has its place at a desk and on a phone: no text on another, no table cut without a word.

The browser's own boxes decide, as `browser.FAULTS` compares them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browser import browser, needs_browser
from measurements import whole
from reports import Job, record
from studies import HERE, MACHINE, flag
from tilewise.cli.study_run import flags_of
from tilewise.engine.child import Ended
from tilewise.lab.report.bars import StackedBar, stacks
from tilewise.lab.report.load_results import FoundResults, find, report_page
from tilewise.lab.report.page import ReportPage, Section
from tilewise.lab.report.render import html
from tilewise.lab.study import run as running
from tilewise.lab.study import shipped
from tilewise.lab.study.points import expand
from tilewise.lab.study.store import Store
from tilewise.lab.study.study import read
from tilewise.lab.study.work import Work
from timelines import made_up

BRIEF = 2e-4  # of a second: jobs as short as those of a small study


def shortened(told: Any) -> Any:
    """Seconds of a record, and of all in it, as of a job of less than a millisecond."""
    if isinstance(told, dict):
        return {name: shortened(value) for name, value in told.items()}
    return told * BRIEF if isinstance(told, float) else told


class Brief(Job):
    """Answers with records of jobs that take less than a millisecond."""

    def __call__(self, words: list[str], folder: str, timeout: float | None) -> Ended:
        ended = super().__call__(words, folder, timeout)
        told = json.loads(ended.output)
        told["seconds"] = shortened(told["seconds"])
        told["samples"] = [shortened(each) for each in told["samples"]]
        told["labels"] = ["stolen"] * (flag(words, "--ranks") == "2")
        return Ended(0, json.dumps(told).encode(), "", ended.seconds)


def job(folder: Path) -> FoundResults:
    told = record(environment={**record()["environment"], "launcher": "mpiexec " + "-n 4 " * 20})
    told["seconds"] = shortened(told["seconds"])
    told["outputs"][0]["path"] = "/home/somebody/matrices/products/C.npy"
    (folder / "r.json").write_text(json.dumps(told), encoding="utf-8")
    return find([str(folder / "r.json"), str(made_up(folder / "t.json"))])


def measured(folder: Path) -> FoundResults:
    return FoundResults(measurements=[whole(("core", "socket", "node"), (1, 3))])


def of_study(folder: Path, name: str) -> FoundResults:
    """A built-in study at scale `tiny`, as it is run here."""
    study = read(shipped.path_of(name), "tiny")
    store = Store(str(folder))
    store.keep(study.text, "tiny", HERE, name)
    work = Work(str(folder / "work"), keep=False)
    try:
        points = expand(study, MACHINE, flags_of)
        running.run(study, points, store, work, HERE, runner=Brief(factors=(1.0, 1.3)))
    finally:
        work.close()
        store.close()
    return find([str(folder)])


def quick(folder: Path) -> FoundResults:
    return of_study(folder, "quick")


def transposed(folder: Path) -> FoundResults:
    return of_study(folder, "transpose-one-two-sided")


@needs_browser
@pytest.mark.parametrize("results", [job, quick, transposed, measured])
def test_no_text_lies_on_another_and_no_table_is_cut(tmp_path: Path, results: Any) -> None:
    path = tmp_path / "o.html"
    (tmp_path / "d").mkdir()
    path.write_text(html(report_page(results(tmp_path / "d"))), encoding="utf-8")
    with browser() as seen:
        for width, dark in ((1280, False), (400, False), (400, True)):
            assert seen.open(path, width, dark=dark) == []
            seen.run("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
            assert seen.faults() == []
        seen.run("document.querySelectorAll('.part').forEach((fold) => { fold.open = false; })")
        assert seen.paper_overflow() == []


@needs_browser
def test_ticks_of_short_times_beside_long_names_are_apart(tmp_path: Path) -> None:
    name = "size 128, ranks 4, collective, one-sided, through the root"
    plots = [
        stacks(f"s{place}", "T", "", [StackedBar(name, {"input": seconds})])
        for place, seconds in enumerate((8e-7, 1.5e-4, 2e-4, 1.8e-3, 2e-3, 0.0125, 0.8, 95.0, 12345.0))
    ]
    path = tmp_path / "o.html"
    page = ReportPage("T", "", [Section("a", "A", plots=plots)])
    path.write_text(html(page), encoding="utf-8")
    with browser() as seen:
        assert seen.open(path, 1280) == []


@needs_browser
def test_a_table_says_that_it_goes_on_only_where_it_does(tmp_path: Path) -> None:
    path = tmp_path / "o.html"
    path.write_text(html(report_page(job(tmp_path))), encoding="utf-8")
    said = "getComputedStyle(document.querySelector('#table-phases .scroll'), '::before').content"
    with browser() as seen:
        seen.open(path, 400)
        assert "scroll" in seen.run(said)
        seen.open(path, 1280)
        assert seen.run(said) == "none"


def test_what_is_joined_is_named_once(tmp_path: Path) -> None:
    """A record and its timeline: one page of facts needs no names before them, nor its sections."""
    page = report_page(job(tmp_path))
    assert [fact.name for fact in page.facts][:2] == ["Total", "Largest phase"]
    titles = [section.title for section in page.sections]
    assert titles[0] == "Where the time went" and titles[-2] == "Timeline"
    twice = tmp_path / "m"
    twice.mkdir()
    both = FoundResults(records=find([str(tmp_path / "r.json")]).records, measurements=[whole()])
    assert all(": " in fact.name for fact in report_page(both).facts)


def test_times_of_a_job_have_one_unit_and_zeros_no_line(tmp_path: Path) -> None:
    tables = {table.key: table for table in report_page(job(tmp_path)).tables()}
    assert {tables[key].columns[1].unit for key in ("phases", "1-phases") if key in tables} == {"µs"}
    total = next(row for row in tables["phases"].rows if row[0].text == "total")
    assert total[3].text == "725" and total[3].value == pytest.approx(3.625 * BRIEF)
    assert "exchanged ideal max rank" not in {row[0].text for row in tables["explained"].rows}


def test_a_footnote_of_several_tables_stands_once(tmp_path: Path) -> None:
    text = html(report_page(transposed(tmp_path)))
    section = text.partition('<section id="tables">')[2].partition("</section>")[0]
    notes = [note.partition("</li>")[0] for note in section.split("<li>")[1:]]
    signs = [note for note in notes if note[0] in "*†‡§"]
    assert signs and len(signs) == len(set(signs))
    # All points are of one launch: the top of the page tells it, and no table again.
    assert "single launch" in text.partition("<main>")[0] and "single launch" not in section
