"""Conditions in words: what a point or a claim lacks here, and what no reader is shown."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
import studies
from tilewise.cli.flags import flags_of
from tilewise.lab.study import shipped
from tilewise.lab.study.expression import Expression, scope_of
from tilewise.lab.study.points import expand
from tilewise.lab.study.schema import SCALES
from tilewise.lab.study.study import read
from tilewise.lab.study.wording import bounds, lack

AXES: dict[str, list[int]] = {"size": [128, 512], "ranks": [1, 2, 4]}
NAMES: dict[str, Any] = {
    "cores": 2,
    "gpus": 0,
    "hosts": 1,
    "memory": 8 << 30,
    "disk": 100,
    "ranks": 8,
    "threads": 2,
    "size": 8192,
    "kernel": "plain",
    "input_bytes": 1 << 30,
    "largest": 512,
    "smallest": 128,
    "most": 4,
    "odd": 1,
    "figure": 1.0,
}
EXPRESSION = re.compile(r"[<>=\[\]{}'\"*_]|\b(min|max|axis|value|at|cell)\(|cannot be computed")


def read_(text: str) -> Expression:
    return Expression(text, "here", {"axis": lambda name, **labels: AXES[name]})


SHARED = {
    "largest": read_("max(axis('size', run='job'))"),
    "smallest": read_("min(axis('size'))"),
    "most": read_("max(axis('ranks'))"),
    "odd": read_("1"),
}


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("cores >= 3", "3 cores; this machine has 2"),
        ("cores > 3", "4 cores; this machine has 2"),
        ("cores <= 1", "at most 1 core; this machine has 2"),
        ("cores < 2", "at most 1 core; this machine has 2"),
        ("ranks <= 2 * cores", "4 cores; this machine has 2"),
        ("ranks * threads <= 4 * cores - cores", "6 cores; this machine has 2"),
        ("3 <= cores and ranks <= 1", "3 cores; this machine has 2"),
        ("kernel == 'fast' or ranks <= cores", "8 cores; this machine has 2"),
        ("cores ** 2 > 100", "more cores"),
        ("gpus >= 1", "1 device; there is no device here"),
        ("hosts >= ranks", "8 hosts; there is 1 here"),
        ("16 * input_bytes <= memory", "16.0 GiB of free memory; this machine has 8.00 GiB"),
        ("memory > 8 * input_bytes", f"{8 << 30} bytes of free memory; this machine has {8 << 30} bytes"),
        ("input_bytes <= disk", "1.00 GiB of free disk space; this machine has 100 bytes"),
        ("input_bytes <= 512 * 1024", "inputs of at most 512 KiB, not 1.00 GiB"),
        ("size <= 2048", "size at most 2048, not 8192"),
        ("size < 64 * ranks", "size below 512 with ranks 8, not 8192"),
        ("kernel == 'fast'", "kernel fast, not plain"),
        ("kernel != 'plain'", "kernel other than plain"),
        ("kernel == 'fast' or size <= 4096", "kernel fast, not plain, or size at most 4096, not 8192"),
        ("ranks in [1, 4, 16]", "ranks 1, 4 or 16, not 8"),
        ("square(ranks)", "ranks a square, not 8"),
        ("1 < ranks < 5", "ranks below 5, not 8"),
        ("largest >= 4096", "points with size 4096 or more; the largest here is 512"),
        ("smallest <= 64", "points with size 64 or less; the smallest here is 128"),
        ("most > smallest", "points with ranks above 128; the largest here is 4"),
        ("min(cores, most) >= 16", "16 cores; this machine has 2"),
        ("min(16 * cores, most) >= 16", "points with ranks 16 or more; the largest here is 4"),
        ("16 <= min(cores, most)", "16 cores; this machine has 2"),
        ("cores >= max(3, most)", "4 cores; this machine has 2"),
        ("size % 3 == 0", "something other than size 8192"),
        ("not ranks", "something other than ranks 8"),
        ("1 > 2", "what the study rules out"),
    ],
)
def test_what_is_missing(condition: str, words: str) -> None:
    made, scope = read_(condition), scope_of(NAMES, "here")
    assert not made.holds(scope)
    assert lack(made, scope, SHARED) == f"needs {words}"


@pytest.mark.parametrize("cores", [2, 3, 5, 6, 7, 12])
@pytest.mark.parametrize("condition", ["ranks <= 2 * cores", "3 * cores > ranks", "ranks < cores / 2"])
def test_what_it_needs_is_enough_and_one_less_is_not(condition: str, cores: int) -> None:
    made, scope = read_(condition), scope_of({**NAMES, "ranks": 50, "cores": cores}, "here")
    (wanted,) = map(int, re.findall(r"needs (\d+) cores", lack(made, scope)))
    for count, holds in ((wanted, True), (wanted - 1, False)):
        assert made.holds(scope_of({**NAMES, "ranks": 50, "cores": count}, "here")) == holds


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("figure > 2", "above 2"),
        ("figure <= 64 / 40", "at most 1.6"),
        ("figure == 5", "exactly 5"),
        ("figure > 0.9 * 64 and figure < 1.1 * 64", "above 57.6 and below 70.4"),
        ("abs(figure) < 10", "within ±10"),
        ("abs(figure - 2.58) < 0.1", "within ±0.1 of 2.58"),
        ("figure > largest / (2 * most)", "above 64"),
        ("all(axis('size') > 1.5)", "all above 1.5"),
        ("largest", "as computed"),
        ("figure > 2 and most > 1", "as computed"),
    ],
)
def test_where_a_figure_must_be(condition: str, words: str) -> None:
    assert bounds(read_(condition), scope_of(NAMES, "here")) == words


def test_a_study_may_say_it_in_its_own_words() -> None:
    head = 'command = "multiply"\nwords = ["a", "b"]\naxes.ranks = [1, 9]\n'
    made = studies.points(head + 'limits = [{ holds = "ranks < 9", words = "a quieter machine" }]')
    assert [point.reason for point in made] == ["", "needs a quieter machine"]


@pytest.mark.parametrize(("name", "scale"), [*itertools.product(shipped.names(), SCALES)])
def test_no_reader_of_a_shipped_study_is_shown_an_expression(name: str, scale: str) -> None:
    study = read(shipped.path_of(name), scale)
    for cores, memory in ((1, 1 << 20), (2, 8 << 30), (64, 1 << 40)):
        machine = {"cores": cores, "cpus": cores, "memory": memory, "disk": memory}
        for point in expand(study, machine, flags_of):
            assert not EXPRESSION.search(point.reason), point.reason
            assert point.reason.count("needs ") <= 1
