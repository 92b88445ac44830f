"""Timelines: read, drawn still and to move about in; small at 100,000 spans, escaped, well-formed."""

from __future__ import annotations

import gzip
import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pytest
from browser import browser, needs_browser
from tilewise.base.errors import UsageError
from tilewise.lab.report.page import ReportPage, Section
from tilewise.lab.report.render import html
from tilewise.lab.report.style import png
from tilewise.lab.report.timeline import KINDS, MPI, joined, merged, read_timeline
from tilewise.lab.report.timeline_page import (
    MOST_MESSAGES,
    largest,
    timeline_data,
    timeline_drawing,
    timeline_plot,
)
from timelines import made_up

EVIL = "<script>alert(1)</script>&\"'\x1b]--></script><!--"


def slices(*spans: tuple[float, float, str], pid: int = 0) -> list[dict[str, Any]]:
    return [
        {"ph": "X", "name": f"{cat} {at:g}", "cat": cat, "ts": at, "dur": end - at, "pid": pid}
        for at, end, cat in spans
    ]


def written(path: Path, events: list[dict[str, Any]], **about: Any) -> Path:
    path.write_text(json.dumps({"traceEvents": events, "otherData": about}))
    return path


def test_the_innermost_span_names_the_phase(tmp_path: Path) -> None:
    events = slices(
        (0, 90, "input"), (10, 40, "exchange"), (20, 30, "compute"), (95, 100, "output"), (0, 100, "job")
    )
    line = read_timeline(written(tmp_path / "t.json", events))
    spans = [
        (round(a * 1e6), round(b * 1e6), KINDS[kind]) for a, b, _, kind in line.ranks[0].phases().tolist()
    ]
    assert spans == [
        (0, 10, "input"),
        (10, 20, "exchange"),
        (20, 30, "compute"),
        (30, 40, "exchange"),
        (40, 90, "input"),
        (95, 100, "output"),
    ]
    assert line.seconds == pytest.approx(100e-6)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    path = made_up(tmp_path / "t.json", ranks=3, spans=30, messages=12)
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for name in (path, packed):
        line = read_timeline(name, "a run")
        assert (line.title, len(line.ranks), line.spans(), len(line.messages)) == ("a run", 3, 30, 12)
        assert [rank.name for rank in line.ranks] == ["rank 0", "rank 1", "rank 2"]
        assert sorted(line.messages["bytes"].tolist()) == [8 * number for number in range(12)]
        assert (line.messages["end"] >= line.messages["start"]).all()
        assert (line.messages["target"] == (line.messages["source"] + 1) % 3).all()


def test_calls_of_mpi_are_no_phase(tmp_path: Path) -> None:
    events = slices((0, 90, "input"), (10, 20, "mpi"), (19.999, 20, "message"), (30, 35, "collective"))
    rank = read_timeline(written(tmp_path / "t.json", events)).ranks[0]
    assert len(rank.phases()) == 1 and len(rank.calls()) == 2 and (rank.calls()["kind"] == MPI).all()


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b'{"traceEvents": 3}', b"\x1f\x8b broken", b"\xff\xfe"]
)
def test_what_is_no_timeline_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"t\.json: no timeline"):
        read_timeline(tmp_path / "t.json")
    with pytest.raises(UsageError, match=r"absent\.json: the timeline cannot be read"):
        read_timeline(tmp_path / "absent.json")


def test_merged_columns_show_what_there_is_most_of() -> None:
    chance = numpy.random.default_rng(3)
    edges = numpy.sort(chance.random(401)) * 10
    kind = chance.integers(0, 4, 400)
    spans = numpy.zeros(400, dtype=[("start", "f8"), ("end", "f8"), ("name", "i4"), ("kind", "i4")])
    spans["start"], spans["end"], spans["kind"] = edges[:-1], edges[1:], kind
    spans = spans[chance.random(400) < 0.8]  # with holes
    found = merged(spans, 10.0, 50)
    for column in range(50):  # the plain way
        low, high = column * 0.2, (column + 1) * 0.2
        taken = [
            sum(max(0.0, min(b, high) - max(a, low)) for a, b, _, mine in spans.tolist() if mine == which)
            for which in range(len(KINDS))
        ]
        taken.append(0.2 - sum(taken))
        middle = (low + high) / 2
        shown = [mine for a, b, _, mine in found.tolist() if a <= middle < b] or [len(KINDS)]
        assert taken[shown[0]] == pytest.approx(max(taken))
    assert (found["start"][1:] >= found["end"][:-1] - 1e-12).all()


def test_joined_intervals_cover_the_same_time(tmp_path: Path) -> None:
    events = slices((0, 10, "input"), (10, 20, "input"), (20, 30, "compute"), (31, 40, "compute"))
    phases = read_timeline(written(tmp_path / "t.json", events)).ranks[0].phases()
    spans = [(round(a * 1e6), round(b * 1e6)) for a, b, _, _ in joined(phases).tolist()]
    assert spans == [(0, 20), (20, 30), (31, 40)]


