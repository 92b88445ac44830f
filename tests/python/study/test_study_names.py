"""Names of expressions that claims share, and the words for what claims and points need."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from studies import Runner, checked, points, run, study
from tilewise.base.errors import UsageError
from tilewise.cli.study_run import flags_of
from tilewise.lab.study import evaluation, shipped
from tilewise.lab.study.checks import words_of
from tilewise.lab.study.claims import Verdict, spelled
from tilewise.lab.study.expression import Expression, scope_of
from tilewise.lab.study.points import expand, unmet
from tilewise.lab.study.schema import SCALES, StudyClaim
from tilewise.lab.study.study import read

TEXT = """command = "multiply"
launches = 2
axes.ranks = [1, 2, 4]
limits = ["ranks <= 2"]
[[tables]]
name = "t"
rows = "ranks"
"""
CLAIM = "[[claims]]\ntext = 'c'\nwords = 'w'\n"


def verdicts(tmp_path: Path, text: str) -> list[Verdict]:
    run(tmp_path, text, Runner())
    return evaluation.load(str(tmp_path)).verdicts


def test_claims_share_names(tmp_path: Path) -> None:
    """Of the pretended job: 12 s over its ranks; four are out of reach."""
    text = (
        TEXT
        + "[names]\nmost = \"max(axis('ranks'))\"\nseconds = \"cell('t', most)\"\nfour = \"cell('t', 4)\"\n"
        f"{CLAIM}figure = 'seconds * most'\nholds = 'figure > 10 and most <= cores'\n"
        f"{CLAIM}figure = 'most'\nholds = 'figure < 2'\n{CLAIM}figure = 'four'\nholds = 'figure < 12'\n"
        f"{CLAIM}needs = {{ holds = 'most > 2', words = 'ranks above 2, not {{most}}' }}\n"
        "figure = 'most'\nholds = 'figure > 1'\n"
    )
    checked(text)
    first, second, third, fourth = verdicts(tmp_path, text)
    assert (first.verdict, first.figure, second.verdict) == ("holds", 12.0, "fails")
    assert third.verdict == "untestable" and third.reason.startswith(
        "table t: not run: needs ranks <= 2; here ranks is 4"
    )
    assert fourth.reason == "needs ranks above 2, not 2"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("a = 'b'\nb = '1'", "names a: there is no name 'b'; expected one of cores, functions"),
        ("a = 'a'", "names a: there is no name 'a'"),
        ("a = \"max(axis('rank'))\"", "names a: no run has an axis 'rank'; expected one of ranks, run"),
        ("a = '1 +'", "names a: '1 \\+' is not an expression"),
        ("cores = '1'", "'cores' has a meaning already"),
        ("max = '1'", "'max' has a meaning already"),
        ("at = '1'", "'at' has a meaning already"),
        ("'a-b' = '1'", "names a-b.*: a name has letters, digits and '_'"),
        ("if = '1'", "names if.*: a name has letters, digits and '_'"),
        ("a = 1", "names.*a text"),
    ],
)
def test_names_are_checked(names: str, said: str) -> None:
    text = f"{TEXT}[names]\n{names}\n{CLAIM}figure = '1'\nholds = 'figure < 2'\n"
    with pytest.raises(UsageError, match=said):
        checked(text)


def test_a_claim_with_an_unknown_name_says_which_there_are() -> None:
    text = f"{TEXT}[names]\nmost = '1'\n{CLAIM}holds = 'least < 2'\n"
    with pytest.raises(
        UsageError, match="there is no name 'least'; expected one of cores, most, figure, functions"
    ):
        checked(text)


@pytest.mark.parametrize("names", ["a = 'a'", "a = 'b'\nb = 'a'", "a = '1 +'"])
def test_results_that_nobody_checked_do_not_go_round(tmp_path: Path, names: str) -> None:
    text = f"{TEXT}[names]\n{names}\n{CLAIM}figure = 'a'\nholds = 'a < 2'\n"
    (said,) = verdicts(tmp_path, text)
    assert said.verdict == "untestable" and ("asks for" in said.reason or "1 +" in said.reason)
    assert spelled(study(text).file, "a")[0] == "figure = a"


def test_what_names_stand_for() -> None:
    file = study(f"{TEXT}[names]\na = '1'\nb = 'a + 1'\nc = '3'\n").file
    assert spelled(file, "b < max([2, 4])") == ["figure = b < max([2, 4])", "b = a + 1", "a = 1"]
    assert spelled(file, "") == []


def test_a_base_takes_along_what_goes_together_in_its_own_run(tmp_path: Path) -> None:
    """In `zipped` the way says the io; in `crossed` each way has both, and is compared with the same."""
    text = """command = "multiply"
