"""Expressions of studies: what they come to, and that nothing but arithmetic gets through."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewise.base.errors import UsageError
from tilewise.lab.study.expression import Expression, Missing, scope_of

NAMES = {"ranks": 4, "cores": 2, "algorithm": "cannon", "a.b": 7, "list": [1, 2, 3], "none": []}


def value(text: str) -> object:
    return Expression(text, "here").value(scope_of(NAMES, "here"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1 + 2 * 3", 7),
        ("ranks <= cores", False),
        ("ranks <= 4 * cores", True),
        ("algorithm != 'cannon' or square(ranks)", True),
        ("algorithm == 'cannon' and not square(ranks + 1)", True),
        ("1 < ranks < 5", True),
        ("1 < ranks < 4", False),
        ("a.b - 1", 6),
        ("-list", [-1, -2, -3]),
        ("list * 2 + 1", [3, 5, 7]),
        ("list > 1", [False, True, True]),
        ("any(list > 2)", True),
        ("all(list > 0) and not all(list > 1)", True),
        ("list[1]", 2),
        ("max(list) - min(list)", 2),
        ("max(ranks, cores)", 4),
        ("mean(list) + median(list) + sum(list) + count(list)", 13.0),
        ("'x' if ranks in [1, 2] else 'y'", "y"),
        ("algorithm not in ('summa', 'local')", True),
        ("2 ** 10", 1024),
        ("7 // 2 % 2", 1),
        ("log2(8) + sqrt(9) + abs(-1) + round(1.4) + ceil(0.1) + floor(1.9)", 10.0),
    ],
)
def test_values(text: str, found: object) -> None:
    assert value(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "().__class__",
        "a.__class__",
        "_x",
        "open('/etc/passwd')",
        "eval('1')",
        "[x for x in list]",
        "lambda: 1",
        "f'{ranks}'",
        "(x := 1)",
        "b'abc'",
        "1j",
        "None",
        "...",
        "a.b()",
        "max(*list)",
        "max(**list)",
        "ranks is cores",
        "~ranks",
        "ranks & 1",
        "ranks @ 1",
        "{1: 2}",
        "list[0:2]",
        "x = 1",
        "",
        "   ",
        "1 +",
        "\0",
        "(" * 5000,
    ],
)
def test_nothing_else_gets_through(text: str) -> None:
    with pytest.raises(UsageError, match="here"):
        Expression(text, "here")


@pytest.mark.parametrize(
    "text",
    [
        "9 ** 9 ** 9",
        "(2 ** 1000) ** 1000",
        "'a' * 3",
        "'%9999d' % 3",
        "'a' + 'b'",
        "'a' < 1",
        "list[9]",
        "list + [1]",
    ],
)
def test_what_cannot_be_computed_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="here.*cannot be computed"):
        value(text)


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'rnks'; expected one of .*ranks"):
        value("rnks > 1")
    with pytest.raises(UsageError, match=r"no function 'maximum'; expected one of .*max"):
        value("maximum(1)")


def test_nothing_to_look_at_is_missing_not_true() -> None:
    for text in ("all(none)", "any(none)", "max(none)", "1 / (ranks - 4)"):
        with pytest.raises(Missing):
            value(text)


def test_a_list_is_no_yes_or_no() -> None:
    with pytest.raises(UsageError, match="all"):
        Expression("list > 1", "here").holds(scope_of(NAMES, "here"))


@given(st.text(max_size=40))
def test_any_text_is_an_expression_or_one_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError, Missing):
        Expression(text, "here").value(scope_of(NAMES, "here"))
