"""Tables of a study as lines: units and bases said once, decimal points below each other, no line cut."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from rich.cells import cell_len
from studies import Runner, run
from tilewise.report.study_figures import number
from tilewise.report.study_terminal import lines
from tilewise.study import evaluated

# 12 s / ranks, and through the root 1 s more; `input` is a quarter of it.
AXES = (
    'command = "multiply"\naxes.ranks = [1, 2, 4]\naxes.io = ["sieve", "root"]\nlimits = ["ranks < 4"]\n'
    "[[tables]]\nname = 't'\ntitle = 'T'\n"
)
AWAY = "  not run: ranks < 4 does not hold here: 4 against 4"


def shown(tmp_path: Path, text: str, factor: float = 1.0, width: int = 0) -> list[str]:
    run(tmp_path, AXES + text, Runner(factors=[factor]))
    found = evaluated.load(str(tmp_path))
    return list(lines(found.tables[0], found.results.study.file.tables[0], width))


def told(text: str, *notes: str) -> list[str]:
    return [*textwrap.dedent(text).strip().splitlines(), *notes]


def test_the_axis_and_the_unit_are_said_once(tmp_path: Path) -> None:
    expected = """
        T; by io, in µs
        ranks    sieve     root
        ───────────────────────
        1       1200     1300
        2      600.0    700.0
        4      not run  not run
    """
    assert shown(tmp_path, "rows = 'ranks'\ncolumns = 'io'\nunit = 's'", 1e-4) == told(expected, AWAY)


def test_figures_with_units_of_their_own(tmp_path: Path) -> None:
    text = (
        "rows = ['io', 'ranks']\nwhere = 'ranks < 4'\nunit = 's'\naggregate = 'max'\n"
        "columns = [{title = 'a', value = 'seconds.total.max'}, {title = 'b', value = 'ranks', unit = 'P'}]\n"
    )
    expected = """
        T (max)
        io     ranks   a [s]  b [P]
        ───────────────────────────
        sieve  1      12.00       1
        sieve  2      6.000       2
        root   1      13.00       1
        root   2      7.000       2
    """
    assert shown(tmp_path, text) == told(expected)


BASES = {
    "of the table": (
        "rows = 'ranks'\ncolumns = 'io'\nwhere = \"io == 'sieve'\"\nbase = {ranks = 1}",
        """
        T; by io; compared with ranks = 1 (12.00 s)
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
        T; by ranks, in ×; compared with ranks = 1
        io     base [s]  1      2        4
        ──────────────────────────────────
        sieve     12.00  1  2.000  not run
        root      13.00  1  1.857  not run
        """,
    ),
    "of a column": (
        "rows = 'ranks'\ncolumns = 'io'\nbase = {ranks = 1}",
        """
        T; by io; compared with ranks = 1
        ranks        sieve     root
        ───────────────────────────
        base [s]  12.00      13.00
        1             1      1.000
        2             2      1.857
        4          not run  not run
        """,
    ),
}


@pytest.mark.parametrize("which", BASES)
def test_the_base_stands_once(tmp_path: Path, which: str) -> None:
    text, expected = BASES[which]
    assert shown(tmp_path, text) == told(expected, AWAY)


def test_bases_that_differ_stand_by_their_figures(tmp_path: Path) -> None:
    text = (
        "rows = 'ranks'\ncolumns = ['io', 'threads']\nbase = {io = 'sieve'}\nwhere = 'ranks < 4'\n"
        "value = 'seconds.total.max + seconds.input.max * threads'\n"
        "[[runs]]\nname = 'a'\naxes.threads = [1, 2]\n"
    )
    found = shown(tmp_path, text)
    assert found[0] == "T; by io, threads; compared with io = sieve"
    assert "0.9231 (base 15.00)" in found[3] and "0.9231 (base 18.00)" in found[3]


def test_large_bases_are_counted_in_thousands(tmp_path: Path) -> None:
    text = "rows = 'io'\ncolumns = 'ranks'\nwhere = 'ranks < 4'\nbase = {ranks = 1}\n"
    found = shown(tmp_path, text + "value = '1e8 * seconds.total.max'")
    assert (found[1].split(), found[2].split()) == (["base"], ["io", "[10⁹]", "1", "2"])
    assert found[4].split() == ["sieve", "1.200", "1", "2.000"]


def test_a_ratio_has_no_unit_of_what_it_is_made_of(tmp_path: Path) -> None:
    text = "rows = 'ranks'\ncolumns = 'io'\nwhere = 'ranks < 4'\nbase = {io = 'sieve'}\n"
    expected = """
        T; by io; compared with io = sieve
        ranks  base [s]  sieve    root
        ──────────────────────────────
        1        12.00       1  0.9231
        2        6.000       1  0.8571
    """
    assert shown(tmp_path / "a", text + "unit = 's'\n") == told(expected)
    bytes_of = shown(tmp_path / "b", text + "unit = 'B'\nvalue = '6 / ranks'\n")
    assert bytes_of[1].split() == ["ranks", "base", "[B]", "sieve", "root"]
    share = shown(tmp_path / "c", text + "unit = '%'\ncell = '100 * value / base'\n")
    assert "in %" in share[0] and share[3].split() == ["1", "12.00", "100", "108.3"]


def test_a_gap_and_the_best(tmp_path: Path) -> None:
    text = (
        "rows = 'run'\ncolumns = 'ranks'\nbest = 'min'\nwhere = 'ranks < 4'\n"
        "[[runs]]\nname = 'a'\n[[runs]]\nname = 'b'\nconstraints = ['ranks == 1']\n"
    )
    expected = """
        T; by ranks; in brackets: io
        run           1          2
        ──────────────────────────
        a    12 (sieve)  6 (sieve)
        b    12 (sieve)          –
    """
    assert shown(tmp_path, text) == told(expected, "  – is where the study has no such point")


def test_a_narrow_terminal_has_columns_below_each_other(tmp_path: Path) -> None:
    expected = """
        T; by ranks, in s
        io         1      2
        ───────────────────
        sieve  12.00  6.000
        root   13.00  7.000
        io           4
        ──────────────
        sieve  not run
        root   not run
    """
    assert shown(tmp_path, "rows = 'io'\ncolumns = 'ranks'\nunit = 's'", width=22) == told(expected, AWAY)


def test_long_heads_break_between_words_and_what_moves_a_cursor_is_gone(tmp_path: Path) -> None:
    title = "seconds that this took \\u001b[2J in all"
    columns = f'columns = [{{title = "{title}", value = "seconds.total.max", unit = "s"}}]'
    found = shown(tmp_path, f"rows = 'io'\nwhere = 'ranks == 1'\nunit = 's'\n{columns}\n")
    assert "\x1b" not in "".join(found) and max(map(cell_len, found)) < 25
    words = " ".join(line[5:].strip() for line in found[1:-3])
    assert words == "seconds that this took \N{REPLACEMENT CHARACTER}[2J in all"


@pytest.mark.parametrize(
    ("value", "text"), [(262148.0, "262148"), (0.5, "0.5000"), (20170.6, "20171"), (None, "–"), (0.0, "0")]
)
def test_numbers_that_stand_alone(value: float | None, text: str) -> None:
    assert number(value) == text
