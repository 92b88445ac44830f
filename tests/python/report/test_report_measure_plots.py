"""The figures of a measurement: one for each thing to see, well-formed, the same each time."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy
import pytest
from measurements import files, hostile, line, node, ping, whole, wrap
from PIL import Image
from tilewise.lab.measurement.fit import fit
from tilewise.lab.measurement.result import Line, PairMatrix
from tilewise.lab.report.bars import Bar, bars, field
from tilewise.lab.report.curves import MOST, Axis, Curve, Guide, curves
from tilewise.lab.report.measure_page import plots_of
from tilewise.lab.report.measure_plots import matrix_plots, message_plots, model_plots
from tilewise.lab.report.render import write_figures
from tilewise.lab.report.style import GRID, INK, ORDERED, PAPER, SERIES, Plot, inline, svg

SVG = "{http://www.w3.org/2000/svg}"


def words(plot: Plot) -> str:
    """All text of a figure, as the SVG has it."""
    return " ".join(part.text or "" for part in ElementTree.fromstring(svg(plot)).iter(f"{SVG}text"))


def curve_points(plot: Plot) -> list[numpy.ndarray]:
    return [
        numpy.asarray(one.get_xydata())
        for one in plot.figure.axes[0].get_lines()
        if one.get_label()[0] != "_"
    ]


def test_every_part_has_its_figures() -> None:
    keys = [plot.key for plot in plots_of(whole())]
    wanted = ["latency-core-1", "bandwidth-core-1", "pairs-8-map", "pairs-1048576-map", "strategies-1-bars"]
    wanted += ["memory-copy", "memory-curve", "compute-curve", "model-ping-core-blocking"]
    wanted += [
        "files-1-write-new",
        "files-1-write",
        "files-1-read",
    ]
    assert sorted(keys) == sorted(wanted)
    assert len(set(keys)) == len(keys)


def test_latency_goes_through_half_the_medians() -> None:
    lines = ping()
    latency, bandwidth = message_plots(wrap(lines))
    (points,) = curve_points(latency)
    medians = [float(numpy.median(numpy.concatenate([*map(numpy.asarray, one.launches)]))) for one in lines]
    assert points[:, 0] == pytest.approx([one.bytes for one in lines])
    assert points[:, 1] == pytest.approx(numpy.array(medians) / 2)
    (rates,) = curve_points(bandwidth)
    assert rates[:, 1] == pytest.approx(
        [2 * one.bytes / time for one, time in zip(lines, medians, strict=True)]
    )
    assert "memory copy, 11.6 GB/s" in words(bandwidth)
    assert latency.figure.axes[0].get_xscale() == latency.figure.axes[0].get_yscale() == "log"


def test_several_levels_share_a_diagram() -> None:
    lines = ping("core") + ping("node") + ping("socket")
    first = next(iter(message_plots(wrap(lines))))
    assert first.key == "latency-levels-1"
    assert [one.get_label() for one in first.figure.axes[0].get_lines()] == ["core", "socket", "node"]


def test_files_have_a_line_for_each_block() -> None:
    lines = files()
    plot = next(plot for plot in plots_of(wrap(lines)) if plot.key == "files-1-read")
    small, middle, large = curve_points(plot)
    assert small[:, 0].tolist() == middle[:, 0].tolist() == [1, 2, 4] and large[:, 0].tolist() == [1, 2]
    one = next(one for one in lines if (one.series, one.ranks, one.bytes) == ("read", 2, 1000000))
    assert one.summary is not None
    assert middle[1, 1] == pytest.approx(128e6 / one.summary.median / 1e9)


def test_one_rank_count_is_drawn_over_blocks() -> None:
    plots = list(plots_of(wrap(files(ranks=(2,)))))
    assert plots[0].figure.axes[0].get_xlabel() == "block size"


def test_memory_marks_the_caches() -> None:
    (plot,) = [plot for plot in plots_of(wrap(node())) if plot.key == "memory-copy"]
    assert "L1 32 KiB" in words(plot) and "L2 1 MiB" in words(plot)


def test_model_is_drawn_over_its_points() -> None:
    measurement = wrap(ping())
    measurement.model = fit(measurement.lines)
    (plot,) = model_plots(measurement)
    fitted, points = curve_points(plot)
    assert len(points) == 23
    near = numpy.interp(points[:, 0], fitted[:, 0], fitted[:, 1])
    assert numpy.abs(near / points[:, 1] - 1).max() < 0.25
    assert "median" in plot.caption


def test_pairs_are_written_in_their_cells() -> None:
    ranks = ["a", "b"]
    (plot,) = matrix_plots(
        wrap([], matrices=[PairMatrix(bytes=8, ranks=ranks, seconds=[[0, 4e-7], [7e-7, 0]])])
    )
    assert "0.400" in words(plot) and "0.700" in words(plot)
    assert [spot.text for spot in plot.spots] == ["from a, to b; 0.400 µs", "from b, to a; 0.700 µs"]


def test_a_large_map_has_spots_but_no_numbers() -> None:
    values = numpy.random.default_rng(2).uniform(1, 2, (40, 40))
    names = [f"rank {rank}" for rank in range(40)]
    plot = field("m", "m", "", ("to", names), ("from", names), values.tolist(), "µs")
    assert len(plot.spots) == 1600 and f"{values[0, 1]:.2f}" not in words(plot)


def test_axes_have_units_and_titles_say_what() -> None:
    for plot in plots_of(whole(("core", "node"), (1, 3))):
        axes = plot.figure.axes[0]
        assert axes.get_title(loc="left").replace("\n", " ") == plot.title and plot.caption
        assert axes.get_xlabel() and (axes.get_ylabel() or "bars" in plot.key)


def test_folder_gets_both_sorts(tmp_path: Path) -> None:
    written = write_figures(plots_of(wrap(ping())), tmp_path / "new" / "plots")
    assert [path.name for path in written] == [
        f"{what}-core-1{ending}" for what in ("latency", "bandwidth") for ending in (".svg", ".png")
    ]
    for path in written:
        if path.suffix == ".png":
            with Image.open(path) as picture:
                assert min(picture.size) > 500
        else:
            tree = ElementTree.parse(path)
            assert len(list(tree.iter(f"{SVG}text"))) > 10  # text as text


def test_the_same_measurement_gives_the_same_bytes() -> None:
    measurement = whole()
    first, second = ([svg(plot) for plot in plots_of(measurement)] for _ in range(2))
    assert first == second
    assert not any("<dc:date>" in one for one in first)


def test_hostile_words_are_drawn(tmp_path: Path) -> None:
    written = write_figures(plots_of(hostile()), tmp_path)
    assert len(set(written)) == len(written) >= 14
    for path in written:
        assert path.parent == tmp_path
        if path.suffix == ".svg":
            text = path.read_text(encoding="utf-8")
            assert "<script" not in text
            ElementTree.fromstring(text)


def test_two_figures_never_share_a_file(tmp_path: Path) -> None:
    matrix = PairMatrix(bytes=8, ranks=["a", "b"], seconds=[[0, 1e-6], [1e-6, 0]])
    twice = plots_of(wrap([], matrices=[matrix, matrix]))
    assert len({path.name for path in write_figures(twice, tmp_path)}) == 4


def test_nothing_to_draw() -> None:
    skipped = Line(key="k", kind="ping", name="blocking", skipped="no")
    assert list(plots_of(wrap([skipped]))) == []
    nan = float("nan")
    plot = curves(
        "k", "t", "", [Curve("c", [(1, nan, nan, nan, ""), (0, 1, 1, 1, "")])], Axis("x"), Axis("y")
    )
    assert "no value can be drawn on these axes" in words(plot)
    assert "nothing was measured" in words(curves("k", "t", "", [], Axis("x"), Axis("y")))
    assert "t" in words(bars("k", "t", "", [], "s"))
    assert "t" in words(field("k", "t", "", ("to", []), ("from", []), [], "s"))


def test_one_sample_draws_a_point() -> None:
    one = line(1e-6, kind="ping", level="core", name="blocking", pattern="roundtrip", pairs=1, bytes=8)
    latency, _ = message_plots(wrap([one]))
    assert len(latency.spots) == 1


def test_no_more_curves_than_an_eye_holds_apart() -> None:
    series = [Curve(f"c{place}", [(1, 1, 1, 1, ""), (2, 2, 2, 2, "")]) for place in range(MOST + 3)]
    plot = curves("k", "t", "c.", series, Axis("x"), Axis("y"))
    assert len(curve_points(plot)) == MOST and "3 more curves" in plot.caption


def test_curves_beside_others_have_their_colours_and_do_not_count() -> None:
    points = [(1.0, 1.0, 1.0, 1.0, ""), (2.0, 2.0, 2.0, 2.0, "")]
    ours = [Curve(f"c{place}", points) for place in range(MOST)]
    theirs = [Curve(f"source {place}", points, dash=1, like=f"c{place}") for place in range(MOST)]
    plot = curves("k", "t", "c.", [*ours, *theirs], Axis("x"), Axis("y"))
    drawn = plot.figure.axes[0].lines
    assert len(drawn) == 2 * MOST and plot.caption == "c."
    colours = [one.get_color() for one in drawn]
    assert colours[:MOST] == colours[MOST:] and len(set(colours)) == MOST
    (legend,) = plot.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"c{place}" for place in range(MOST)]
    alone = curves("k", "t", "c.", [Curve("source", points, like="what is not there")], Axis("x"), Axis("y"))
    assert len(alone.figure.axes[0].lines) == 1


def test_bars_reach_their_values() -> None:
    rows = [Bar("a", {"read": (2.0, 1.9, 2.2, "r")}), Bar("b", {"write": (1.0, 1.0, 1.0, "w")})]
    plot = bars("k", "t", "", rows, "GB/s")
    assert [patch.get_width() for patch in plot.figure.axes[0].patches] == [2.0, 1.0]


@pytest.mark.parametrize("log", [False, True])
def test_bars_set_their_axis_and_whiskers_are_cut(log: bool) -> None:
    """An interval whose low end is near 0 s has a high end of thousands of GB/s."""
    rows = [Bar("a", {"read": (2.0, 0.1, 22000.0, "r")}), Bar("b", {"read": (1.0, 0.9, 1.1, "w")})]
    axes = bars("k", "t", "", rows, "GB/s", log=log).figure.axes[0]
    assert axes.get_xlim()[1] < 10
    assert [one.get_marker() for one in axes.get_lines()] == [">"]


def test_an_interval_that_is_cut_has_an_arrow() -> None:
    series = [Curve("c", [(1.0, 5.0, 4.0, 900.0, ""), (2.0, 6.0, 5.0, 7.0, "")])]
    axes = curves("k", "t", "c", series, Axis("x"), Axis("y", log=False)).figure.axes[0]
    (arrow,) = [one for one in axes.get_lines() if one.get_marker() == "^"]
    assert arrow.get_xydata().tolist() == [[1.0, axes.get_ylim()[1]]]


def test_inline_belongs_to_the_page() -> None:
    plot = curves(
        "k", "t", "c", [Curve("c", [(1, 1, 1, 1, "one <b>"), (2, 2, 2, 2, "two")])], Axis("x"), Axis("y")
    )
    text = inline(plot)
    tree = ElementTree.fromstring(text)
    assert "http" not in text and "<style" not in text and tree.get("aria-label") == "t"
    assert "var(--series-0)" in text and SERIES[0][0] not in text and INK[0] not in text
    titles = [one.text for one in tree.iter("title")]
    assert titles == ["one <b>", "two"]


def test_spots_lie_on_their_points() -> None:
    points = [(1.0, 1.0, 1.0, 1.0, "a"), (100.0, 10.0, 10.0, 10.0, "b"), (10000.0, 100.0, 100.0, 100.0, "c")]
    plot = curves("k", "t", "c", [Curve("c", points)], Axis("x"), Axis("y"))
    tree = ElementTree.fromstring(inline(plot))
    circles = [(float(one.get("cx", 0)), float(one.get("cy", 0))) for one in tree.iter("circle")]
    drawn = [
        (float(one.get("x", 0)), float(one.get("y", 0)))
        for one in tree.iter("use")
        if "clip" not in str(one.attrib)
    ]
    for circle in circles:
        assert min(abs(circle[0] - x) + abs(circle[1] - y) for x, y in drawn) < 0.3


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("side", [0, 1])
def test_colours_stand_out_on_their_paper(side: int) -> None:
    """At least 3 : 1 for lines that tell series apart (WCAG 1.4.11), 7 : 1 for words."""

    def contrast(pair: tuple[str, str]) -> float:
        high, low = sorted((luminance(pair[side]), luminance(PAPER[side])), reverse=True)
        return (high + 0.05) / (low + 0.05)

    assert all(contrast(pair) >= 3 for pair in SERIES)
    assert all(contrast(pair) >= 2 for pair in ORDERED)
    assert contrast(INK) >= 7
    light = [pair[0] for pair in (*SERIES, *ORDERED, INK, GRID, PAPER)]
    assert len(set(light)) == len(light)


def test_figures_leave_matplotlib_as_it_was() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    list(plots_of(wrap(ping(sizes=3))))
    assert dict(matplotlib.rcParams) == before


def test_pyplot_stays_out() -> None:
    """Its state is the user's: figures are made without it."""
    code = (
        "import sys; from measurements import ping, wrap;"
        "from tilewise.lab.report.measure_page import plots_of;"
        "list(plots_of(wrap(ping(sizes=3)))); sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    folder = Path(__file__).parents[1]  # where `measurements` is
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60, cwd=folder).returncode == 0


