"""Figures of a study whose values and names are awkward: below zero, over decades, of many letters, many."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest
from studies import Runner, run
from tilewise.base.errors import clean
from tilewise.engine.child import Ended
from tilewise.lab.report.load_results import find, report_page
from tilewise.lab.report.study_plots import declared, phases
from tilewise.lab.report.style import Plot, house, ordered, svg
from tilewise.lab.study import evaluation

AXES = 'command = "multiply"\naxes.ranks = [1, 2, 4]\naxes.io = ["root", "sieve"]\n'
PLOT = "[[plots]]\nname = 'p'\ntitle = 'P'\nx = 'ranks'\nseries = 'io'\n"
LONG = "a name of\\n200 letters " + "l" * 178


def drawn(tmp_path: Path, text: str, axes: str = AXES) -> Plot:
    run(tmp_path, axes + text, Runner())
    (plot,) = declared([evaluation.load(str(tmp_path))], 0)
    return plot


class Phased(Runner):
    """Answers with seconds of a phase, too."""

    def __call__(self, words: list[str], folder: str, timeout: float | None) -> Ended:
        ended = super().__call__(words, folder, timeout)
        told = json.loads(ended.output)
        told["seconds"]["input"]["mean"] = told["seconds"]["input"]["max"]
        return Ended(0, json.dumps(told).encode(), "", 1.0)


def words(plot: Plot) -> list[str]:
    """Every text of the figure as SVG has it."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg(plot))


@pytest.mark.parametrize("kind", ["line", "scatter", "bar"])
def test_values_below_zero_are_in_sight(kind: str, tmp_path: Path) -> None:
    plot = drawn(tmp_path, PLOT + f"kind = '{kind}'\nvalue = '3 - ranks'\n")
    (axes,) = plot.figure.axes
    low, high = axes.get_xlim() if kind == "bar" else axes.get_ylim()
    assert low < -1 and high > 2 and "logarithmic" not in plot.caption


def test_values_below_zero_alone_are_in_sight(tmp_path: Path) -> None:
    (axes,) = drawn(tmp_path, PLOT + "value = '-ranks'\n").figure.axes
    assert axes.get_ylim()[0] < -4 and axes.get_ylim()[1] == 0


@pytest.mark.parametrize("kind", ["line", "bar", "heat"])
def test_what_has_no_place_on_a_logarithmic_axis_is_counted(kind: str, tmp_path: Path) -> None:
    plot = drawn(tmp_path, PLOT + f"kind = '{kind}'\nlog = 'y'\nvalue = 'ranks - 2'\n")
    assert "4 points at or below zero: not drawn on a logarithmic axis" in plot.caption
    assert len(plot.spots) == 2


def test_a_figure_without_a_value_in_its_place_says_so(tmp_path: Path) -> None:
    assert "no value can be drawn on these axes" in words(
        drawn(tmp_path, PLOT + "log = 'y'\nvalue = '0 * ranks'\n")
    )


def test_bars_over_decades_have_a_logarithmic_axis(tmp_path: Path) -> None:
    plot = drawn(tmp_path, PLOT + "kind = 'bar'\nlog = 'y'\nvalue = '1000 ** ranks'\n")
    (axes,) = plot.figure.axes
    assert axes.get_xscale() == "log"
    assert all(0 < spot.x < 1000 and spot.x + spot.width >= 1000 for spot in plot.spots)


def test_a_heat_map_over_decades_is_legible(tmp_path: Path) -> None:
    plot = drawn(tmp_path, PLOT + "kind = 'heat'\nlog = 'y'\nvalue = '1000 ** ranks / 7'\n")
    said = words(plot)
    assert not any("mathdefault" in word for word in said)
    assert {"1000", "143", "142857"} < set(said), said


def test_cells_of_a_heat_map_do_not_run_into_each_other(tmp_path: Path) -> None:
    many = AXES.replace("[1, 2, 4]", str(list(range(1, 13))))
    plot = drawn(tmp_path, PLOT + "kind = 'heat'\nvalue = '1.0123456 / (ranks + 20)'\n", many)
    assert not plot.figure.axes[0].texts
    assert plot.spots and "0.0316" in plot.spots[-1].text


