"""A study's tables on a page and in files: one unit of time, bases told once, units of what is exported."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from studies import Runner, run
from tilewise.lab.report.page import ReportPage, Section, flat
from tilewise.lab.report.render import as_csv, as_markdown, html
from tilewise.lab.report.study_format import base_unit, digits_of
from tilewise.lab.report.study_tables import claims, figures
from tilewise.lab.report.table import Footnotes, Table
from tilewise.lab.study import evaluation
from tilewise.lab.study.cells import FigureCell
from tilewise.lab.study.results import SINGLE
from tilewise.lab.study.schema import FigureColumn, TableWanted

AXES = (
    'command = "multiply"\naxes.ranks = [1, 2, 4]\naxes.io = ["sieve", "root"]\nlimits = ["ranks < 4"]\n'
    "[[tables]]\nname = 't'\ntitle = 'T'\n"
)


def made(tmp_path: Path, text: str, *factors: float, axes: str = AXES) -> list[Table]:
    run(tmp_path, axes + text, Runner(factors=factors or [1.0]))
    return figures([evaluation.load(str(tmp_path))], 0)


def read(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(table))))


def test_a_page_scales_times_and_a_file_keeps_the_study_s_unit(tmp_path: Path) -> None:
    (table,) = made(tmp_path, "rows = 'ranks'\ncolumns = 'io'\nunit = 's'", 1e-3)
    assert [(column.title, column.unit) for column in table.columns[1:]] == [("sieve", "ms"), ("root", "ms")]
    assert [cell.text for cell in table.rows[1]] == ["2", "6.00", "7.00"]
    assert read(table)[1] == {"ranks": "2", "sieve (s)": "0.006", "root (s)": "0.007"}
    assert "| sieve (ms) |" in as_markdown(table) and "| 2 | 6.00 | 7.00 |" in as_markdown(table)


def test_numbers_of_a_file_have_the_unit_of_its_head(tmp_path: Path) -> None:
    """The study's figure is in GB/s already: a head of B/s would be wrong by a billion."""
    (table,) = made(
        tmp_path, "rows = 'ranks'\ncolumns = 'io'\nunit = 'GB/s'\nvalue = '12 / seconds.total.max'"
    )
    assert read(table)[0] == {"ranks": "1", "sieve (GB/s)": "1.0", "root (GB/s)": repr(12 / 13)}


def test_times_beside_the_source_s_stay_in_its_unit(tmp_path: Path) -> None:
    told = "reference = {source = 'r', rows = [1], columns = ['sieve', 'x'], values = [[0.25, 3]]}\n"
    ours, theirs = made(tmp_path, "rows = 'ranks'\ncolumns = 'io'\nunit = 's'\n" + told, 1e-3)
    assert ours.columns[1].unit == theirs.columns[1].unit == "s" and theirs.columns[2].unit == "s"
    assert ours.rows[0][1].text == "0.0120" and theirs.rows[0][1].text == "0.25"


def test_one_base_of_a_table_stands_in_its_title(tmp_path: Path) -> None:
    (table,) = made(tmp_path, "rows = 'ranks'\ncolumns = 'io'\nwhere = \"io == 'root'\"\nbase = {ranks = 1}")
    assert table.title == "T; compared with ranks = 1 (13.00 s)"
    assert [column.title for column in table.columns] == ["ranks", "root"]


def test_one_base_of_a_row_stands_in_it(tmp_path: Path) -> None:
    (table,) = made(tmp_path, "rows = 'io'\ncolumns = 'ranks'\nbase = {ranks = 1}", 0.5**10)
    assert [column.title for column in table.columns] == [
        "io",
        "base: ranks = 1",
        "ranks 1",
        "ranks 2",
        "ranks 4",
    ]
    assert (table.columns[1].unit, table.rows[1][1].text, table.rows[1][1].value) == (
        "ms",
        "12.70",
        13 / 1024,
    )
    assert [cell.text for cell in table.rows[1][2:]] == ["1", "1.86", "not run"]


def test_one_base_of_a_column_stands_over_it_and_intervals_beside_figures(tmp_path: Path) -> None:
    axes = AXES.replace("[[tables]]", "launches = 3\n[[tables]]")
    (table,) = made(
        tmp_path, "rows = 'ranks'\ncolumns = 'io'\nbase = {ranks = 1}", 1.0, 1.01, 0.99, axes=axes
    )
    assert [column.title for column in table.columns] == ["ranks", "sieve", "root"]
    assert [column.unit for column in table.columns] == ["", "of 11.88 s", "of 13.13 s"]
    assert table.rows[0][1].spread == "" and table.rows[1][1].spread == "±2.4 %"
    assert f"| 2 | {table.rows[1][1].text} ±2.4 % |" in as_markdown(table)
    assert "<small>±2.4 %</small>" in html(ReportPage("", "", [Section("s", "S", tables=[table])]))


