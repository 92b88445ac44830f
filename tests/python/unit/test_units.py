"""Sizes, shapes and numbers as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewise.base.errors import UsageError
from tilewise.base.units import (
    bytes_text,
    listing,
    parse_pair,
    parse_shape,
    parse_size,
    rate_text,
    seconds_text,
    share_text,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("17", 17),
        ("17b", 17),
        ("128K", 128_000),
        ("128KB", 128_000),
        ("128KiB", 131_072),
        ("128kib", 131_072),
        ("1.5GiB", 3 << 29),
        ("2 TB", 2 * 10**12),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text, "--memory") == size


@pytest.mark.parametrize("text", ["", "K", "-1", "1i", "1KiBB", "1e9", "1,5G", "9999999999999999999", "1 2"])
def test_wrong_sizes_name_the_flag(text: str) -> None:
    with pytest.raises(UsageError, match="--memory"):
        parse_size(text, "--memory")


@given(st.integers(0, 2**50), st.sampled_from(["", "K", "M"]))
def test_binary_sizes_are_never_smaller_than_decimal_ones(count: int, prefix: str) -> None:
    if not prefix:
        assert parse_size(str(count), "x") == count
    elif count < 2**30:
        assert parse_size(f"{count}{prefix}iB", "x") >= parse_size(f"{count}{prefix}", "x")


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["x", "X", "×", " x ", ","]))
def test_shapes(rows: int, columns: int, joint: str) -> None:
    assert parse_shape(f"{rows}{joint}{columns}", "--shape") == (rows, columns)


@pytest.mark.parametrize("text", ["", "4", "4x", "x4", "4x4x4", "-4x4", "4.0x4", "99999999999x99999999999"])
def test_wrong_shapes_name_the_flag(text: str) -> None:
    with pytest.raises(UsageError, match="--shape"):
        parse_shape(text, "--shape")


def test_pairs_show_an_example() -> None:
    with pytest.raises(UsageError, match=r"--grid .*2x2"):
        parse_pair("2by2", "--grid", "2x2")


@given(st.floats(0, 1e18))
def test_numbers_keep_about_three_figures(value: float) -> None:
    for text in (bytes_text(value), rate_text(value, "B/s")):
        assert len(text.split()[0]) <= 6 and text.split()[0]
    assert len(seconds_text(value % 1e6)) <= 9


def test_listings() -> None:
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "c"]) == "a, b and c"
    assert listing(("a", "b"), "or") == "a or b"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.874, "87 %"),
        (0.999, "99.9 %"),
        (0.99998, "99.998 %"),
        (0.0004, "0.04 %"),
    ],
)
def test_shares_stay_apart_from_none_and_all(share: float, text: str) -> None:
    assert share_text(share) == text