@pytest.mark.parametrize("kind", ["line", "bar", "heat"])
def test_a_name_of_many_letters_leaves_room_for_the_figure(kind: str, tmp_path: Path) -> None:
    axes = AXES.replace('["root", "sieve"]', f'["{LONG}", "sieve"]')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot = drawn(tmp_path, PLOT + f"kind = '{kind}'\n", axes)
        said = words(plot)
    with house():
        plot.figure.canvas.draw()
    assert plot.figure.axes[0].get_position().height > 0.3
    assert all(len(word) <= 64 for word in said) and any("…l" in word for word in said)
    assert any("l" * 178 in spot.text for spot in plot.spots)


def test_names_that_differ_at_their_end_stay_apart(tmp_path: Path) -> None:
    axes = AXES.replace("axes.io", "axes.very_long_name_of_an_axis").replace('["root", "sieve"]', "[4, 40]")
    axes += "flags.io = 'root'\nzip = [['very_long_name_of_an_axis', 'threads']]\naxes.threads = [1, 2]\n"
    run(tmp_path, axes + "words = ['random:{very_long_name_of_an_axis}x4:float64']\n", Phased())
    (plot,) = phases([evaluation.load(str(tmp_path))])
    names = [tick.get_text() for tick in plot.figure.axes[0].get_yticklabels()]
    assert len(names) == len(set(names)) == 6 and not any("…" in name for name in names)
    assert all(len(line) <= 34 for name in names for line in name.split("\n"))


def test_more_bars_than_colours_are_in_the_table_only(tmp_path: Path) -> None:
    many = AXES.replace("[1, 2, 4]", str(list(range(1, 21))))
    plot = drawn(tmp_path, "[[plots]]\nname = 'p'\nx = 'io'\nseries = 'ranks'\n", many + "constraints = []\n")
    assert "Of each group, 12 bars more are in the table only." in plot.caption
    assert len(plot.spots) == 16
    turned = drawn(tmp_path / "t", PLOT + "kind = 'bar'\n", many)
    assert "more are in the table only" not in turned.caption and len(turned.spots) == 40


def test_letters_that_are_joined_stay_so() -> None:
    farsi, family = "می\u200cخواهم", "👩\u200d👧"
    assert clean(farsi) == farsi and clean(family) == family
    assert clean("a\x1b[2J\u202eb") == "a\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}b"


def test_a_ratio_has_no_unit_of_time(tmp_path: Path) -> None:
    text = PLOT + "unit = 's'\nbase = {ranks = 1}\n"
    plot = drawn(tmp_path, text)
    assert "ratio" in words(plot) and not any(word.endswith(" s") for word in words(plot))
    assert all("seconds" not in word for word in words(plot))
    assert report_page(find([str(tmp_path)]))


def test_a_value_has_one_colour_on_the_whole_page_and_the_source_s_curve_that_of_ours(tmp_path: Path) -> None:
    axes = AXES.replace('["root", "sieve"]', '["root", "sieve", "positioned"]')
    references = "references = [{label = 'sieve, Haswell', source = 'r', x = [1, 2], y = [3, 4]}]\n"
    text = PLOT + references + PLOT.replace("'p'", "'q'") + "where = \"io != 'root'\"\n"
    run(tmp_path, axes + text, Runner())
    found = [evaluation.load(str(tmp_path))]
    first, second = (next(iter(declared(found, place))).figure.axes[0].get_lines() for place in range(2))
    colours = {line.get_label(): line.get_color() for line in first}
    assert len(set(colours.values())) == 3 and colours["sieve, Haswell (r)"] == colours["sieve"]
    assert {line.get_label(): line.get_color() for line in second}.items() <= colours.items()
    dashes = {line.get_label(): line.get_linestyle() for line in first}
    assert dashes["sieve"] == "-" and dashes["sieve, Haswell (r)"] != "-"