def test_a_wide_interval_does_not_press_the_curve_flat() -> None:
    wide = [(1.0, 5.0, 0.1, 60.0, ""), (2.0, 6.0, 0.1, 90.0, "")]
    for log in (False, True):
        plot = curves("k", "t", "c", [Curve("c", wide)], Axis("x"), Axis("y", log=log))
        low, high = plot.figure.axes[0].get_ylim()
        assert high < 30 and (low == 0 if not log else low > 1)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("y", "seen"), [(0.02, False), (0.5, True), (1.0, True), (4.5, True), (9.0, False)])
@pytest.mark.filterwarnings("error")
def test_a_guide_lies_within_the_axes_or_is_left_out(log: bool, y: float, seen: bool) -> None:
    """Words beyond them leave the axes no room, as with a limit of which a busy machine reached a quarter."""
    points = [(8.0, 1e9, 0.9e9, 1.1e9, ""), (65536.0, 1e9, 0.9e9, 1.1e9, "")]
    axis = Axis("rate", "B/s", log=log)
    plot = curves(
        "k", "t", "c", [Curve("a", points)], Axis("s", "bytes"), axis, [Guide("the limit", y=y * 1e9)]
    )
    low, high = plot.figure.axes[0].get_ylim()
    if "the limit" in words(plot):
        assert low < y * 1e9 < high
    assert ("the limit" in words(plot)) == (seen or (not log and y < 1))


@pytest.mark.parametrize("place", [{"y": 5e8}, {"x": 64.0}, {"x": 65536.0}])
def test_a_guide_with_a_long_name_leaves_the_axes_their_room(place: dict[str, float]) -> None:
    """As one that tells by what it was disturbed; the warning of a layout that fails is an error here."""
    points = [(8.0, 1e9, 0.9e9, 1.1e9, ""), (65536.0, 1e9, 0.9e9, 1.1e9, "")]
    guide = Guide("memory copy by 1 thread, 65536 B: 124 GB/s, " + "disturbed by others, " * 8, **place)
    plot = curves("k", "t", "c", [Curve("a", points)], Axis("s", "bytes"), Axis("rate", "B/s"), [guide])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "…" in svg(plot)
    box = plot.figure.axes[0].get_position()
    assert box.width > 0.7 and box.height > 0.5
