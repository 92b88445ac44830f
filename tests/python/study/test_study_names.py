"""Names of expressions that claims share, and axes that go together in one run but not in another."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies import Runner, checked, run, study
from tilewise.base.errors import UsageError
from tilewise.lab.study import evaluation
from tilewise.lab.study.claims import Verdict, spelled

TEXT = """command = "multiply"
launches = 2
axes.ranks = [1, 2, 4]
limits = ["ranks <= 2"]
[[tables]]
name = "t"
rows = "ranks"
"""
CLAIM = "[[claims]]\ntext = 'c'\n"


def verdicts(tmp_path: Path, text: str) -> list[Verdict]:
    run(tmp_path, text, Runner())
    return evaluation.load(str(tmp_path)).verdicts


def test_claims_share_names(tmp_path: Path) -> None:
    """Of the pretended job: 12 s over its ranks; four are out of reach."""
    text = (
        TEXT
        + "[names]\nmost = \"max(axis('ranks'))\"\nseconds = \"cell('t', most)\"\nfour = \"cell('t', 4)\"\n"
        f"{CLAIM}figure = 'seconds * most'\nholds = 'figure > 10 and most <= cores'\n"
        f"{CLAIM}holds = 'most < 2'\n{CLAIM}holds = 'four < 12'\n"
        f"{CLAIM}needs = 'most > 2'\nholds = 'most > 1'\n"
    )
    checked(text)
    first, second, third, fourth = verdicts(tmp_path, text)
    assert (first.verdict, first.figure, second.verdict) == ("holds", 12.0, "fails")
    assert third.verdict == "untestable" and third.reason.startswith(
        "table t: not run: needs ranks at most 2, not 4"
    )
    assert fourth.reason == "needs points with ranks above 2; the largest here is 2"


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
    text = f"{TEXT}[names]\n{names}\n{CLAIM}holds = '1 < 2'\n"
    with pytest.raises(UsageError, match=said):
        checked(text)


def test_a_claim_with_an_unknown_name_says_which_there_are() -> None:
    text = f"{TEXT}[names]\nmost = '1'\n{CLAIM}holds = 'least < 2'\n"
    with pytest.raises(UsageError, match="there is no name 'least'; expected one of cores, most, functions"):
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
