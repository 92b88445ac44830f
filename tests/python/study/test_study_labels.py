"""Labels of disturbance go from the record of a launch to its point, its cells, and the band above a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from studies import HERE, Runner, run
from tilewise.engine.child import Ended
from tilewise.lab.report.study_page import study_page
from tilewise.lab.report.study_tables import figures
from tilewise.lab.study import evaluation
from tilewise.lab.study.results import ABOVE, SINGLE, WIDE, MeasuredPoint, band, labels_of, of_ratio, words_of
from tilewise.lab.study.store import Entry

TEXT = """command = "multiply"
axes.ranks = [1, 2, 4]
launches = {launches}
[[tables]]
name = "speedup"
rows = "ranks"
base = {{ ranks = 1 }}
"""


def point(*records: dict[str, Any]) -> MeasuredPoint:
    """A point with a launch for each record."""
    entries = [
        Entry(hash="h", point="p", run="main", axes={}, status="done", launch=launch, record=record)
        for launch, record in enumerate(records)
    ]
    return MeasuredPoint(key="p", run="main", axes={}, entries=entries)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"labels": ["busy", "stolen"]}, ["busy", "stolen"]),
        ({"environment": {"oversubscribed": True}}, ["oversubscribed"]),
        ({"labels": ["oversubscribed"], "environment": {"oversubscribed": True}}, ["oversubscribed"]),
        ({"labels": "busy", "environment": 3, "disturbances": [4]}, []),
        (
            {
                "lines": [],
                "disturbances": [
                    {"labels": ["other programs busy (0.5 cores)"], "oversubscribed": False},
                    {"labels": ["core stolen by the hypervisor (7 %)"], "oversubscribed": True},
                ],
            },
            ["busy", "oversubscribed", "stolen"],
        ),
        ({}, []),
    ],
)
def test_a_launch_has_the_words_of_its_record(record: dict[str, Any], said: list[str]) -> None:
    assert words_of(point(record).entries[0]) == said


def test_a_point_says_how_many_launches_and_when_there_is_one() -> None:
    busy, quiet = {"labels": ["busy"]}, {"labels": []}
    assert labels_of(point(busy, quiet, busy)) == ["busy in 2 of 3 launches"]
    assert labels_of(point(busy, busy)) == ["busy"]
    assert labels_of(point(quiet)) == [SINGLE] and labels_of(point()) == []
    assert labels_of(point({"lines": [], "launches": 3})) == []  # a measurement has launches of its own
    assert band([point(busy, quiet), point(quiet), point()]) == f"of 2 points: busy 1, {SINGLE} 1"
    assert band([point(quiet, quiet)]) == ""


def test_ratios_that_cannot_be_and_that_say_nothing() -> None:
    assert of_ratio(3.6, (3.5, 3.7), 2, True) == [ABOVE] and of_ratio(3.6, (3.5, 3.7), 2, False) == []
    assert of_ratio(1.9, (0.2, 5.0), 2, True) == [WIDE] and of_ratio(1.9, None, None, True) == []


class Busy(Runner):
    """Pretended launches of a product; those on two ranks are disturbed, the one on four too fast."""

    def __call__(self, words: list[str], folder: str, timeout: float | None) -> Ended:
        ended = super().__call__(words, folder, timeout)
        found = json.loads(ended.output)
        ranks = words[words.index("--ranks") + 1]
        found |= {"labels": ["busy"] if ranks == "2" else [], "environment": {"cores": HERE.cores}}
        return Ended(0, json.dumps(found).encode(), "", 1.0)


def test_labels_stand_beside_figures_and_above_the_page(tmp_path: Path) -> None:
    run(tmp_path, TEXT.format(launches=3), Busy())
    found = evaluation.load(str(tmp_path))
    (table,) = figures([found], 0)
    marks = {row[0].text: row[-1].mark for row in table.rows}
    assert marks["1"] == "" and marks["2"] and marks["4"] and marks["2"] != marks["4"]
    assert f"{marks['2']} busy" in table.notes and f"{marks['4']} {ABOVE}" in table.notes
    page = study_page([found])
    assert "of 3 points: busy 1" in page.warnings
    (points,) = [each for section in page.sections for each in section.tables if each.key == "points"]
    assert [row[-1].text for row in points.rows] == ["", "busy", ""]


def test_what_all_figures_share_is_said_once(tmp_path: Path) -> None:
    """Below a table what its figures share, and at the top of a page what all of its points share."""
    runs = 'runs = ["one"]\n[[runs]]\nname = "one"\n[[runs]]\nname = "two"\nlaunches = 2\n'
    for name, more, noted in (("part", runs, True), ("whole", "", False)):
        run(tmp_path / name, TEXT.format(launches=1) + more, Runner())
        loaded = evaluation.load(str(tmp_path / name))
        (table,) = figures([loaded], 0)
        assert (f"all figures: {SINGLE}" in table.notes) is noted
        assert not any(row[-1].mark for row in table.rows)
        assert f"{SINGLE} 3" in band(loaded.results.points)