[[runs]]
name = "zipped"
axes.ranks = [1, 2]
axes.way = ["one", "other"]
axes.io = ["sieve", "root"]
zip = [["way", "io"]]
[[runs]]
name = "crossed"
axes.ranks = [2]
axes.way = ["one", "other"]
axes.io = ["sieve", "root"]
words = ["{way}"]
[[tables]]
name = "zipped"
runs = ["zipped"]
rows = "ranks"
columns = "way"
base = { way = "one" }
cell = "value / base"
[[tables]]
name = "crossed"
runs = ["crossed"]
rows = "io"
columns = "way"
base = { way = "one" }
cell = "value / base"
[[tables]]
name = "between"
runs = ["crossed"]
rows = "io"
columns = "way"
base = { run = "zipped", way = "one" }
cell = "value / base"
"""
    checked(text)
    run(tmp_path, text, Runner())
    zipped, crossed, between = evaluation.load(str(tmp_path)).tables
    assert [[cell.value for cell in line] for line in zipped.cells] == [[1, 13 / 12], [1, 7 / 6]]
    assert [[cell.value for cell in line] for line in crossed.cells] == [[1, 1], [1, 1]]
    assert [[cell.value for cell in line] for line in between.cells] == [[1, 1], [7 / 6, 7 / 6]]


HERE = {"cores": 2, "gpus": 0, "hosts": 1, "memory": 8 << 30, "disk": 100, "input_bytes": 1 << 30}
HERE |= {"ranks": 8, "threads": 2, "most": 4}


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("cores > 3", "4 cores; this machine has 2"),
        ("ranks * threads <= 4 * cores - cores", "6 cores; this machine has 2"),
        ("threads == 1 or ranks <= cores", "8 cores; this machine has 2"),
        ("cores ** 2 > 100", "11 cores; this machine has 2"),
        ("gpus >= 1", "1 device; there is no device here"),
        ("hosts >= ranks", "8 hosts; there is 1 here"),
        ("16 * input_bytes <= memory", "16.0 GiB of free memory; this machine has 8.00 GiB"),
        (
            "memory > 8 * input_bytes",
            f"{(8 << 30) + 1} bytes of free memory; this machine has {8 << 30} bytes",
        ),
        ("input_bytes <= disk", "1.00 GiB of free disk space; this machine has 100 bytes"),
        ("cores <= 1", "cores <= 1; here cores is 2"),
        ("min(cores, most) >= 16", "min(cores, most) >= 16; here cores is 2 and most is 4"),
        ("1 > 2", "1 > 2"),
    ],
)
def test_what_is_missing(condition: str, words: str) -> None:
    made, scope = Expression(condition, "here"), scope_of(HERE, "here")
    assert not made.holds(scope) and unmet(made, "", scope) == f"needs {words}"


@pytest.mark.parametrize("cores", [2, 3, 5, 6, 7, 12])
@pytest.mark.parametrize("condition", ["ranks <= 2 * cores", "3 * cores > ranks", "ranks < cores / 2"])
def test_what_it_needs_is_enough_and_one_less_is_not(condition: str, cores: int) -> None:
    made, scope = Expression(condition, "here"), {"ranks": 50, "cores": cores}
    (wanted,) = map(int, re.findall(r"needs (\d+) cores", unmet(made, "", scope_of(scope, "here"))))
    for count, holds in ((wanted, True), (wanted - 1, False)):
        assert made.holds(scope_of({**scope, "cores": count}, "here")) == holds


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (StudyClaim(text="", holds="figure > 2"), "above 2"),
        (StudyClaim(text="", holds="figure >= 0.5 and figure <= 1.6"), "at least 0.5 and at most 1.6"),
        (StudyClaim(text="", holds="figure < -2 or figure > 2"), "below -2 or above 2"),
        (StudyClaim(text="", holds="abs(figure - 5) < 1", words="within ±1 of 5"), "within ±1 of 5"),
        (StudyClaim(text="", holds="figure > 2 * cores"), ""),
    ],
)
def test_where_a_figure_must_be(claim: StudyClaim, words: str) -> None:
    assert words_of(claim) == words


def test_a_study_says_what_only_it_can_say() -> None:
    head = 'command = "multiply"\nwords = ["a", "b"]\naxes.ranks = [1, 9]\n'
    made = points(head + 'limits = [{ holds = "ranks < 9", words = "fewer ranks than {ranks}" }]')
    assert [point.reason for point in made] == ["", "needs fewer ranks than 9"]
    with pytest.raises(UsageError, match="a constraint asks for 'rank'"):
        points(head + 'limits = [{ holds = "ranks < 9", words = "fewer than {rank}" }]')
    with pytest.raises(UsageError, match="claims 1, needs: there is no name 'least'"):
        checked(
            f"{TEXT}[[claims]]\ntext='c'\nholds='1 < 2'\nneeds = {{ holds = '1 < 2', words = '{{least}}' }}"
        )
    with pytest.raises(UsageError, match="claims 1: holds = '1 < 2', line .* lacks words"):
        checked(f"{TEXT}[[claims]]\ntext = 'c'\nfigure = '1'\nholds = '1 < 2'")
    with pytest.raises(UsageError, match="claims 1 needs a figure to decide it by"):
        checked(f"{TEXT}[[claims]]\ntext = 'c'\nholds = '1 < 2'")


@pytest.mark.parametrize(("name", "scale"), [*itertools.product(shipped.names(), SCALES)])
def test_shipped_studies_are_whole_and_show_no_reader_an_expression(name: str, scale: str) -> None:
    found = read(shipped.path_of(name), scale)
    for cores, memory in ((1, 1 << 20), (2, 8 << 30), (64, 1 << 40)):
        machine = {"cores": cores, "cpus": cores, "memory": memory, "disk": memory}
        planned = expand(found, machine, flags_of)
        assert cores == 1 or any(not point.reason for point in planned)
        for point in planned:
            assert not re.search(r"[<>=\[\]{}'\"*_]", point.reason), point.reason
    evaluation.check(found, planned)
