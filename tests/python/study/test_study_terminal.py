"""Tables of a study on a terminal: units, bases, decimal points below each other, no line cut."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from rich.cells import cell_len
from studies import Runner, run
from tilewise.lab.report.study_format import number
from tilewise.lab.report.study_tables import figures
from tilewise.lab.report.terminal import Screen
from tilewise.lab.study import evaluation

# 12 s / ranks, and through the root 1 s more; `input` is a quarter of it.
AXES = (
    'command = "multiply"\naxes.ranks = [1, 2, 4]\naxes.io = ["sieve", "root"]\nlimits = ["ranks < 4"]\n'
    "launches = 2\n"
    "[[tables]]\nname = 't'\ntitle = 'T'\n"
)
AWAY = "  not run: needs ranks < 4; here ranks is 4"


def shown(tmp_path: Path, text: str, factor: float = 1.0, width: int = 0) -> list[str]:
    run(tmp_path, AXES + text, Runner(factors=[factor]))
    loaded = evaluation.load(str(tmp_path))
    screen = Screen()
    screen.table(figures([loaded], 0)[0])
    return screen.text(width).splitlines()


def told(text: str, *notes: str) -> list[str]:
    return [*textwrap.dedent(text).strip().splitlines(), *notes]


def test_times_of_a_table_have_one_unit(tmp_path: Path) -> None:
    expected = """
        T
                 sieve     root
        ranks       µs       µs
        ───────────────────────
        1       1200     1300
        2        600.0    700.0
        4      not run  not run
    """
    assert shown(tmp_path, "rows = 'ranks'\ncolumns = 'io'\nunit = 's'", 1e-4) == told(expected, AWAY)


def test_figures_with_units_of_their_own(tmp_path: Path) -> None:
    text = (
        "rows = ['io', 'ranks']\nwhere = 'ranks < 4'\nunit = 's'\naggregate = 'max'\n"
        "columns = [{title = 'a', value = 'seconds.total.max'}, {title = 'b', value = 'ranks', unit = 'P'}]\n"
    )
    lines = shown(tmp_path, text)
    assert [line.split() for line in lines[1:3]] == [["a", "b"], ["io", "ranks", "s", "P"]]
    assert lines[0] == "T (max)" and lines[4:6] == ["sieve  1      12.00   1", "sieve  2       6.000  2"]


BASES = {
    "of the table": (
        "rows = 'ranks'\ncolumns = 'io'\nwhere = \"io == 'sieve'\"\nbase = {ranks = 1}",
        """
        T; compared with ranks = 1 (12.00 s)
        ranks    sieve
        ──────────────
        1            1
        2            2
        4      not run
        """,
    ),
    "of a row": (
        "rows = 'io'\ncolumns = 'ranks'\nbase = {ranks = 1}\nunit = '×'",
        """
        T
                   base:
               ranks = 1  ranks 1  ranks 2  ranks 4
        io             s        ×        ×        ×
        ───────────────────────────────────────────
        sieve      12.00        1    2.000  not run
        root       13.00        1    1.857  not run
        """,
    ),
    "of a column": (
        "rows = 'ranks'\ncolumns = 'io'\nbase = {ranks = 1}",
        """
        T; compared with ranks = 1
                    sieve        root
        ranks  of 12.00 s  of 13.00 s
        ─────────────────────────────
        1               1       1.000
        2               2       1.857
        4         not run     not run
        """,
    ),
}


@pytest.mark.parametrize("which", BASES)
def test_a_base_stands_where_it_belongs(tmp_path: Path, which: str) -> None:
    text, expected = BASES[which]
    assert shown(tmp_path, text) == told(expected, AWAY)


def test_large_bases_are_counted_in_thousands(tmp_path: Path) -> None:
    text = "rows = 'io'\ncolumns = 'ranks'\nwhere = 'ranks < 4'\nbase = {ranks = 1}\n"
    lines = shown(tmp_path, text + "value = '1e8 * seconds.total.max'")
    assert lines[3].split()[:2] == ["io", "10⁹"]
    assert lines[5].split() == ["sieve", "1.200", "1", "2.000"]


def test_a_ratio_has_no_unit_of_what_it_is_made_of(tmp_path: Path) -> None:
    text = "rows = 'ranks'\ncolumns = 'io'\nwhere = 'ranks < 4'\nbase = {io = 'sieve'}\n"
    for name, more, unit, row in (
        ("a", "unit = 's'\n", "s", ["1", "12.00", "1", "0.9231"]),
        ("b", "unit = 'B'\nvalue = '6 / ranks'\n", "B", ["1", "6.000", "1", "1"]),
        ("c", "unit = '%'\ncell = '100 * value / base'\n", "s", ["1", "12.00", "100", "108.3"]),
    ):
        lines = shown(tmp_path / name, text + more)
        assert lines[3].split()[:2] == ["ranks", unit] and lines[5].split() == row
        assert lines[3].count("%") == 2 * (name == "c")


def test_a_gap_and_the_best(tmp_path: Path) -> None:
    text = (
        "rows = 'run'\ncolumns = 'ranks'\nbest = 'min'\nwhere = 'ranks < 4'\n"
        "[[runs]]\nname = 'a'\n[[runs]]\nname = 'b'\nconstraints = ['ranks == 1']\n"
    )
    expected = """
        T; in brackets: io
                   ranks 1        ranks 2
        run              s              s
        ─────────────────────────────────
        a    12.00 (sieve)  6.000 (sieve)
        b    12.00 (sieve)              –
    """
    assert shown(tmp_path, text) == told(expected, "  – means that the study has no such point")


def test_a_narrow_terminal_has_columns_below_each_other(tmp_path: Path) -> None:
    lines = shown(tmp_path, "rows = 'io'\ncolumns = 'ranks'\nunit = 's'", width=24)
    assert max(map(cell_len, lines[:-1])) <= 24
    assert [line.split() for line in lines if "sieve" in line] == [
        ["sieve", "12.00", "6.000"],
        ["sieve", "not", "run"],
    ]


def test_long_heads_break_between_words_and_what_moves_a_cursor_is_gone(tmp_path: Path) -> None:
    title = "seconds that this took \\u001b[2J in all"
    columns = f'columns = [{{title = "{title}", value = "seconds.total.max", unit = "s"}}]'
    lines = shown(tmp_path, f"rows = 'io'\nwhere = 'ranks == 1'\nunit = 's'\n{columns}\n")
    assert "\x1b" not in "".join(lines) and max(map(cell_len, lines)) < 25
    words = " ".join(line[5:].strip() for line in lines[1:-3])
    assert words == "seconds that this took \N{REPLACEMENT CHARACTER}[2J in all s"


@pytest.mark.parametrize(
    ("value", "text"), [(262148.0, "262148"), (0.5, "0.5000"), (20170.6, "20171"), (None, "–"), (0.0, "0")]
)
def test_numbers_that_stand_alone(value: float | None, text: str) -> None:
    assert number(value) == text
