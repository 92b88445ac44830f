"""The comparison's table: base times beside each ratio, largest changes first, the rest on request."""

from __future__ import annotations

import msgspec
import pytest
from measurements import EVIL, ping, wrap
from shown import printed
from tilewise.lab.measurement.compare import FASTER, SAME, SLOWER, Comparison, Difference, LineChange, compare
from tilewise.lab.report.measure import changes, comparison_tables


def change(key: str, word: str, ratio: float, **fields: object) -> LineChange:
    told = {
        "kind": "ping",
        "series": "roundtrip",
        "low": ratio * 0.9,
        "high": ratio * 1.1,
        "q": 0.01,
        "shared": None,
    }
    return msgspec.convert(
        {
            "key": key,
            "word": word,
            "before": 1e-6,
            "after": ratio * 1e-6,
            "ratio": ratio,
            "launches": (3, 3),
            **told,
            **fields,
        },
        LineChange,
    )


def comparison(found: list[LineChange], **fields: object) -> Comparison:
    told = {
        "before": {"host": "anode", "time": "yesterday"}, "after": {"host": "anode", "time": "today"},
        "changes": found,
        "only_before": [], "only_after": [], "skipped": [], "environment": [], "notes": [], "drift": {},
        "counts": {word: sum(one.word == word for one in found) for word in (FASTER, SLOWER, SAME)},
    }  # fmt: skip
    return Comparison(**{**told, **fields})  # type: ignore[arg-type]


def test_the_largest_change_comes_first() -> None:
    found = [change("a", SAME, 1.01), change("b", SLOWER, 1.2), change("c", FASTER, 0.25)]
    table = changes(comparison(found))
    assert table is not None
    assert [row[0].text for row in table.rows] == ["c", "b", "a"]
    assert [cell.text for cell in table.rows[0][1:]] == ["1.00 µs", "250 ns", "0.250×", "0.225–0.275", FASTER]
    assert [row[5].tone for row in table.rows] == ["good", "bad", "faint"]


def test_the_screen_names_what_differs_only() -> None:
    found = [change("quiet", SAME, 1.0), change("loud", SLOWER, 1.5)]
    text = printed(comparison_tables(comparison(found)))
    assert "2 lines in both: 0 faster, 1 slower, 1 not distinguishable" in text
    assert "loud" in text and "quiet" not in text
    assert "quiet" in printed(comparison_tables(comparison(found), verbose=True))
    assert max(map(len, text.splitlines())) <= 80


def test_what_else_is_different_is_said() -> None:
    text = printed(
        comparison_tables(
            comparison(
                [],
                environment=[Difference(name="mpi_library", before="MPICH", after=None)],
                notes=["one of them was disturbed"],
                only_before=[f"line{number}" for number in range(20)],
                skipped=[("k", "not run before"), ("l", "not run before")],
            )
        )
    )
    assert "mpi_library   MPICH   unknown" in text and "one of them was disturbed" in text
    assert "and 17 more" in text and "not compared: 2 lines: not run before" in text


def test_a_long_list_is_cut_and_says_so() -> None:
    text = printed(comparison_tables(comparison([change(f"k{number}", SLOWER, 2.0) for number in range(40)])))
    assert "10 more lines differ; -v shows them" in text


def test_labels_stand_under_the_table() -> None:
    table = changes(comparison([change("k", SLOWER, 2.0, labels_after=["busy"])]))
    assert table is not None and table.notes == ["* busy"] and table.rows[0][5].mark == "*"


def test_hostile_words_and_numbers() -> None:
    nan = float("nan")
    found = [change(EVIL, SLOWER, nan, low=None, high=None), change(EVIL, EVIL, 0.0)]
    for verbose in (False, True):
        text = printed(comparison_tables(comparison(found, notes=[EVIL], before={"host": EVIL}), verbose))
        assert "\x1b" not in text and "nan" not in text


@pytest.mark.parametrize("verbose", [False, True])
def test_the_real_comparison_is_shown(verbose: bool) -> None:
    before, after = wrap(ping()), wrap(ping())
    text = printed(comparison_tables(compare(before, after), verbose))
    assert "23 lines in both" in text
    assert ("1.00×" in text or "0.99" in text or "1.01" in text) or not verbose