def test_of_many_messages_the_largest_stay(tmp_path: Path) -> None:
    line = read_timeline(made_up(tmp_path / "t.json", messages=3000))
    kept = largest(line.messages, MOST_MESSAGES)
    assert len(kept) == MOST_MESSAGES and kept["bytes"].min() == 8 * (3000 - MOST_MESSAGES)
    assert "3000 messages" in timeline_plot([line]).caption


def test_above_a_bound_the_page_has_merged_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewise.lab.report.timeline_page.MOST_SPANS", 2000)
    line = read_timeline(made_up(tmp_path / "t.json", ranks=2, spans=6000))
    data = timeline_data([line])
    columns, unit = 500, data["unit"]
    for rank, (_, flat) in zip(line.ranks, data["runs"][0]["ranks"], strict=True):
        table = numpy.array(flat).reshape(-1, 4)
        assert 0 < len(table) <= columns
        covered, shown = rank.phases(), table[:, 1].sum() * unit
        assert shown == pytest.approx((covered["end"] - covered["start"]).sum(), rel=0.1)  # no holes
    assert "Of 6000 spans those under" in timeline_drawing([line]).caption


def test_the_data_say_the_same_as_the_trace(tmp_path: Path) -> None:
    line = read_timeline(made_up(tmp_path / "t.json", ranks=3, spans=60, messages=20))
    data = timeline_data([line, line])
    unit = data["unit"]
    for run in data["runs"]:
        for rank, (label, flat) in zip(line.ranks, run["ranks"], strict=True):
            table = numpy.array(flat).reshape(-1, 4)
            starts = numpy.cumsum(table[:, 0]) * unit
            assert label == rank.name
            assert numpy.allclose(starts, rank.spans["start"], atol=unit)
            assert numpy.allclose(starts + table[:, 1] * unit, rank.spans["end"], atol=2 * unit)
            assert [run["names"][name] for name in table[:, 2]] == [line.names[n] for n in rank.spans["name"]]
        table = numpy.array(run["lines"]).reshape(-1, 6)
        assert table[:, 4].tolist() == line.messages["bytes"].tolist()
        assert numpy.allclose(numpy.cumsum(table[:, 2]) * unit, line.messages["start"], atol=unit)


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]


def page(drawing: Any) -> str:
    return html(ReportPage("t", "", [Section("t", "t", drawings=[drawing])]))


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    line = read_timeline(made_up(tmp_path / "t.json", name=EVIL), EVIL)
    line.ranks[0].name = EVIL
    drawing = timeline_drawing([line], EVIL)
    parsed = _Page(page(drawing))
    assert parsed.tags.count("script") == 3  # the page's, the timeline's, and its data
    assert all(link.startswith("#") for link in parsed.links)
    assert "<script>alert" not in drawing.svg and "\x1b" not in drawing.svg
    ElementTree.fromstring(drawing.alone.encode())
    data = re.search(r'class="timeline-data">(.*?)</script>', page(drawing), re.DOTALL)
    assert data is not None and "<script>alert(1)" in json.loads(data.group(1))["runs"][0]["title"]


def test_pictures_are_well_formed(tmp_path: Path) -> None:
    path = made_up(tmp_path / "t.json", messages=30)
    drawing = timeline_drawing([read_timeline(path, "above"), read_timeline(path, "below")])
    for text in (drawing.alone, drawing.svg):
        root = ElementTree.fromstring(text.encode())
        words = " ".join(root.itertext())
        assert all(word in words for word in ("above", "below", "rank 3", "time", "exchange", "message"))
    assert "var(--series-0)" in drawing.svg
    assert png(timeline_plot([read_timeline(path)]))[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_trace_without_spans_is_drawn(tmp_path: Path) -> None:
    empty = written(tmp_path / "t.json", [])
    assert "<svg" in timeline_drawing([read_timeline(empty)]).svg


def test_a_hundred_thousand_spans_stay_usable(tmp_path: Path) -> None:
    path = made_up(tmp_path / "t.json", ranks=64, spans=100_000, messages=50_000)
    begin = time.process_time()
    drawing = timeline_drawing([read_timeline(path)])
    text = page(drawing)
    assert time.process_time() - begin < 5
    assert len(text.encode()) < 3e6
    assert "Not in this page: the 30000 smallest messages." in text
    ElementTree.fromstring(drawing.alone.encode())
    assert len(drawing.alone) < 1.5e6


@needs_browser
def test_a_browser_draws_it(tmp_path: Path) -> None:
    path = made_up(tmp_path / "t.json", ranks=8, spans=4000, messages=800, name=EVIL)
    text = page(timeline_drawing([read_timeline(path)] * 2))
    (tmp_path / "p.html").write_text(text, encoding="utf-8")
    with browser() as seen:
        for width in (1200, 400):
            assert seen.open(tmp_path / "p.html", width) == []
            assert seen.run("document.querySelector('canvas').clientWidth") > 300
            assert seen.run("getComputedStyle(document.querySelector('.still')).display") == "none"
