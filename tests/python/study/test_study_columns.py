"""Columns made out of others, figures with lines of their own, tables like others, empty tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from studies import HERE, Runner, checked, points, run, study
from tilewise.base.errors import UsageError
from tilewise.lab.study import evaluation, results
from tilewise.lab.study.cells import FigureCell
from tilewise.lab.study.claims import judge
from tilewise.lab.study.schema import PlotWanted, TableWanted
from tilewise.lab.study.store import NOT_RUN, Entry, Store, hash_of
from tilewise.lab.study.tables import FigureTable, column_names, evaluate, name_of

AXES = 'command = "multiply"\naxes.ranks = [1, 2, 4]\naxes.io = ["sieve", "root"]\nlimits = ["ranks <= 2"]\n'
TABLE = "[[tables]]\nname = 't'\nrows = 'ranks'\ncolumns = 'io'\n"


def made(tmp_path: Path, text: str) -> list[FigureTable]:
    run(tmp_path, text, Runner())
    return evaluation.load(str(tmp_path)).tables


@pytest.mark.parametrize(
    ("axes", "label", "name"),
    [
        (["way"], ["MPI-IO, split"], "MPI_IO_split"),
        (["ranks"], [4], "ranks_4"),
        (["part"], [0.5], "part_0_5"),
        (["block"], ["128K"], "block_128K"),
        (["size", "io"], [64, "root"], "size_64_root"),
        ([], ["read/write"], "read_write"),
        ([], [], "value"),
    ],
)
def test_names_of_columns(axes: list[str], label: list[Any], name: str) -> None:
    assert name_of(axes, label) == name


def test_two_columns_of_one_name_have_none() -> None:
    assert column_names([], [["a b"], ["a-b"], ["c"]]) == {"c": 2}


def test_a_column_out_of_others(tmp_path: Path) -> None:
    """Of the pretended job: 12 s over its ranks, and 1 s more through the root."""
    text = (
        AXES + TABLE + "unit = 's'\nalso = [{title = 'root/sieve', value = 'root / sieve', unit = '×'}, "
        "{title = 'rank seconds', value = '(root_sieve + 1) * ranks'}]\n"
        "[[claims]]\ntext = 'c'\nfigure = \"max(column('t', 'root/sieve'))\"\nholds = 'figure > 1'\n"
        "[[claims]]\ntext = 'd'\nfigure = \"at('t', ranks=1, io='root/sieve')\"\nholds = 'figure > 1'\n"
    )
    checked(text)
    (table,) = made(tmp_path, text)
    assert table.columns == [["sieve"], ["root"], ["root/sieve"], ["rank seconds"]]
    assert table.units == ["s", "s", "×", ""] and table.also == ["root / sieve", "(root_sieve + 1) * ranks"]
    assert [cell.value for cell in table.cells[0]] == [12.0, 13.0, 13 / 12, 13 / 12 + 1]
    assert [cell.value for cell in table.cells[1]] == [6.0, 7.0, 7 / 6, (7 / 6 + 1) * 2]
    cell = table.look(1, "root/sieve")
    assert (cell.value, cell.n, list(cell.moves.values())) == (13 / 12, 1, [[13 / 12]] * 2)
    away = table.look(4, "root/sieve")
    assert (
        away.value is None
        and away.reason == table.look(4, "root").reason
        and "needs ranks <= 2; here ranks is 4" in away.reason
    )
    found = results.load(str(tmp_path))
    first, second = (judge(found, [table], claim) for claim in found.study.file.claims)
    assert (first.verdict, first.figure) == ("undecided", 7 / 6) and second.figure == 13 / 12


def test_what_cannot_be_made_says_why(tmp_path: Path) -> None:
    text = (
        AXES
        + TABLE
        + "also = [{title = 'a', value = 'root / (sieve - 12)'}, {title = 'b', value = 'ranks * 2'}, "
        "{title = 'c', value = 'root + two_phase'}]\n"
    )
    (table,) = made(tmp_path, text)  # which nobody checked
    assert table.look(1, "a").reason == "it divides by zero"
    assert table.look(2, "a").value == 7 / -6
    assert table.look(4, "b") == FigureCell(value=8.0)
    assert table.look(1, "c").reason == "there is no column 'two_phase' here"


FIGURES = (
    "[[tables]]\nname = 'f'\nrows = ['ranks', 'io']\n"
    "columns = [{title = 'all of it', value = 'seconds.total.max'}]\n"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TABLE + "also = [{title = 'a', value = 'rot / sieve'}]", "'rot'; expected one of ranks, root"),
        (TABLE + "also = [{title = 'root', value = 'sieve'}]", "tables t: two columns are named 'root'"),
        (TABLE + "also = [{title = 'a', value = 'root /'}]", "also 'a': 'root /' is not an expression"),
        (TABLE + "also = [{title = 'a', value = 'b'}, {title = 'b', value = 'root'}]", "for 'b'; expected"),
        (FIGURES + "also = [{title = 'a', value = 'all'}]", "'all'; expected one of all_of_it, io, ranks"),
        (TABLE.replace("'io'", "[]") + "where = \"io == 'root'\"\nalso = [{title = 'a', value = 'vale'}]",
         "asks for 'vale'; expected one of ranks, value"),
    ],
)  # fmt: skip
def test_further_columns_are_checked(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        checked(AXES + text)


def test_a_column_of_another_scale_is_known() -> None:
    """`ranks_4` is there at the default scale, so that asking for it is no mistake at the smallest."""
    text = (
        AXES + "scales.tiny.axes.ranks = [1, 2]\n" + TABLE.replace("'ranks'", "X").replace("'io'", "'ranks'")
    )
    text = text.replace("X", "'io'") + "also = [{title = 'a', value = 'ranks_1 / ranks_4'}]"
    small = study(text, "tiny")
    evaluation.check(small, points(text, "tiny"))


def test_a_table_like_another() -> None:
    text = (
        AXES + TABLE + "unit = 's'\nlines = {kind = 'file', series = 'write'}\n"
        "reference = {source = 'a', rows = [1], columns = ['x'], values = [[0.5]]}\n"
        "[[tables]]\nname = 'u'\nlike = 't'\nlines.series = 'read'\nreference.source = 'b'\n"
        "[[tables]]\nname = 'v'\nlike = 'u'\nunit = ''\n"
        "[[plots]]\nname = 'p'\nx = 'ranks'\nlog = 'xy'\n[[plots]]\nname = 'q'\nlike = 'p'\nx = 'io'\n"
    )
    first, second, third = study(text).file.tables
    assert isinstance(second, TableWanted) and (second.name, second.rows, second.unit) == ("u", "ranks", "s")
    assert second.lines == {"kind": "file", "series": "read"} and first.lines["series"] == "write"
    assert second.reference is not None and (second.reference.source, second.reference.values) == (
        "b",
        [[0.5]],
    )
    assert (third.columns, third.unit, third.lines) == ("io", "", second.lines)
    plot = study(text).file.plots[1]
    assert isinstance(plot, PlotWanted) and (plot.name, plot.x, plot.log) == ("q", "io", "xy")


def test_a_plot_like_a_table_and_defaults_of_all() -> None:
    text = (
        AXES + TABLE + "unit = 's'\n[[tables]]\nname = 'u'\nlike = 't'\n"
        "[[plots]]\nname = 't'\nlike = 't'\nx = 'ranks'\n"
        "[[plots]]\nname = 'q'\nlike = 't'\nvalue = 'launch'\n"
        "[[claims]]\ntext = 'a'\nuntestable = 'b'\n[[claims]]\ntext = 'c'\nuntestable = 'd'\nunit = '%'\n"
        "[defaults]\nclaims.unit = '×'\ntables = { unit = 'GB/s', aggregate = 'min' }\n"
    )
    file = study(text).file
    assert [(table.unit, table.aggregate) for table in file.tables] == [("s", "min")] * 2
    first, second = file.plots
    assert (first.x, first.unit, first.aggregate, first.value) == ("ranks", "s", "min", "seconds.total.max")
    assert (second.x, second.unit, second.value) == ("ranks", "s", "launch")
    assert [claim.unit for claim in file.claims] == ["×", "%"]


@pytest.mark.parametrize("defaults", ["defaults = 3\n", "defaults.runs = 3\n", "defaults.notes.unit = 's'\n"])
def test_defaults_are_tables_of_what_there_is(defaults: str) -> None:
    with pytest.raises(UsageError, match="defaults .* expected tables runs, tables, plots, claims"):
        study(defaults + AXES)


def test_a_run_like_another() -> None:
    text = """
