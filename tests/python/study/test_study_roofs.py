"""Figures whose points stand at a computed place, under roofs measured in the same study; limits on hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies import Runner, checked, points, run
from tilewise.base.errors import UsageError
from tilewise.lab.report.study_plots import declared
from tilewise.lab.study import evaluation
from tilewise.lab.study.plots import FigurePlot

AXES = 'command = "multiply"\naxes.ranks = [1, 2, 4]\naxes.io = ["sieve"]\n'
TABLE = "[[tables]]\nname = 't'\nrows = 'ranks'\n"
PLOT = """[[plots]]
name = 'p'
title = 'P'
kind = 'scatter'
x = 'ranks'
series = 'io'
value = '12 / seconds.total.max'
across = '1 / (2 * ranks)'
"""
ROOFS = """roofs = [
    { label = 'memory', slope = "max(cells('t'))" },
    { label = 'cache', slope = "2 * max(cells('t'))" },
    { label = 'peak', height = "most" },
]
[names]
most = "max(cells('t')) / 2"
"""


def loaded(folder: Path, text: str) -> FigurePlot:
    """The plot of a pretended study: 12 s over its ranks."""
    run(folder, AXES + text, Runner())
    (plot,) = evaluation.load(str(folder)).plots
    return plot


def test_points_stand_where_the_expression_says(tmp_path: Path) -> None:
    plot = loaded(tmp_path, TABLE + PLOT + ROOFS)
    (series,) = plot.series
    assert series.x == [0.5, 0.25, 0.125] and series.names == [1, 2, 4]
    assert series.y == pytest.approx([1, 2, 4])
    assert [(roof.label, roof.slope, roof.height) for roof in plot.roofs] == [
        ("memory", 12.0, None),
        ("cache", 24.0, None),
        ("peak", None, 6.0),
    ]


def test_a_roofline_is_drawn_with_names_and_roofs(tmp_path: Path) -> None:
    loaded(tmp_path, TABLE + PLOT + ROOFS)
    (plot,) = declared([evaluation.load(str(tmp_path))], 0)
    (axes,) = plot.figure.axes
    words = [text.get_text().strip() for text in axes.texts]
    assert {"1", "2", "4"} <= set(words)
    assert {"memory: 12.0 GB/s", "cache: 24.0 GB/s", "peak: 6.00 GFLOP/s"} <= set(words)
    memory, cache, peak = (line.get_xydata() for line in axes.get_lines()[1:])
    assert memory[1] == pytest.approx([0.5, 6.0]) and cache[1] == pytest.approx([0.25, 6.0])
    assert peak[0] == pytest.approx([0.25, 6.0]) and memory[0][1] == pytest.approx(12 * memory[0][0])
    assert [text.get_text() for text in plot.figure.legends[0].get_texts()] == ["sieve"]


def test_a_point_without_a_place_is_left_out_and_a_roof_without_a_figure_is_told(tmp_path: Path) -> None:
    text = PLOT.replace("1 / (2 * ranks)", "1 / (ranks - 2)")
    missing = "roofs = [{ label = 'memory', slope = \"cell('t', 9)\" }]\n"
    plot = loaded(tmp_path, TABLE + text + missing)
    assert plot.series[0].names == [1, 4] and plot.roofs == []
    assert "no roof memory: table t has no row 9" in plot.notes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PLOT.replace("'scatter'", "'line'"), "across is for points of kind 'scatter'"),
        (PLOT + "base = { ranks = 1 }\n", "across is for points of kind 'scatter'"),
        (PLOT.replace("1 / (2 * ranks)", "1 +"), "plots p, across"),
        (PLOT + "roofs = [{ label = 'r' }]\n", "the roof 'r' needs either a slope or a height"),
        (PLOT + "roofs = [{ label = 'r', slope = \"cells('u')\" }]\n", "there is no table 'u'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        checked(AXES + TABLE + text)


def test_points_for_several_hosts_are_out_of_reach_on_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = AXES + "limits = ['hosts >= ranks']\n"
    assert [point.reason for point in points(text)][1:] == [
        "needs 2 hosts; there is 1 here",
        "needs 4 hosts; there is 1 here",
    ]
    assert [bool(point.reason) for point in points(text, hosts=2)] == [False, False, True]
    monkeypatch.chdir(tmp_path)
    named = text + "launcher.hosts = 'hosts.txt'\n"
    with pytest.raises(UsageError, match=r"hosts\.txt cannot be read"):
        points(named)
    Path("hosts.txt").write_text("a:2\nb:2\nc\nd\n")
    assert not any(point.reason for point in points(named))