def test_what_stands_beside_is_dashed_in_the_colour_of_its_curve(tmp_path: Path) -> None:
    plot = drawn(tmp_path, PLOT + "beside = 'ranks'\nbeside_label = 'guessed'\n")
    lines = {line.get_label(): line for line in plot.figure.axes[0].get_lines()}
    assert lines["sieve (guessed)"].get_color() == lines["sieve"].get_color()
    assert lines["sieve (guessed)"].get_linestyle() != "-" and "dashed: guessed" in plot.caption


def test_sizes_have_colours_in_their_order_with_the_source_s_beside(tmp_path: Path) -> None:
    references = "references = [{label = '4 ranks', source = 'r', x = ['root'], y = [3]}]\n"
    text = "[[plots]]\nname = 'p'\nx = 'threads'\nseries = 'ranks'\nlog = 'y'\n" + references
    axes = AXES.replace('axes.io = ["root", "sieve"]', "axes.threads = [1, 2]")
    plot = drawn(tmp_path, text.replace("['root']", "[1]"), axes)
    colours = {line.get_label(): line.get_color() for line in plot.figure.axes[0].get_lines()}
    assert [colours[f"ranks {count}"] for count in (1, 2, 4)] == ordered(3)
    assert colours["4 ranks (r)"] == colours["ranks 4"]


def test_bytes_of_the_source_are_the_sizes_of_ours(tmp_path: Path) -> None:
    axes = AXES.replace("axes.io", "axes.block").replace('["root", "sieve"]', "[128000, 16000000]")
    axes += "flags.io = 'root'\nwords = ['random:{block}x4:float64']\n"
    references = "references = [{label = 'report 4, 16000000 B', source = 't', x = [1, 2], y = [3, 4]}]\n"
    plot = drawn(tmp_path, PLOT.replace("'io'", "'block'") + references, axes)
    colours = {line.get_label(): line.get_color() for line in plot.figure.axes[0].get_lines()}
    assert set(colours) == {"block 128 kB", "block 16 MB", "report 4, 16 MB (t)"}
    assert colours["report 4, 16 MB (t)"] == colours["block 16 MB"] != colours["block 128 kB"]


def test_the_source_s_curves_drive_none_of_ours_away(tmp_path: Path) -> None:
    """Sizes are told alone in the source; its curves about none of ours have what room is left."""
    axes = AXES.replace('axes.io = ["root", "sieve"]', "axes.size = [64, 128, 256]")
    axes += "flags.io = 'root'\nwords = ['random:{size}x4:float64']\n"
    told = [
        f"{{label = 'report 9, {size}', source = 'r', x = [1], y = [{size}]}}" for size in range(250, 264)
    ]
    text = PLOT.replace("'io'", "'size'") + f"references = [{', '.join(told)}]\n"
    plot = drawn(tmp_path, text, axes)
    lines = {str(line.get_label()): line for line in plot.figure.axes[0].get_lines()}
    assert {"size 64", "size 128", "size 256", "report 9, 256 (r)"} <= set(lines) and len(lines) == 9
    assert lines["report 9, 256 (r)"].get_color() == lines["size 256"].get_color()
    assert (
        lines["report 9, 256 (r)"].get_markerfacecolor() == "none" != lines["size 256"].get_markerfacecolor()
    )
    assert plot.caption.endswith("8 more curves are in the table only.")


def test_a_group_without_some_of_its_bars_is_as_high_as_others(tmp_path: Path) -> None:
    axes = AXES + "constraints = [\"ranks < 4 or io == 'root'\"]\n"
    plot = drawn(tmp_path, f"{PLOT}kind = 'bar'\n", axes)
    assert plot.figure.axes[0].get_ylim() == (2.5, -0.5)


def test_a_long_title_fits_above_a_heat_map(tmp_path: Path) -> None:
    title = "bytes read over bytes wanted, by gap, by run and by buffer size, of all"
    text = PLOT.replace("title = 'P'", f"title = '{title}'") + "kind = 'heat'\n"
    plot = drawn(tmp_path, text)
    plot.figure.draw_without_rendering()
    axes = plot.figure.axes[0]
    assert axes.title.get_window_extent().x1 <= plot.figure.bbox.x1