def test_digits_are_those_that_launches_agree_on() -> None:
    told = [(0.3, "2"), (0.05, "3"), (0.004, "4"), (1e-9, "4")]
    for reach, digits in told:
        assert digits_of(FigureCell(value=2.0, low=2.0 - 2 * reach, high=2.0 + reach, n=3)) == int(digits)
    assert (
        digits_of(FigureCell(value=2.0, n=1, labels=[SINGLE])) == 3
        and digits_of(FigureCell(value=2.0, n=1)) == 4
    )


def test_bytes_of_an_axis_are_sizes(tmp_path: Path) -> None:
    axes = AXES.replace("axes.io", "axes.block").replace('["sieve", "root"]', "[4194304, 16000000]")
    axes = axes.replace("limits", "flags.io = 'root'\nwords = ['random:{block}x4:float64']\nlimits")
    (table,) = made(tmp_path, "rows = ['block', 'ranks']", axes=axes)
    assert {row[0].text for row in table.rows} == {"4 MiB", "16 MB"}
    assert {row[0].value for row in table.rows} == {4194304, 16000000}


def test_the_source_s_rows_have_names_of_ours_only_where_they_are_such_values(tmp_path: Path) -> None:
    told = "reference = {source = 'r', rows = ['Haswell'], columns = ['sieve'], values = [[3]]}\n"
    _, theirs = made(tmp_path, "rows = 'ranks'\ncolumns = 'io'\n" + told)
    assert theirs.columns[0].title == ""
    told = "reference = {source = 'r', heads = ['N'], rows = [64], columns = ['sieve'], values = [[3]]}\n"
    _, theirs = made(tmp_path / "n", "rows = 'ranks'\ncolumns = 'io'\n" + told)
    assert theirs.columns[0].title == "N"


def test_a_further_column_says_what_it_is_made_of(tmp_path: Path) -> None:
    text = "rows = 'ranks'\ncolumns = 'io'\nbase = {io = 'sieve'}\n"
    (table,) = made(tmp_path, text + "also = [{title = 'r/s', value = 'root / sieve'}]")
    assert [column.title for column in table.columns] == ["ranks", "base: io = sieve", "sieve", "root", "r/s"]
    assert table.rows[1][4].hint == "r/s = root / sieve" and table.rows[1][4].text == "0.8571"


def test_a_table_without_rows_is_its_reason(tmp_path: Path) -> None:
    (table,) = made(tmp_path, "rows = 'ranks'\ncolumns = 'io'\nwhere = 'ranks > 9'")
    text = html(ReportPage("t", "", [Section("s", "S", [], [table])]))
    assert "the study has no such point at this scale" in text and "<table" not in text


def test_gaps_and_counts(tmp_path: Path) -> None:
    text = (
        "rows = 'run'\ncolumns = 'ranks'\nwhere = \"io == 'root'\"\nvalue = 'ranks * 1000000'\n"
        "[[runs]]\nname = 'a'\n[[runs]]\nname = 'b'\nconstraints = ['ranks == 1']\n"
        "[[claims]]\ntext = 'c'\nfigure = '4'\nholds = 'figure > 1'\nunit = 'of 8'\n"
    )
    (table,) = made(tmp_path, text)
    assert [cell.text for cell in table.rows[0]] == ["a", "1000000", "2000000", "not run"]
    assert [cell.text for cell in table.rows[1]] == ["b", "1000000", "–", "–"]
    assert table.notes[-1] == "– means that the study has no such point"
    said = claims([evaluation.load(str(tmp_path))], own=True)
    assert said is not None and said.rows[0][2].text == "4 of 8"


def test_a_base_has_a_unit_where_all_of_it_are_times() -> None:
    def unit(**said: object) -> str:
        return base_unit(TableWanted(name="t", rows="ranks", **said))  # type: ignore[arg-type]

    share = FigureColumn(title="a", value="seconds.input.max / seconds.total.max")
    time = FigureColumn(title="b", value="seconds.input.max")
    assert (
        unit() == unit(value="max(seconds.input.max - seconds.output.max, 0)") == unit(columns=[time]) == "s"
    )
    assert (
        unit(columns=[time, share]) == unit(value="rate") == unit(value="1 + 1") == unit(value="ranks") == ""
    )


def test_signs_stand_in_the_order_of_their_notes() -> None:
    marks = Footnotes()
    assert [marks.sign("a", "b"), marks.sign("c", "a"), marks.sign("b", "a")] == ["*†", "*‡", "*†"]
    assert marks.notes() == ["* a", "† b", "‡ c"]


def test_plain_values_are_told_in_words() -> None:
    told = {"last_change": None, "whole": True, "order": [1, 0], "off": [{"sweep": 0.12345}]}
    assert list(flat(told)) == [
        ("last change", "–"),
        ("whole", "yes"),
        ("order", "1, 0"),
        ("off 1 sweep", "0.1235"),
    ]
