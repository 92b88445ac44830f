"""Expressions that cannot be: refused before anything runs, or a reason in their place; never the end."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from studies import Runner, points, run, study
from tilewise.base.errors import UsageError
from tilewise.lab.report.load_results import find, report_page
from tilewise.lab.report.render import html
from tilewise.lab.study import evaluation, results
from tilewise.lab.study.compare import compare
from tilewise.lab.study.expression import Missing, short
from tilewise.lab.study.observations import numbers

AXES = 'command = "multiply"\naxes.ranks = [1, 2, 4]\naxes.io = ["sieve", "root"]\n'
TABLE = "[[tables]]\nname = 't'\nrows = 'ranks'\ncolumns = 'io'\n"
FIGURES = (
    "[[tables]]\nname = 'f'\nrows = ['ranks', 'io']\ncolumns = [{title = 'a', value = 'seconds.wall'}]\n"
)
PLOT = "[[plots]]\nname = 'p'\nx = 'ranks'\nseries = 'io'\n"
LINES = "[[tables]]\nname = 'l'\nrows = 'bytes'\nlines = {kind = 'ping'}\nwhere = 'pairs == 1'\n"


def shown(tmp_path: Path, text: str) -> evaluation.Evaluated:
    """The results of a study that nobody checked, in a page too."""
    run(tmp_path, text, Runner())
    assert "</html>" in html(report_page(find([str(tmp_path)])))
    return evaluation.load(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TABLE + "base = {rnaks = 1}", "t: base: no run has an axis 'rnaks', line .*one of io, ranks"),
        (FIGURES.replace("[{", "['io', {"), "tables f: columns are either axes or figures"),
        (TABLE + "where = 'foo > 1'", "tables t: where: no run has an axis 'foo'"),
        (TABLE + "cell = 'value / foo'", "tables t: cell has no 'foo'.*expected one of io, ranks, value"),
        (TABLE + "cell = 'value / base'", "tables t: cell has no 'base'"),
        (LINES + "cell = 'value / pairs'", "tables l: cell has no 'pairs'"),
        (PLOT + "ideal = 'foo'", "ideal asks for 'foo'; expected one of x, first, first_x, ranks, io"),
        (PLOT + "base = {rnaks = 1}", "tables p: base: no run has"),
    ],
)  # fmt: skip
def test_names_of_tables_and_plots_are_checked(text: str, said: str) -> None:
    made = study(AXES + text)
    with pytest.raises(UsageError, match=said):
        evaluation.check(made, points(AXES))


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("cel('t', 1, 2)", "no function 'cel'"),
        ("cell('u', 1, 2) > 0", "there is no table 'u'; expected one of t, f, l"),
        ("figur > 0", "claims 1, line .*, holds: there is no name 'figur'; expected one of cores"),
        ("at('t', ranks=1) > 0", "table t also has 'io'"),
        ("at('t', ranks=1, io='root', x=1) > 0", "table t has no axis 'x'; expected one of ranks, io"),
        ("at('f', ranks=1, io='root') > 0", "table f also has 'column'"),
        ("at() > 0", "at is called as at.table, AXIS=VALUE"),
        ("cells('t', 3) > 0", "cells is called as"),
        ("value('seconds.total.max', rnaks=1) > 0", "no run has an axis 'rnaks'"),
        ("value('seconds.total.max', run='mian') > 0", "there is no run 'mian'; expected one of main"),
        ("value('seconds.total.max', aggregate='x') > 0", "there is no aggregate 'x'"),
        ("value('seconds.', ranks=1) > 0", "'seconds.' is not an expression"),
        ("max(axis('sise')) > 0", "no run has an axis 'sise'"),
        ("max(axis('ranks', rnu='main')) > 0", "no run has an axis 'rnu'"),
    ],
)
def test_claims_are_checked(claim: str, said: str) -> None:
    made = study(f'{AXES}{TABLE}{FIGURES}{LINES}[[claims]]\ntext = "c"\nholds = "{claim}"')
    with pytest.raises(UsageError, match=said):
        evaluation.check(made, points(AXES))


def test_what_makes_sense_passes() -> None:
    claims = [
        "at('t', ranks=max(axis('ranks', run='main')), io='root') > 0",
        "at('f', ranks=1, io='root', column='a') > 0",
        "at('l', bytes=1) > 0 and cell('l', 1) > 0",
        "value('seconds.total.max', 'mean', ranks=1, io='root') > cores",
    ]
    text = "".join(
        f'[[claims]]\ntext = "c"\nwords = "w"\nfigure = "1"\nholds = "{claim}"\n' for claim in claims
    )
    made = study(f"{AXES}{TABLE}base = {{ranks = 1}}\nwhere = \"run == 'main'\"\n{FIGURES}{LINES}{text}")
    evaluation.check(made, points(AXES))


def test_a_base_that_nothing_has_is_no_base(tmp_path: Path) -> None:
    """Of results that an older version left: not every point compared with itself."""
    where = TABLE.replace("'t'", "'w'") + "where = 'foo > 1'"
    loaded = shown(tmp_path, f"{AXES}{TABLE}base = {{rnaks = 1}}\n{where}")
    base, nothing = loaded.tables
    assert {cell.reason for row in base.cells for cell in row} == {"no base: no point here has 'rnaks'"}
    assert nothing.notes == ["where asks for 'foo', which no point here has"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("cell = \"'abc'\"", "'\"abc\"' cannot be computed|cannot be computed: a text is not a number"),
        ("cell = '[value, 1]'", "^it cannot be computed"),
        ("cell = '(0 - value) ** 0.5'", "cannot be computed"),
        ("cell = 'value / foo'", "cell asks for 'foo'"),
        ("value = 'samples.compute[5]'", "cannot be computed: list index out of range"),
        ("value = 'samples.compute + [1]'", "lists of 2 and 1 do not go together"),
        ("value = '1e308 * 10'", "inf is not a finite number"),
        ("value = '10 ** 400 * 10'", "a whole number of .* bits is no"),
    ],
)
def test_a_cell_that_cannot_be_computed_has_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    broken, whole = shown(tmp_path, f"{AXES}{TABLE}{text}\n{FIGURES}").tables
    for row in broken.cells:
        for cell in row:
            assert cell.value is None
            assert re.search(reason, cell.reason), cell.reason
            assert "study.toml" not in cell.reason
    assert whole.cells[0][0].value == 13.0


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("figure = \"cells('t')\"\nholds = '1 > 0'", "cannot be computed"),
        ("figure = \"'abc'\"\nholds = '1 > 0'", "a text is not a number"),
        ("figure = '(0 - 8) ** 0.5'\nholds = '1 > 0'", "cannot be computed"),
        ("figure = '1e999'\nholds = 'figure > 0'", "inf is not a finite number"),
        ("figure = '1'\nholds = 'foo > 1'", "there is no name 'foo'"),
        ("figure = '1'\nholds = \"cells('t') > 0\"", "gives a list"),
        ("figure = \"at('u', ranks=1)\"\nholds = 'figure > 0'", "there is no table 'u'; tables: t"),
        ("figure = \"value('seconds.total.max')\"\nholds = 'figure > 0'", "6 points have these figures"),
        ("holds = '1 > 0'", "it has no figure"),
        ("figure = '1'\nholds = '1 > 0'\nneeds = '[1] + [1, 2]'", "lists of 1 and 2"),
    ],
)
def test_a_claim_that_cannot_be_computed_is_untestable(tmp_path: Path, claim: str, reason: str) -> None:
    text = f"{AXES}{TABLE}[[claims]]\ntext = 'c'\n{claim}\n"
    loaded = shown(tmp_path, f"{text}[[claims]]\ntext = 'd'\nfigure = '1'\nholds = '1 > 0'")
    one, two = loaded.verdicts
    assert one.verdict == "untestable" and reason in one.reason and "study.toml" not in one.reason
    assert two.verdict == "holds"


@pytest.mark.parametrize("ideal", ["[x]", "'a'", "foo", "ranks", "x ** 0.5 * (0 - 1) ** 0.5"])
def test_an_ideal_line_that_cannot_be_is_left_out_with_a_note(tmp_path: Path, ideal: str) -> None:
    (plot,) = shown(tmp_path, f'{AXES}{PLOT}ideal = "{ideal}"\n').plots
    assert plot.ideal is None and len(plot.series) == 2
    assert plot.notes and plot.notes[0].startswith("no ideal line: ")


def test_columns_of_both_kinds_show_the_figures(tmp_path: Path) -> None:
    (table,) = shown(tmp_path, AXES + FIGURES.replace("[{", "['io', {")).tables
    assert table.columns == [["a"]] and table.cells[0][0].value == 13.0


def test_at_of_a_table_of_one_column(tmp_path: Path) -> None:
    text = "command = 'multiply'\naxes.ranks = [1, 2]\n[[tables]]\nname = 't'\nrows = 'ranks'\n"
    loaded = shown(
        tmp_path,
        f"{text}[[claims]]\ntext = 'c'\nfigure = \"at('t', ranks=2) + cell('t', 1)\"\nholds = '1 > 0'",
    )
    assert loaded.verdicts[0].figure == 18.0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "constraints = ['1 / (ranks - 1) > 0']",
            "s.toml, line .*constraint of runs main: .*divides by zero",
        ),
        ("limits = ['1 / (ranks - 1) > 0']", "s.toml, line .*limit of runs main: .*divides by zero"),
        ("words = ['{8 / (ranks - 1)}']", "runs main: .*8 / .ranks - 1..*divides by zero, line"),
        ("flags.threads = 99999999999999999999", "--threads expects whole numbers from 1 to"),
        ("axes.threads = [-1]", "'threads' has -1, but --threads expects whole numbers from 1 to"),
        ("timeout = inf", "timeout = inf makes no sense"),
        ("inputs.A.path = '/dev/zero'", "the input 'A' at /dev/zero is neither a file nor a folder"),
        (
            f"axes.threads = {list(range(1, 400))}\naxes.tolerance = {list(range(1, 400))}",
            "have 318402 combinations; at most 100000 are allowed",
        ),
    ],
)
def test_points_that_cannot_be(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        points(f"command = 'multiply'\naxes.ranks = [1, 2]\n{text}")


def test_numbers_beyond_a_float() -> None:
    assert short(10**400) == "a whole number of 1329 bits" and short(7) == "7"
    with pytest.raises(Missing, match="1329 bits is not a finite number"):
        numbers(10**400)


@pytest.mark.parametrize(
    "change",
    [
        {"lines": {"a": 1}},
        {"lines": [1, 2]},
        {
            "lines": [
                {"kind": "x", "key": ["a"], "launches": 5},
                {"key": "b", "launches": ["x"]},
                {"launches": [[1.0]]},
            ]
        },
        {
            "variant": {"ranks": "q"},
            "flops": 10,
            "rates": {"flops_per_second": 5},
            "inputs": [{"shape": ["x"]}],
        },
        {"flops": 10, "rates": {"flops_per_second": 5}, "inputs": ["x"], "outputs": "y"},
        {"flops": 10, "rates": 7},
    ],
)
def test_records_of_foreign_make(tmp_path: Path, change: dict[str, Any]) -> None:
    text = f"{AXES}{TABLE}[[tables]]\nname = 'l'\nrows = 'key'\nlines = {{kind = 'x'}}\nvalue = 'launches'\n"
    run(tmp_path, text, Runner())
    file = tmp_path / "points.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        line["record"] |= change
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    loaded = results.load(str(tmp_path))
    assert compare(loaded, loaded).changes
    assert "</html>" in html(report_page(find([str(tmp_path)])))
    assert {entry.result() for point in loaded.points for entry in point.entries} == {None}


def test_a_folder_of_foreign_make(tmp_path: Path) -> None:
    run(tmp_path, AXES + TABLE, Runner())
    (tmp_path / "points.foo.jsonl").mkdir()
    sessions = tmp_path / "environment.json"
    sessions.write_text(sessions.read_text().replace('"default"', '"huge"'))
    loaded = results.load(str(tmp_path))
    assert len(loaded.points) == 6
    assert any("the unknown scale 'huge'" in note for note in loaded.notes)
    (tmp_path / "study.toml").write_bytes(b"title = '\xff'")
    with pytest.raises(UsageError, match="study.toml is not UTF-8 text"):
        results.load(str(tmp_path))