[[runs]]
name = "a"
command = "multiply"
words = ["x", "y"]
axes = { ranks = [1, 2], io = ["root"] }
flags = { sync = true, verify = "off" }
scales.tiny = { axes.ranks = [1], launches = 2 }
[[runs]]
name = "b"
like = "a"
axes.ranks = [4]
flags.verify = "serial"
scales.tiny.axes.ranks = [2]
"""
    first, second = points(text)[:2], points(text)[2:]
    assert [point.axes for point in second] == [{"ranks": 4, "io": "root"}] and len(first) == 2
    assert second[0].words == [
        "multiply",
        "x",
        "y",
        "--ranks",
        "4",
        "--io",
        "root",
        "--sync",
        "--verify",
        "serial",
    ]
    tiny = study(text, "tiny").runs[1]
    assert (tiny.axes, tiny.launches) == ({"ranks": [2], "io": ["root"]}, 2)


@pytest.mark.parametrize("like", ["x", "u"])
def test_like_names_a_table_above(like: str) -> None:
    with pytest.raises(UsageError, match=f"tables u: like '{like}' is unknown; expected one of t"):
        study(f"{AXES}{TABLE}[[tables]]\nname = 'u'\nlike = '{like}'")


def test_types_are_checked_behind_like() -> None:
    for wrong in ("tables = [3]", "tables = [{name = 'u', rows = 'io', like = ['t']}]"):
        with pytest.raises(UsageError, match="tables.* expected"):
            study(f"{AXES}{wrong}")
    with pytest.raises(UsageError, match="lacks 'rows'"):
        study(f"{AXES}[[tables]]\nname = 'u'")


def measured_files(tmp_path: Path, text: str) -> FigureTable:
    """A file written at 2 GB/s in 3 s and read at 8; of two ranks nothing but writing, of four no run."""
    found = study("command = 'measure file'\n" + text)
    store = Store(str(tmp_path))
    store.keep(found.text, "default", HERE)
    for ranks in (1, 2, 4):
        lines = [
            {"key": s, "series": s, "bytes": 8, "amount": 6e9, "summary": {"median": seconds}}
            for s, seconds in (("write", 3.0), ("read", 0.75))[: 3 - ranks]
        ]
        told = {"status": NOT_RUN, "message": "ranks < 4 does not hold"} if ranks == 4 else {"status": "done"}
        record = None if ranks == 4 else {"lines": lines}
        store.append(Entry(
            hash=hash_of(str(ranks), 0, HERE), point=str(ranks), run="main", axes={"ranks": ranks}, launch=0,
            environment=HERE.id(), record=record, **told,
        ))  # fmt: skip
    store.close()
    read = results.load(str(tmp_path))
    return evaluate(read, read.study.file.tables[0])


FILES = """[[tables]]
name = 't'
rows = ['ranks', 'bytes']
columns = [
    {title = 'time', value = 'summary.median', unit = 's', lines.series = 'write'},
    {title = 'write', value = 'rate / 1e9', unit = 'GB/s', lines.series = 'write'},
    {title = 'read', value = 'rate / 1e9', unit = 'GB/s', lines.series = 'read'},
]
also = [{title = 'read/write', value = 'read / write', unit = '×'}]
"""


def test_figures_with_lines_of_their_own(tmp_path: Path) -> None:
    table = measured_files(tmp_path, FILES)
    assert table.rows == [[1, 8], [2, 8]]
    assert [cell.value for cell in table.cells[0]] == [3.0, 2.0, 8.0, 4.0]
    assert table.look([2, 8], "read").reason == table.look([2, 8], "read/write").reason == "no such point"
    assert table.notes == ["main, ranks = 4: not run: ranks < 4 does not hold"]


def test_the_source_gets_the_further_columns_too(tmp_path: Path) -> None:
    told = (
        "reference = {source = 'r', rows = [[1, 8], [2, 8]], columns = ['write', 'read'], "
        "values = [[0.277, 21.845], [0.5, '–']]}\n"
    )
    table = measured_files(tmp_path, FILES + told)
    assert table.reference is not None and table.reference.columns == ["write", "read", "read/write"]
    assert table.reference.values == [[0.277, 21.845, 78.9], [0.5, "–", ""]]
    alone = measured_files(tmp_path / "other", FILES + told.replace("'read']", "'reading']"))
    assert alone.reference is not None and alone.reference.columns == ["write", "reading"]


def test_a_column_of_a_run_that_nothing_was_measured_of_says_why(tmp_path: Path) -> None:
    text = (
        "command = 'measure file'\n[[runs]]\nname = 'main'\naxes.buffer = ['malloc']\n"
        "[[runs]]\nname = 'other'\naxes.buffer = ['managed', 'device']\n"
        "[[tables]]\nname = 't'\nrows = 'bytes'\ncolumns = 'buffer'\nvalue = 'rate'\n"
        "lines = {series = 'read'}\n"
    )
    found = study(text)
    store = Store(str(tmp_path))
    store.keep(found.text, "default", HERE)
    lines = [{"key": "r", "series": "read", "bytes": 8, "amount": 6.0, "summary": {"median": 3.0}}]
    for name, buffer in (("main", "malloc"), ("other", "managed"), ("other", "device")):
        told = {"status": NOT_RUN, "message": "no device here"} if name == "other" else {"status": "done"}
        store.append(Entry(
            hash=hash_of(buffer, 0, HERE), point=buffer, run=name, axes={"buffer": buffer}, launch=0,
            environment=HERE.id(), record={"lines": lines} if name == "main" else None, **told,
        ))  # fmt: skip
    store.close()
    read = results.load(str(tmp_path))
    table = evaluate(read, read.study.file.tables[0])
    assert table.columns == [["malloc"], ["managed"], ["device"]]
    assert [(cell.value, cell.reason) for cell in table.cells[0]] == [
        (2.0, ""),
        (None, "not run: no device here"),
        (None, "not run: no device here"),
    ]


@pytest.mark.parametrize("where", ["", "where = \"series == 'read'\"\n"])
def test_a_table_without_rows_says_why_in_a_line(tmp_path: Path, where: str) -> None:
    """Each reason once, also where `where` asks for what only a measurement has."""
    text = (
        "command = 'measure file'\naxes.ranks = [1, 2]\nlimits = ['gpus >= 1']\n"
        "[[tables]]\nname = 't'\nrows = 'bytes'\ncolumns = 'series'\nlines = {kind = 'file'}\n"
        "notes = ['a note']\n"
    )
    found = study(text + where)
    store = Store(str(tmp_path))
    store.keep(found.text, "default", HERE)
    for ranks in (1, 2):
        store.append(Entry(
            hash=hash_of(str(ranks), 0, HERE), point=str(ranks), run="main", axes={"ranks": ranks}, launch=0,
            environment=HERE.id(), status=NOT_RUN, message="needs 1 device; there is no device here",
        ))  # fmt: skip
    store.close()
    (table,) = evaluation.load(str(tmp_path)).tables
    assert table.rows == []
    assert table.notes == ["main, 2 points: not run: needs 1 device; there is no device here"]


def test_a_table_that_nothing_is_planned_for(tmp_path: Path) -> None:
    (table,) = made(tmp_path, AXES + TABLE + "where = 'ranks > 64'\nnotes = ['a note']\n")
    assert (table.rows, table.notes) == ([], ["the study has no such point at this scale"])


def test_the_best_of_zipped_axes_is_told_by_one(tmp_path: Path) -> None:
    text = (
        "command = 'multiply'\naxes.ranks = [1, 2]\naxes.way = ['a', 'a', 'b']\n"
        "axes.io = ['root', 'sieve', 'sieve']\naxes.threads = [1, 2, 3]\nzip = [['way', 'io', 'threads']]\n"
        "[[tables]]\nname = 't'\nrows = 'ranks'\nbest = 'max'\n"
        "[[tables]]\nname = 'u'\nrows = 'ranks'\nbest = 'min'\nwhere = \"way == 'b' or io == 'root'\"\n"
    )
    both, one = made(tmp_path, text)
    assert {row[0].chosen for row in both.cells} == {"way = a, io = root"}
    assert {row[0].chosen for row in one.cells} == {"way = b"}
