"""The page of a measurement: one file, whole, escaped, small, readable without scripts, alive in browsers."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from browser import browser, needs_browser
from measurements import EVIL, hostile, ping, whole, wrap
from shown import Tree
from tilewise.lab.report.measure import everything
from tilewise.lab.report.measure_page import page_of, plots_of
from tilewise.lab.report.page import Fact, ReportPage, Section
from tilewise.lab.report.render import html, write
from tilewise.lab.report.table import Column, Table

SIZE = 3 << 20


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "m.html"
    write(page_of(whole()), path)
    return path.read_text(encoding="utf-8")


def test_it_is_one_whole_page(text: str) -> None:
    tree = Tree(text)
    assert text.startswith("<!DOCTYPE html>") and tree.named("html") == [{"lang": "en"}]
    for tag in ("title", "header", "main", "footer", "h1", "nav"):
        assert len(tree.named(tag)) == 1 or tag == "title"
    names = [attributes["id"] for _, attributes in tree.tags if "id" in attributes]
    assert len(set(names)) == len(names)
    assert {str(link["href"]).removeprefix("#") for link in tree.named("a")} <= set(names)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    assert used <= set(names)


def test_every_table_and_figure_is_there(text: str) -> None:
    tree, measurement = Tree(text), whole()
    figures = [str(one["id"]) for one in tree.named("figure")]
    assert sorted(figures) == sorted(f"figure-{plot.key}" for plot in plots_of(measurement))
    assert len(tree.named("svg")) == len(figures)
    shown = tree.text()
    for table in everything(measurement):
        assert table.title in shown
    assert len(tree.named("table")) >= len(everything(measurement))
    for words in (
        "Environment",
        "A Processor 9000",
        "each rank to its own cores",
        "warm-up",
        "this node has one socket",
    ):
        assert words in shown
    for place, line in enumerate(measurement.lines):
        assert place % 40 or line.key in shown


def test_answers_stand_first_and_all_else_is_folded(text: str) -> None:
    tree = Tree(text)
    assert len([one for one in tree.named("details") if one.get("class") == "part"]) == 8
    before, _, after = text.partition('<details class="part"')
    shown = re.findall(r'<figure id="figure-([^"]+)"', before)
    assert shown == ["latency-core-1", "bandwidth-core-1", "memory-copy", "compute-curve"]
    assert "<table" not in before and 'id="figure-memory-curve"' in after
    names = ["Message latency", "Message bandwidth", "First write", "Read", "Memory copy", "Arithmetic"]
    assert [fact.name for fact in page_of(whole()).facts] == names
    bare = page_of(wrap(ping(sizes=3), environment={"caches": {"L1": 32768}, "variables": {"OMP_PLACES": 1}}))
    (around,) = [table for table in bare.tables() if table.key == "environment"]
    shown = [[cell.text for cell in row] for row in around.rows]
    assert shown == [["caches L1", "32 KiB"], ["variables OMP_PLACES", "1"]]


def test_a_rate_after_a_pause_is_a_figure_of_its_own() -> None:
    measurement = whole()
    before = {fact.name: fact for fact in page_of(measurement).facts}
    new = next(one for one in measurement.lines if one.series == "write_new" and one.summary is not None)
    measurement.lines.append(msgspec.structs.replace(new, key=f"{new.key}/rested", series="write_rested"))
    facts = {fact.name: fact for fact in page_of(measurement).facts}
    assert facts.keys() - before.keys() == {"First write after a pause"}
    assert {name: facts[name] for name in before} == before
    assert f"ranks {new.ranks}" in facts["First write after a pause"].note


def test_headline_figures_are_marked_and_the_top_says_what_disturbed_them() -> None:
    measurement = whole()
    for one in measurement.lines:
        one.labels = ["other programs busy (1.2 cores)"]
    page = page_of(measurement)
    assert page.facts and all(fact.value.endswith("*") for fact in page.facts)
    assert page.warnings[0].startswith("* Other programs busy: 231 of 231 lines. Rates here are lower bounds")
    shown = html(page)
    assert shown.index("* Other programs busy") < shown.index('<dl class="facts">') < shown.index("<figure")


@needs_browser
def test_a_whole_measurement_is_one_screen_and_a_few_sheets(tmp_path: Path) -> None:
    path = tmp_path / "m.html"
    write(page_of(whole(("core", "socket", "node"), (1, 3))), path)
    with browser() as seen:
        for width, most in ((1280, 1800), (400, 3000)):
            assert seen.open(path, width) == []
            assert seen.run("document.documentElement.scrollHeight") < most
            assert seen.run("document.querySelector('.facts').getBoundingClientRect().bottom") < 700
        sheets = re.findall(rb"/Type\s*/ReportPage\b", seen.printed(tmp_path / "m.pdf"))
        assert len(sheets) <= 3


def test_every_cell_is_under_its_heading(text: str) -> None:
    for table in re.findall(r"<table.*?</table>", text, re.DOTALL):
        heads = len(re.findall(r'<th scope="col"', table))
        for row in re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], re.DOTALL):
            assert len(re.findall(r"<t[dh]\b", row)) == heads


def test_it_asks_the_network_for_nothing(text: str) -> None:
    assert not re.search(
        r"https?:|//\w+\.\w|\burl\((?!#)|@import|<link|<iframe|<img", text.replace('"http" + "://', "")
    )
    tree = Tree(text)
    policy = tree.named("meta")[2]["content"]
    assert str(policy).startswith("default-src 'none'")
    for _, attributes in tree.tags:
        assert not {"src", "srcset", "action", "onclick", "onload"} & set(attributes)


def test_it_is_readable_without_scripts(text: str) -> None:
    bare = re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    tree = Tree(bare)
    assert "4 MiB" in tree.text() and len(tree.named("svg")) == 12
    assert (
        len(re.findall(r"<title>[^<]*GB/s[^<]*</title>", bare)) > 50
    )  # values by pointing, from the browser itself


def test_hostile_words_stay_words(tmp_path: Path) -> None:
    path = tmp_path / "h.html"
    write(page_of(hostile()), path)
    text = path.read_text(encoding="utf-8")
    tree = Tree(text)
    assert len(tree.named("script")) == 1 and text.count("<script") == 1
    assert "<script>alert('x')" in tree.text() and "\x00" not in text and "\x1b" not in text
    for _, attributes in tree.tags:
        assert not any(
            "<script" in str(value) and key in ("id", "class", "href") for key, value in attributes.items()
        )


def test_a_page_of_nothing(tmp_path: Path) -> None:
    write(page_of(wrap([], environment={}, clock={})), tmp_path / "n.html")
    tree = Tree((tmp_path / "n.html").read_text(encoding="utf-8"))
    assert "Measured: this machine" in tree.text() and tree.named("svg") == []


def test_five_hundred_lines_are_small() -> None:
    measurement = whole(("core", "socket", "node"), (1, 3))
    assert len(measurement.lines) > 500
    assert len(html(page_of(measurement)).encode()) < SIZE


def test_an_older_page_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "m.html"
    path.write_text("old", encoding="utf-8")
    write(ReportPage("t", "s", []), path)
    assert Tree(path.read_text(encoding="utf-8")).named("h1") and list(tmp_path.iterdir()) == [path]
    with pytest.raises(OSError, match="missing"):
        write(ReportPage("t", "s", []), tmp_path / "missing" / "m.html")


def test_other_reports_use_the_same_page() -> None:
    """Sections of any report: two with the same name, a folded table, facts, warnings."""
    table = Table("t", "Runs", [Column("n")], folded=True)
    table.add(EVIL)
    sections = [
        Section("same", "One", ["words"], [table]),
        Section("same", "Two", [], [table]),
        Section("empty", "Three"),
    ]
    text = html(
        ReportPage("Study", "of nothing", sections, [Fact("Speedup", "3.1×", "base 2.0 s")], ["beware"])
    )
    tree = Tree(text)
    assert [one["id"] for one in tree.named("section")] == ["same", "same-2"]
    assert len(tree.named("details")) == 2 and "Three" not in tree.text()
    assert all(words in tree.text() for words in ("Speedup", "3.1×", "base 2.0 s", "beware", "of nothing"))


PROBE = """(() => {
  Element.prototype.setPointerCapture = () => {};
  const told = {};
  const at = (x, y) => ({ clientX: x, clientY: y, bubbles: true, pointerType: "mouse", button: 0 });
  const plots = [...document.querySelectorAll("svg.plot")];
  const spot = document.querySelector(".spots circle"), tip = document.getElementById("tip");
  spot.dispatchEvent(new PointerEvent("pointermove", at(50, 50)));
  told.tip = !tip.hidden && tip.textContent;
  const box = plots[0].getBoundingClientRect(), before = plots[0].getAttribute("viewBox");
  plots[0].dispatchEvent(new PointerEvent("pointerdown", at(box.left + 100, box.top + 50)));
  plots[0].dispatchEvent(new PointerEvent("pointermove", at(box.left + 200, box.top + 150)));
  plots[0].dispatchEvent(new PointerEvent("pointerup", at(box.left + 200, box.top + 150)));
  told.nearer = Number(plots[0].getAttribute("viewBox").split(" ")[2]) < Number(before.split(" ")[2]) / 2;
  plots[0].dispatchEvent(new MouseEvent("dblclick"));
  told.whole = plots[0].getAttribute("viewBox") === before;
  const table = document.querySelector("#table-lines table"), head = table.tHead.rows[0].cells[2];
  head.click();
  const values = [...table.tBodies[0].rows].map((row) => Number(row.cells[2].dataset.v));
  told.sorted = values.every((value, place) => !place || values[place - 1] <= value);
  const bytes = document.querySelector('[id^="table-per-byte"] table');
  bytes.tHead.rows[0].cells[1].click();
  const shown = [...bytes.tBodies[0].rows].map((row) => parseFloat(row.cells[1].textContent));
  told.shown = shown.length > 5 && shown.every((value, place) => !place || shown[place - 1] <= value);
  return told;
})()"""


@needs_browser
def test_a_browser_runs_it(tmp_path: Path) -> None:
    """No script error, every figure drawn; pointing, enlarging and sorting work; nothing scrolls sideways."""
    path = tmp_path / "m.html"
    write(page_of(wrap(ping())), path)
    with browser() as seen:
        for width in (1200, 400):
            assert seen.open(path, width) == []
            assert len(seen.picture(tmp_path / f"measure-{width}.png")) > 20000
            told = seen.run(PROBE)
            assert "1 B" in told.pop("tip")
            assert told == {"nearer": True, "whole": True, "sorted": True, "shown": True}
            assert not seen.errors
