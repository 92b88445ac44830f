"""The page of a study: claims first, ratios beside bases, the source beside us, what was not run and why."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pytest
from measurements import ping, wrap
from reports import Job, record, results
from shown import Tree
from studies import HERE
from tilewise.lab.measurement.result import Measurement
from tilewise.lab.report import study_page
from tilewise.lab.report.curves import Axis, Curve, curves
from tilewise.lab.report.load_results import find, report_page
from tilewise.lab.report.page import ReportPage, Section
from tilewise.lab.report.render import as_csv, html, write_figures, write_tables
from tilewise.lab.report.study_format import labels, telling
from tilewise.lab.report.style import Plot
from tilewise.lab.report.table import Table
from tilewise.lab.study import evaluation, store
from tilewise.lab.study.store import Entry
from tilewise.launch.record import Record
from timelines import made_up

SIZE = 3 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return results(tmp_path_factory.mktemp("s") / "results" / "s" / "one")


@pytest.fixture(scope="module")
def page(folder: Path) -> ReportPage:
    return report_page(find([str(folder)]))


def tables(page: ReportPage) -> dict[str, Table]:
    return {table.key: table for section in page.sections for table in section.tables}


def plots(page: ReportPage) -> dict[str, Plot]:
    return {plot.key: plot for section in page.sections for plot in section.plots}


def rows(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_claims_stand_before_figures_and_tables(page: ReportPage) -> None:
    keys = [section.key for section in page.sections]
    assert keys.index("about") < keys.index("claims") < keys.index("plots") < keys.index("tables")
    (first, second, third) = tables(page)["claims"].rows
    assert [first[1].text, first[1].tone] == ["undecided here", "strong"]
    assert first[1].data == {"claim": "Two ranks are <i>faster</i>", "verdict": "undecided"}
    assert first[2].value == pytest.approx(13.0 / 7.0, rel=0.3)
    assert first[2].text.startswith(f"{first[2].value:.2f} × (") and first[2].text.endswith(", n = 2)")
    assert first[3].text == "above 1 ×" and "at('speedup'" in first[3].hint
    assert first[4].text.startswith("Page 3. Its 95 % interval reaches to both sides of 1.")
    assert [second[1].text, second[1].tone] == ["not testable here", "faint"] and "needs 4 cores" in second[
        4
    ].text
    assert first[3].data == {"label": "condition"} and first[2].data == {"label": "figure"}
    assert [third[1].text, third[1].tone] == ["does not hold here", "bad"]
    facts = {fact.name: fact for fact in page.facts}
    assert facts["Claims that hold here"].value == "0 of 3"
    assert facts["Claims that hold here"].note == "1 do not, 1 undecided, 1 not testable here"
    assert 'data-claim="Two ranks are &lt;i&gt;faster&lt;/i&gt;" data-verdict="undecided"' in html(page)


def test_a_ratio_stands_beside_its_base(page: ReportPage) -> None:
    """Of the pretended job: 12 s over its ranks, and 1 s more through the root."""
    speedup = tables(page)["study-speedup"]
    assert [column.title for column in speedup.columns] == ["ranks", "root", "positioned", "collective"]
    assert all(re.fullmatch(r"of 1\d\.\d+ s", column.unit) for column in speedup.columns[1:])
    row = next(row for row in speedup.rows if row[0].text == "4")
    assert row[1].value == pytest.approx(13 / 4, rel=0.2) and row[1].spread.startswith(("±", "> ±"))
    assert row[2].value == pytest.approx(4.0, rel=0.2) and "base" in row[2].hint and "interval" in row[2].hint
    away = next(row for row in speedup.rows if row[0].text == "8")
    assert away[1].text == "not run" and away[1].value is None and "needs 4 cores" in away[1].hint


def test_the_source_s_figures_stand_beside_ours(page: ReportPage) -> None:
    made = tables(page)
    keys = list(made)
    assert keys[keys.index("study-total") + 1] == "total-reference"
    told = made["total-reference"]
    assert told.title.startswith("report 9, Table 1") and told.notes == ["on 8 nodes"]
    assert rows(told) == [["64", "9.5", "4.5"], ["128", "8.25", "–"]]
    assert [column.title for column in told.columns] == ["size", "ranks 1", "ranks 2"]


def test_every_point_is_there_with_a_figure_or_a_reason(page: ReportPage, folder: Path) -> None:
    made, found = tables(page), evaluation.load(str(folder)).results
    assert len(made["points"].rows) + len(made["missing"].rows) == len(found.points) == 36
    reasons = Counter(row[2].text.partition(":")[0] for row in made["missing"].rows)
    assert reasons == {"not run": 9, "failed": 3}
    assert any("the disk is full" in row[2].text and row[2].tone == "bad" for row in made["missing"].rows)


def test_every_declared_plot_is_drawn(page: ReportPage) -> None:
    drawn = plots(page)
    assert {"plot-lines", "plot-bars", "plot-map", "plot-cloud", "roofline"} <= set(drawn)
    assert any(key.startswith("phases-") for key in drawn)
    lines = {line.get_label(): line.get_xydata() for line in drawn["plot-lines"].figure.axes[0].get_lines()}
    assert {"root", "positioned", "collective", "ideal", "root (report 9)"} <= set(lines)
    assert lines["ideal"][:, 1] == pytest.approx(lines["ideal"][:, 0])
    assert lines["root (report 9)"][:, 1] == pytest.approx([1.0, 1.5, 1.7])
    axes = drawn["plot-lines"].figure.axes[0]
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert "missing" in drawn["plot-lines"].caption
    assert len(drawn["plot-map"].spots) == 3 * 3


def test_a_bar_of_phases_is_as_long_as_they_are(page: ReportPage) -> None:
    plot = next(plot for key, plot in plots(page).items() if key.startswith("phases-"))
    widths = [spot.width for spot in plot.spots]
    assert widths[:5] == pytest.approx([0.5, 1.5, 0.5, 0.5, 0.5])
    assert "compute 1.50 s; 43 %" in plot.spots[1].text


def test_a_studys_records_have_their_types() -> None:
    measured = msgspec.to_builtins(wrap(ping(sizes=2)))
    made = {"job": record(), "measurement": measured, "other": {"lines": 5}, "none": None}
    entries = [
        Entry(hash="", point="", run=name, axes={}, status="done", record=told) for name, told in made.items()
    ]
    assert [type(entry.result()) for entry in entries] == [Record, Measurement, type(None), type(None)]


def test_each_way_of_the_data_is_drawn_once(page: ReportPage) -> None:
    drawings = next(section.drawings for section in page.sections if section.key == "paths")
    assert sorted(drawing.title for drawing in drawings) == [
        "collective",
        "positioned",
        "root",
    ]
    for drawing in drawings:
        assert "cannon, nonblocking" in drawing.svg and "http" not in drawing.svg
        assert "var(" not in drawing.alone and 'xmlns="http://www.w3.org/2000/svg"' in drawing.alone


def test_a_narrow_logarithmic_axis_has_ticks() -> None:
    points = [(1.0, 0.0120, 0.0120, 0.0120, ""), (64.0, 0.0123, 0.0123, 0.0123, "")]
    plot = curves("k", "t", "c", [Curve("c", points)], Axis("x"), Axis("y"))
    plot.figure.draw_without_rendering()
    for side in (plot.figure.axes[0].xaxis, plot.figure.axes[0].yaxis):
        low, high = side.get_view_interval()
        told = [tick.label1.get_text() for tick in side.get_major_ticks() if low <= tick.get_loc() <= high]
        assert len(list(filter(None, told))) >= 2


def test_a_bar_s_name_says_what_differs() -> None:
    points = [
        {"size": 1, "way": way, "io": io} for way, io in (("text", "root"), ("bin", "root"), ("all", "pread"))
    ]
    assert telling(points) == ["way"] and telling(points[:1]) == []
    assert telling([*points, {"size": 2, "way": "text", "io": "root"}]) == ["size", "way"]


def test_results_are_called_by_what_tells_them_apart(tmp_path: Path) -> None:
    names = ("2026-01-02T03-04-05", "2026-01-02T06-07-08", "2026-02-03T03-04-05")
    found = [evaluation.load(str(results(tmp_path / "s" / name, sizes=1, launches=1))) for name in names]
    assert labels(found[:2]) == ["03:04", "06:07"]
    assert labels(found[1:]) == ["2026-01-02", "2026-02-03"]
    assert labels(found) == ["01-02 03:04", "01-02 06:07", "02-03 03:04"]


def test_timelines_of_points_that_differ_in_words_only(folder: Path, tmp_path: Path) -> None:
    traced = tmp_path / "s" / "d"
    shutil.copytree(folder, traced)
    (traced / "traces").mkdir()
    lines = []
    for line in (traced / store.POINTS).read_bytes().splitlines():
        entry = json.loads(line)
        if entry["status"] == "done" and entry["axes"]["size"] == 64:
            entry["trace"] = f"traces/{entry['point']}.json"
            made_up(traced / entry["trace"], ranks=2)
        lines.append(json.dumps(entry) + "\n")
    (traced / store.POINTS).write_text("".join(lines), encoding="utf-8")
    page = report_page(find([str(traced)]))
    (drawing,) = next(section.drawings for section in page.sections if section.key == "timeline")
    for words in ("size 64, ranks 4, root", "size 64, ranks 4, positioned", "size 64, ranks 4, collective"):
        assert words in drawing.svg
    assert "ranks 2," not in drawing.svg and html(page).count("<script>") == 2
    first = next(json.loads(line)["trace"] for line in lines if json.loads(line)["trace"])
    (traced / first).write_text('{"traceEvents": [')
    short = next(s for s in report_page(find([str(traced)])).sections if s.key == "timeline")
    assert len(short.words) == 1 and f"Omitted: {traced / first}: no timeline" in short.words[0]
    assert len(short.drawings) == 1
    shutil.rmtree(traced / "traces")
    gone = next(s for s in report_page(find([str(traced)])).sections if s.key == "timeline")
    assert not gone.drawings and "the timeline cannot be read" in gone.words[0]


def test_a_timeline_that_is_not_typical_says_so(folder: Path, tmp_path: Path) -> None:
    """A traced launch that took ten times as long as the other one of its point."""
    traced = tmp_path / "s" / "d"
    shutil.copytree(folder, traced)
    (traced / "traces").mkdir()
    lines = [json.loads(line) for line in (traced / store.POINTS).read_bytes().splitlines()]
    wanted = {"size": 64, "ranks": 4, "io": "root"}
    entry = next(line for line in lines if line["status"] == "done" and line["axes"] == wanted)
    entry["trace"] = "traces/t.json"
    made_up(traced / entry["trace"], ranks=2)

    def section() -> Section:
        (traced / store.POINTS).write_text(
            "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
        )
        return next(s for s in report_page(find([str(traced)])).sections if s.key == "timeline")

    typical = section()
    assert typical.words == [] and "not typical" not in typical.drawings[0].svg
    entry["record"]["seconds"]["total"]["max"] *= 10
    (said,) = section().words
    assert said.startswith("Not typical: main") and " in the 2 launches that count" in said
    assert "not typical" in section().drawings[0].svg


def test_few_data_paths_are_drawn_the_commonest_first() -> None:
    seen: dict[Any, Any] = {}
    for count in range(9):
        told = record()
        told["variant"].update(io=f"way{count}:root", ranks=2, grid=[1, 2])
        for _ in range(count + 1):
            study_page._note("main", msgspec.convert(told, Record), seen)
    drawn = list(study_page._drawings(seen))
    assert [drawing.title.split()[0] for drawing in drawn] == [f"way{count}" for count in range(8, 2, -1)]
    assert "on 2 ranks." in drawn[0].caption and "Drawn for" not in drawn[0].caption
    assert "Not drawn: 3 rarer ways." in drawn[-1].caption and "rank 2" not in drawn[0].svg


def test_the_page_is_whole_escaped_and_asks_for_nothing(page: ReportPage) -> None:
    text = html(page)
    tree = Tree(text)
    assert text.count("<script>") == text.count("</script>") == 1 and "alert(1)" in tree.text()
    assert not re.search(
        r"https?:|\burl\((?!#)|@import|<link|<iframe|<img", text.replace('"http" + "://', "")
    )
    assert "<i>faster</i>" in unescape(text) and "<i>" not in text and "<b>9" not in text
    figures = sum(len(section.plots) + len(section.drawings) for section in page.sections)
    assert len(tree.named("figure")) == len(tree.named("svg")) == figures
    names = [attributes["id"] for _, attributes in tree.tags if "id" in attributes]
    assert len(set(names)) == len(names)


def test_two_machines_stand_side_by_side(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studies.HERE", msgspec.structs.replace(HERE, machine="there", cores=64))
    other = results(tmp_path / "results" / "s" / "two", factors=(2.0,))
    page = report_page(find([str(folder), str(other)]))
    made = tables(page)
    titles = [column.title for column in made["study-total"].columns]
    assert titles[1:3] == ["ranks 1 · here", "ranks 1 · there"]
    first = made["study-total"].rows[0]
    assert first[2].value == pytest.approx(26.0) and first[1].value == pytest.approx(13.0, rel=0.2)
    assert [column.title for column in made["environment"].columns] == ["what", "here", "there"]
    assert ["cores", "2", "64"] in rows(made["environment"])
    assert [column.title for column in made["claims"].columns][1:5] == [
        "here",
        "figure · here",
        "there",
        "figure · there",
    ]
    curves = [line.get_label() for line in plots(page)["plot-lines"].figure.axes[0].get_lines()]
    assert {"root · here", "root · there"} <= set(curves)


def test_a_folder_above_means_the_newest(folder: Path) -> None:
    above = report_page(find([str(folder.parent)]))
    assert above.title == "T" and above.sections[0].tables[0].rows[0][1].text == str(folder)


def test_five_hundred_points_are_small(tmp_path: Path) -> None:
    folder = results(tmp_path / "r" / "s" / "d", sizes=42, launches=1)
    page = report_page(find([str(folder)]))
    assert len(evaluation.load(str(folder)).results.points) > 500
    assert len(html(page).encode()) < SIZE


def test_tables_and_figures_as_files(page: ReportPage, tmp_path: Path) -> None:
    written = write_tables(page.tables(), tmp_path / "tables")
    endings = dict.fromkeys((".csv", ".md", ".json"), len(written) // 3)
    assert Counter(path.suffix for path in written) == endings
    text = (tmp_path / "tables" / "study-speedup.csv").read_text(encoding="utf-8")
    assert text == as_csv(tables(page)["study-speedup"])
    read = list(csv.DictReader(io.StringIO(text)))
    (root,) = [name for name in read[2] if name.startswith("root")]
    assert float(read[2][root]) == pytest.approx(13 / 4, rel=0.2)
    assert "\\<script\\>" in (tmp_path / "tables" / "study-total.md").read_text(encoding="utf-8")
    figures = write_figures(page.figures(), tmp_path / "figures")
    drawn = sum(len(section.plots) for section in page.sections)
    drawings = sum(len(section.drawings) for section in page.sections)
    assert Counter(path.suffix for path in figures) == {".svg": drawn + drawings, ".png": drawn}
    assert all(path.stat().st_size > 500 for path in figures)


def test_a_study_of_nothing_has_a_page(tmp_path: Path) -> None:
    folder = tmp_path / "r" / "s" / "d"
    results(folder, sizes=1, factors=(1.0,))
    lines = (folder / store.POINTS).read_bytes().splitlines(keepends=True)
    (folder / store.POINTS).write_bytes(b"".join(line for line in lines if b'"not run"' in line))
    page = report_page(find([str(folder)]))
    assert tables(page)["points"].rows == [] and Tree(html(page)).named("h1")
    assert all(row[1].text == "not testable here" for row in tables(page)["claims"].rows)


def test_the_runner_of_these_tests_fails_where_it_is_told_to() -> None:
    assert Job(lambda words: True)(["multiply"], ".", None).exit_code == 1
