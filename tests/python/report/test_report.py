"""`tilewise report`: how results are recognised, the pages of records and timelines, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from browser import browser, needs_browser
from measurements import ping, wrap
from reports import record, results
from shown import Tree
from tilewise.cli import main
from tilewise.lab.measurement import stored
from tilewise.lab.report import roofline
from tilewise.lab.report.data_path import WORDS, DataWay, data_path, way_of
from tilewise.lab.report.load_results import find, report_page
from tilewise.lab.report.page import ReportPage
from tilewise.lab.report.render import html
from tilewise.lab.report.roofline import PointWork
from tilewise.launch.record import Record
from timelines import made_up


def kept(path: Path, **more: Any) -> str:
    path.write_text(json.dumps(record(**more)), encoding="utf-8")
    return str(path)


def text_of(page: ReportPage) -> str:
    return Tree(html(page)).text()


def test_a_record_is_told_in_full(tmp_path: Path) -> None:
    page = report_page(find([kept(tmp_path / "r.json")]))
    shown = text_of(page)
    for words in (
        "Where the time went",
        "– distributing",
        "verified by Freivalds' check: error 1.0e-16 ≤ 1.0e-14",
        "cannon: the grid is square",
        "1.00 MiB on the largest rank",
        "A Processor 9000",
        "OMP_NUM_THREADS",
        "Repetitions",
        "beware of",
        "3.00 GFLOP/s",
    ):
        assert words in shown
    assert {fact.name: fact.value for fact in page.facts}["Largest phase"] == "compute"
    drawn = [plot.key for section in page.sections for plot in section.plots]
    assert drawn == ["phases", "roofline"]
    phases = page.sections[0].plots[0]
    assert [spot.width for spot in phases.spots[:5]] == [0.5, 1.5, 0.5, 0.5, 0.5]
    assert "root_collective" in next(s.drawings[0].svg for s in page.sections if s.drawings)


def test_what_disturbed_a_job_stands_above_its_page(tmp_path: Path) -> None:
    seen = {"launch": 0, "what": "multiply", "seconds": 3.6, "others": 0.31, "stolen": 0.07, "throttled": 4}
    seen["labels"] = [
        "oversubscribed",
        "other programs busy (0.6 cores)",
        "cores too hot (slowed down 4 times)",
    ]
    path = kept(tmp_path / "r.json", disturbance=seen, labels=["busy", "frequency", "oversubscribed"])
    page = report_page(find([path]))
    assert [each for each in page.warnings if "during" in each] == [
        "during multiply: other programs busy (0.6 cores)",
        "during multiply: cores too hot (slowed down 4 times)",
    ]
    (table,) = [table for part in page.sections for table in part.tables if table.key == "meanwhile"]
    assert [row[1].text for row in table.rows[1:]] == ["31 %", "7.0 %", "4"]
    older = report_page(find([kept(tmp_path / "o.json", labels=["busy"])]))
    assert "during multiply: busy" in older.warnings
    assert "during multiply: other programs busy (0.6 cores)" in report_page(find([path, path])).warnings


def test_hostile_words_of_a_record_stay_words(tmp_path: Path) -> None:
    text = html(report_page(find([kept(tmp_path / "r.json")])))
    assert text.count("<script") == 1 and "\x00" not in text and "\x1b" not in text
    assert "<script>alert('x')" in Tree(text).text()
    assert not re.search(r"https?:|<link|<iframe|<img", text.replace('"http" + "://', ""))


def test_records_are_compared(tmp_path: Path) -> None:
    failed = {"method": "serial", "passed": False, "error": 1.0, "tolerance": 1e-14}
    partial = {"method": "fast", "passed": True, "share": 0.032, "error": 0.0, "tolerance": 0.0}
    paths = [kept(tmp_path / "one.json"), kept(tmp_path / "two.json", verification=failed)]
    paths.append(kept(tmp_path / "partial.json", verification=partial))
    page = report_page(find(paths))
    (table,) = page.sections[0].tables
    assert [row[0].text for row in table.rows] == ["one.json", "two.json", "partial.json"]
    verdicts = [(row[-1].text, row[-1].tone) for row in table.rows]
    assert verdicts == [("passed", "good"), ("FAILED", "bad"), ("3 % passed", "faint")]
    alone = report_page(find(paths[2:]))
    assert {fact.name: fact.value for fact in alone.facts}["Check"] == "3 % passed"
    assert "partly verified (3 % of the result) by Freivalds' check" in text_of(alone)
    assert [plot.key for plot in page.sections[0].plots] == ["records", "roofline"]


def test_a_timeline_gives_each_rank_its_seconds(tmp_path: Path) -> None:
    path = made_up(tmp_path / "t.json", ranks=3)
    page = report_page(find([str(path)]))
    spans = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    table = next(table for section in page.sections for table in section.tables)
    assert [row[0].text for row in table.rows] == ["rank 0", "rank 1", "rank 2"]
    for rank, row in enumerate(table.rows):
        told = sum(event["dur"] for event in spans if event["pid"] == rank and event["name"] != "job") / 1e6
        assert sum(cell.value or 0.0 for cell in row[1:]) == pytest.approx(told, rel=0.05)
    assert html(page).count("<script>") == 2


def test_timelines_above_each_other_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    slow, fast, other = (made_up(tmp_path / name) for name in ("slow.json", "fast.json", "d/fast.json"))
    text = html(report_page(find([str(slow), str(fast)])))
    assert ">stencil · slow.json" in text and ">stencil · fast.json" in text
    pictures = html(report_page(find([str(fast), str(other)])))
    assert f"Ranks of {fast}" in pictures and f"Ranks of {other}" in pictures


def test_facts_of_a_page_of_several_say_of_what(tmp_path: Path) -> None:
    folder = results(tmp_path / "s" / "d", sizes=1, launches=1)
    page = report_page(find([str(folder), kept(tmp_path / "r")]))
    assert [fact.name for fact in page.facts][:2] == ["T: Claims that hold here", "T: Points"]
    assert page.facts[-1].name.startswith("multiply")


def test_a_file_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    stored.write(wrap(ping(sizes=3)), str(tmp_path / "m.txt"))
    folder = results(tmp_path / "s" / "d", sizes=1, launches=1)
    trace, plain = made_up(tmp_path / "t"), kept(tmp_path / "r")
    found = find([str(tmp_path / "m.txt"), str(folder), str(trace), plain])
    assert [len(each) for each in (found.measurements, found.studies, found.traces, found.records)] == [
        1,
        1,
        1,
        1,
    ]
    page = report_page(found)
    names = [section.key for section in page.sections]
    assert len(set(names)) == len(names) and names[0].startswith("1-") and names[-1].startswith("4-")
    assert all(words in text_of(page) for words in ("Timeline", "Messages", "Claims", "Files and ranks"))


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "no JSON", '{"variant": 1}', '{"traceEvents": 7}', "\x00" * 9]
)
def test_what_is_no_result_is_refused(
    content: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text(content, encoding="utf-8")
    assert main(["report", str(tmp_path / "x.json"), "-o", str(tmp_path / "o.html")]) == 2
    said = capfd.readouterr().err
    assert "x.json" in said and "internal" not in said and not (tmp_path / "o.html").exists()


def test_a_wrong_request_is_refused_before_anything_is_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    here, page = kept(tmp_path / "r.json"), str(tmp_path / "o.html")
    for words, said in (
        ([], "needs a result"),
        ([here], "-o FILE.html"),
        ([here, "--output=-"], "-"),
        ([here, "-o", here], "also an input"),
        ([here, "-o", str(tmp_path)], "is a folder"),
        ([str(tmp_path / "none"), "-o", page], "does not exist"),
        ([str(tmp_path), "-o", page], "no results of a study"),
        ([here, "-o", page, "--plots", here], "--plots expects a folder"),
        ([here, "-o", str(tmp_path / "no" / "o.html")], "no"),
    ):
        assert main(["report", *words]) == 2
        assert said in capfd.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json"]


def test_a_page_replaces_no_file_of_the_results(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = results(tmp_path / "s" / "one")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    for name in ("points.jsonl", "study.toml", "environment.json"):
        for result in (folder, tmp_path / "s"):
            assert main(["report", str(result), "-o", str(folder / name)]) == 2
            assert "also an input" in capfd.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    assert main(["report", str(folder), "-o", str(folder / "page.html")]) == 0


def test_everything_is_written_where_it_is_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", kept(tmp_path / "r.json"), "-o", str(tmp_path / "o.html")]
    assert main([*words, "--plots", str(tmp_path / "p"), "--tables", str(tmp_path / "t")]) == 0
    said = capsys.readouterr().out
    assert "o.html" in said and "files" in said
    assert {"phases.svg", "phases.png", "path.svg", "roofline.png"} <= {
        path.name for path in (tmp_path / "p").iterdir()
    }
    assert {"phases.csv", "phases.md"} <= {path.name for path in (tmp_path / "t").iterdir()}
    assert main([*words, "-q"]) == 0 and capsys.readouterr().out == ""


@pytest.mark.parametrize("strategy", WORDS)
def test_a_data_path_is_drawn_within_its_frame(strategy: str) -> None:
    drawing = data_path("k", "a <job>", DataWay(strategy, strategy, "cannon, nonblocking"))
    tree = Tree(f"<p>{drawing.svg}</p>")
    assert [one["viewbox"] for one in tree.named("svg")] == ["0 0 420 276"]
    assert (
        "rank 3" in tree.text()
        and "between: cannon, nonblocking" in tree.text()
        and "a <job>" in drawing.caption
    )
    for _, told in tree.tags:
        for x, y in re.findall(
            r"(-?[\d.]+)[, ](-?[\d.]+)", f"{told.get('points') or ''} {told.get('d') or ''}"
        ):
            assert 0 <= float(x) <= 420 and 0 <= float(y) <= 262


def test_a_data_path_runs_from_the_file_to_its_ranks_and_back() -> None:
    """As many arrows as there are pieces, ranks or messages, on each side; heads are triangles."""
    counts = {"root": 4, "root_collective": 4, "per_rank": 4, "positioned": 8, "two_phase": 8, "none": 0}
    for strategy, arrows in counts.items():
        heads = len(
            re.findall(r'stroke-width="(?:3|1\.4)"', data_path("k", "t", DataWay(strategy, "none")).svg)
        )
        assert heads == arrows, strategy
    assert len(re.findall('stroke-width="3"', data_path("k", "t", DataWay("root", "root")).svg)) == 2


def test_the_way_of_the_data_follows_from_the_record() -> None:
    def way(**fields: Any) -> Any:
        told = record(**{name: fields.pop(name) for name in ("command", "inputs") if name in fields})
        told["variant"].update(fields)
        return way_of(msgspec.convert(told, Record))

    assert way() == DataWay("root_collective", "positioned", "cannon, nonblocking")
    assert way(io="mapped") == DataWay("mapped", "mapped", "cannon, nonblocking")
    assert way(ranks=1).between == way(exchange="none").between == "" and way(inputs=[]).read == "none"
    assert way(command="stencil", algorithm="sweeps", decomposition="rows").between == "rows, nonblocking"
    generated = [{**record()["inputs"][0], "format": "generated"}] * 2
    assert (
        way(inputs=generated).read == "none"
        and way(inputs=[generated[0], record()["inputs"][0]]).read != "none"
    )
    apart = way(io="collective:split_collective", hints={"romio_cb_read": "disable"})
    assert (apart.read, apart.write) == ("collective, not joined", "split_collective")
    assert way(io="collective", hints={"romio_cb_read": "enable"}).read == "collective"
    gathered = way(command="transpose", algorithm="gather", io="collective:positioned")
    assert gathered == DataWay("collective", "root", "gather, nonblocking")
    swapped, plain = (
        data_path("k", "t", DataWay("none", "none", "swap, x")),
        data_path("k", "t", DataWay("none", "none", "gather, x")),
    )
    assert [drawing.svg.count("<path") for drawing in (swapped, plain)] == [6, 0]


@pytest.mark.parametrize(
    ("grid", "ranks", "drawn"),
    [
        ([1, 1], 1, (1, 1)),
        ([2, 1], 2, (2, 1)),
        ([1, 3], 3, (1, 3)),
        ([4, 1], 4, (4, 1)),
        ([1, 1], 2, (2, 1)),
        ([4, 4], 16, (2, 2)),
        ([1, 8], 8, (1, 4)),
        ([6, 1], 6, (4, 1)),
        ([2, 2], 8, (2, 2)),
    ],
)
def test_as_many_ranks_are_drawn_as_there_were_up_to_four(
    grid: list[int], ranks: int, drawn: tuple[int, int]
) -> None:
    told = record()
    told["variant"].update(grid=grid, ranks=ranks)
    way = way_of(msgspec.convert(told, Record))
    assert way.grid == drawn and way.drawn == min(ranks, 4)
    for strategy in WORDS:
        svg = data_path("k", "t", DataWay(strategy, strategy, "x, y", drawn)).svg
        assert svg.count(">rank ") == way.drawn and f">rank {way.drawn - 1}<" in svg
    heads = re.findall(
        r'stroke-width="1\.4"', data_path("k", "t", DataWay("positioned", "none", grid=drawn)).svg
    )
    assert len(heads) == 2 * way.drawn


def test_a_roofline_bounds_what_is_under_it() -> None:
    records: list[Record] = []

    def work_of(told: dict[str, Any]) -> PointWork | None:
        records.append(msgspec.convert(told, Record))
        return roofline.work_of(records[-1])

    work = work_of(record())
    assert work is not None and work.rate == 3e9
    assert work.peak == 4e9  # of all four ranks together, as the record has it
    assert work.intensity == pytest.approx(2 * 64**3 / (3 * 64 * 64 * 8))
    swept = {"sweeps": 10, "copy_bytes_per_second": 3.2e9, "model_bytes": 10.0 * 2 * 64 * 64 * 8}
    sweep = work_of(record(command="stencil", result=swept, flops=5 * 64 * 64 * 10.0))
    assert sweep is not None and sweep.intensity == pytest.approx(5 / 16) and sweep.copy == 3.2e9
    blocked = {**swept, "model_bytes": 2.0 * 2 * 64 * 64 * 8}  # five sweeps in each of two passes
    deep = work_of(record(command="stencil", result=blocked, flops=5 * 64 * 64 * 10.0))
    assert deep is not None and deep.intensity == pytest.approx(5 * 5 / 16)
    swept |= {"copy_bytes_per_second": 64e9, "model_bytes": 10.0 * 2 * 8 * 8 * 8}  # that stays in a cache
    small = [matrix | {"shape": [8, 8]} for matrix in record()["outputs"]]
    cached = work_of(record(command="stencil", result=swept, flops=5 * 8 * 8 * 10.0, outputs=small))
    assert cached is not None and cached.copy == 64e9
    plot = roofline.roofline("k", records)
    assert plot is not None and "what was measured here for copying and for arithmetic." in plot.caption
    alone = roofline.roofline("k", [records[0]])
    assert alone is not None and "no job here measured memory" in alone.caption
    memory, peak = (line.get_xydata() for line in plot.figure.axes[0].get_lines()[-2:])
    assert memory[1] == pytest.approx([1.25, 4.0]) and memory[0][1] == pytest.approx(3.2 * memory[0][0])
    assert peak[0] == pytest.approx([1.25, 4.0]) and peak[1][1] == 4.0
    untold = record(command="stencil", result={**swept, "model_bytes": 0.0}, flops=5.0)
    assert work_of(untold) is None
    assert work_of(record(flops=0.0)) is None and roofline.roofline("k", []) is None


@needs_browser
def test_a_browser_opens_a_study_of_five_hundred_points(tmp_path: Path) -> None:
    """On a desk, on a phone and at night: no script error, every figure drawn, all text in its place."""
    folder = results(tmp_path / "s" / "d", sizes=42, launches=1)
    page = report_page(find([str(folder), kept(tmp_path / "r.json"), str(made_up(tmp_path / "t.json"))]))
    path = tmp_path / "o.html"
    path.write_text(html(page), encoding="utf-8")
    with browser() as seen:
        for width, dark in ((1200, False), (400, False), (1200, True)):
            assert seen.open(path, width, dark=dark) == []
            assert seen.run("document.querySelectorAll('figure').length") == sum(
                len(section.plots) + len(section.drawings) for section in page.sections
            )
            name = f"report-{width}{'-dark' * dark}"
            assert len(seen.picture(tmp_path / f"{name}.png")) > 20000
        said = seen.run(
            """(() => {
              const spot = document.querySelector(".spots rect"), tip = document.getElementById("tip");
              const at = { clientX: 50, clientY: 50, bubbles: true };
              spot.dispatchEvent(new PointerEvent("pointermove", at));
              return !tip.hidden && tip.textContent;
            })()"""
        )
        assert said and seen.run("document.documentElement.className") == "scripted" and not seen.errors


@needs_browser
def test_a_report_prints_whole(tmp_path: Path) -> None:
    """On paper the still timeline alone, folded tables open, and no table wider than the page."""
    folder = results(tmp_path / "s" / "d", sizes=3, launches=1)
    page = report_page(find([str(folder), str(made_up(tmp_path / "t.json"))]))
    path = tmp_path / "o.html"
    path.write_text(html(page), encoding="utf-8")
    with browser() as seen:
        assert seen.open(path) == []
        seen.run("addEventListener('afterprint', () => { document.body.dataset.printed = told(); })")
        seen.run(
            """window.told = () => JSON.stringify({
              canvas: getComputedStyle(document.querySelector("canvas")).display,
              still: getComputedStyle(document.querySelector(".still")).display,
            })"""
        )
        seen.run("addEventListener('beforeprint', () => { document.body.dataset.printing = told(); })")
        printed = seen.printed(tmp_path / "report.pdf")
        assert printed.startswith(b"%PDF-") and len(printed) > 20000
        now = [json.loads(seen.run(f"document.body.dataset.{when}")) for when in ("printing", "printed")]
        assert now == [{"canvas": "none", "still": "block"}, {"canvas": "block", "still": "none"}]
        assert seen.run("[...document.querySelectorAll('details')].every((one) => one.open)")
        assert seen.paper_overflow() == []


@needs_browser
@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("</main>", "<script>nothing.there()</script></main>", "Refused|violates|Content Security Policy"),
        ('"use strict";', '"use strict"; nothing.there();', "nothing is not defined"),
        ("</main>", '<figure id="empty"><svg class="plot"></svg></figure></main>', "empty is not drawn"),
        (
            "</main>",
            '<p style="white-space:nowrap">' + "word " * 400 + "</p></main>",
            "wider than its window",
        ),
        ("</text>", "word" * 90 + "</text>", "leaves figure-"),
    ],
)
def test_a_broken_page_is_noticed(tmp_path: Path, old: str, new: str, fault: str) -> None:
    """What the tests above would say of a page that is broken on purpose."""
    text = html(report_page(find([kept(tmp_path / "r.json"), str(made_up(tmp_path / "t.json"))])))
    assert old in text
    broken = text.replace(old, new, 1)
    if '"use strict"' in old:  # else the policy of the page would keep it from running
        broken = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", broken)
    (tmp_path / "b.html").write_text(broken, encoding="utf-8")
    with browser() as seen:
        assert any(re.search(fault, words) for words in seen.open(tmp_path / "b.html"))
