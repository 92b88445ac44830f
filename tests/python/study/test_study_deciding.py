"""Claims with intervals: decided, undecided, and repeated until they are decided, on pretended launches."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest
import studies
from studies import FLAGS, HERE, MACHINE, Runner, run, study
from tilewise.cli.study import show_results
from tilewise.lab.report.study_tables import figure_text
from tilewise.lab.study import evaluation
from tilewise.lab.study import run as running
from tilewise.lab.study.claims import FAILS, HOLDS, UNDECIDED, Verdict
from tilewise.lab.study.points import expand
from tilewise.lab.study.run import ahead, until_decided
from tilewise.lab.study.store import Store
from tilewise.lab.study.work import Work

AXES = """command = "multiply"
axes.ranks = [1, 2, 4]
launches = {launches}
[[tables]]
name = "speedup"
rows = "ranks"
base = {{ ranks = 1 }}
"""
SPREAD = (1.0, 1.04, 0.97, 1.02, 0.95, 1.01, 0.99)


def claims(*said: str, launches: int = 3) -> str:
    """A study with a claim for each `FIGURE; CONDITION`."""
    text = AXES.format(launches=launches)
    for each in said:
        figure, _, holds = each.partition("; ")
        text += f'[[claims]]\ntext = \'c\'\nfigure = "{figure}"\nholds = "{holds}"\n'
    return text


def verdicts(folder: Path, text: str, factors: Collection[float] = SPREAD) -> list[Verdict]:
    run(folder, text, Runner(factors=factors))
    return evaluation.load(str(folder)).verdicts


@pytest.mark.parametrize(
    ("claim", "verdict", "threshold"),
    [
        ("at('speedup', ranks=2); figure > 1.5", HOLDS, 1.5),
        ("at('speedup', ranks=2); figure > 2", UNDECIDED, 2.0),
        ("at('speedup', ranks=2); figure > 3", FAILS, 3.0),
        ("at('speedup', ranks=2); figure > 1.5 and figure < 2.7", HOLDS, 1.5),
        ("at('speedup', ranks=2); abs(figure - 2) < 0.1", UNDECIDED, 1.9),
        ("at('speedup', ranks=2); 3 < figure", FAILS, 3.0),
        ("at('speedup', ranks=1); figure == 1", HOLDS, 1.0),
        ("min(column('speedup', [])); figure > 0.9", HOLDS, 0.9),
        ("value('seconds.total.max', ranks=1) / value('seconds.total.max', ranks=4); figure > 3", HOLDS, 3.0),
        ("100 * mean(column('speedup', []) > 0.5); figure >= 75", HOLDS, 75.0),
    ],
)
def test_a_claim_is_decided_where_its_interval_leaves_the_threshold(
    tmp_path: Path, claim: str, verdict: str, threshold: float
) -> None:
    (said,) = verdicts(tmp_path, claims(claim))
    assert (said.verdict, bool(said.reason)) == (verdict, verdict == UNDECIDED)
    assert said.threshold == pytest.approx(threshold)
    assert said.figure is not None and said.low is not None and said.high is not None
    assert said.low <= said.figure <= said.high and not said.own
    assert said.n == 3


def test_a_single_launch_decides_nothing(tmp_path: Path) -> None:
    (said,) = verdicts(tmp_path, claims("at('speedup', ranks=2); figure > 1", launches=1))
    assert said.verdict == UNDECIDED and said.n == 1 and (said.low, said.high) == (None, None)
    assert said.reason == "a single launch of 2 points does not show how launches differ"


def test_a_study_of_one_run_a_point_says_once_what_decides_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scaled = claims("at('speedup', ranks=2); figure > 1", "at('speedup', ranks=4); figure > 1", launches=6)
    run(tmp_path, f"{scaled}[scales.tiny]\nlaunches = 1\n", Runner(), scale="tiny")
    show_results(str(tmp_path))
    shown = capsys.readouterr().out
    # Three points of which each launch took 2 s, and five launches more to make six.
    ends = "5 more launches of each of 3 points for 2 undecided claims, 31 s at most"
    assert shown.count("one run of each point, nothing decided; ") == 1
    assert f"--into {tmp_path}" in shown and " --resume --until-decided 5 adds up to" in shown
    assert ends in shown and shown.count("undecided here [") == 2
    assert "does not show how launches differ" not in shown
    run(tmp_path / "two", claims("at('speedup', ranks=2); figure > 2"), Runner(factors=SPREAD))
    assert running.nothing_decided(evaluation.load(str(tmp_path / "two"))) == ""


def test_an_interval_beyond_the_figure_is_not_spelt_out(tmp_path: Path) -> None:
    (said,) = verdicts(tmp_path, claims("at('speedup', ranks=2); figure > 2"))
    assert " to " in figure_text(said)
    said.high = 1e8
    assert "(> ±100 %, n = 3)" in figure_text(said) and "to both sides of 2" in said.reason


def test_what_is_counted_needs_no_second_launch(tmp_path: Path) -> None:
    class Counting(Runner):
        def __call__(self, words: list[str], folder: str, timeout: float | None) -> running.Ended:
            ended = super().__call__(words, folder, timeout)
            found = {**json.loads(ended.output), "messages": 64}
            return running.Ended(0, json.dumps(found).encode(), "", 1.0)

    run(tmp_path, claims("value('messages', ranks=2); figure == 64", launches=1), Counting())
    (said,) = evaluation.load(str(tmp_path)).verdicts
    assert (said.verdict, said.n, said.points) == (HOLDS, None, [])


def test_what_a_source_says_of_its_own_numbers_stands_apart(tmp_path: Path) -> None:
    text = claims("100 * 0.17 / 3.1; abs(figure - 0.05) < 0.01", "largest; figure > 1")
    one, two = verdicts(tmp_path, text + "[names]\nlargest = \"max(axis('ranks'))\"\n")
    assert (one.own, one.verdict, one.n) == (True, FAILS, None) and one.low == one.high == one.figure
    assert (two.own, two.verdict) == (False, HOLDS)


def test_lines_of_measurements_count_their_own_launches(tmp_path: Path) -> None:
    class Ping(Runner):
        def __call__(self, words: list[str], folder: str, timeout: float | None) -> running.Ended:
            line = {"key": "ping/8B", "series": "roundtrip", "kind": "ping", "bytes": 8, "amount": 8}
            line |= {"launches": [[1.0, 1.1], [1.2], [1.1]], "summary": {"median": 1.1}}
            return running.Ended(0, json.dumps({"lines": [line]}).encode(), "", 1.0)

    text = "command = 'measure ping'\n[[tables]]\nname = 't'\nrows = 'bytes'\nlines = { kind = 'ping' }\n"
    text += "value = 'summary.median'\n[[claims]]\ntext = 'c'\nfigure = \"cell('t', 8)\"\n"
    text += "holds = 'figure > 0.5'\n"
    run(tmp_path, text, Ping())
    (said,) = evaluation.load(str(tmp_path)).verdicts
    assert (said.verdict, said.n, said.figure) == (HOLDS, 3, 1.1)


def test_verdicts_are_kept_beside_the_points(tmp_path: Path) -> None:
    run(tmp_path, claims("at('speedup', ranks=2); figure > 1.5", "2 * 3; figure == 5"), Runner())
    evaluation.keep_claims(evaluation.load(str(tmp_path)))
    one, two = json.loads((tmp_path / evaluation.CLAIMS).read_text())
    keys = ["study", "claim", "source", "verdict", "figure", "low", "high", "n", "threshold", "reason"]
    assert list(one)[: len(keys)] == keys
    assert (one["verdict"], one["n"], one["scale"]) == ("holds", 3, "default")
    assert (two["verdict"], two["n"], two["own_numbers"]) == ("fails", None, True)


def repeated(
    folder: Path, text: str, runner: Runner, most: int
) -> tuple[running.StudyOutcome | None, list[str]]:
    """Runs a study, and then its undecided claims' points, as the command does."""
    run(folder, text, runner)
    made, said = study(text), list[str]()
    store, work = Store(str(folder)), Work(str(folder / "work"), keep=False)
    planned = expand(made, MACHINE, lambda command: FLAGS)

    def again(keys: Collection[str]) -> running.StudyOutcome:
        return running.run(made, planned, store, work, HERE, runner=runner, once_more=keys)

    try:
        return until_decided(most, lambda: evaluation.load(str(folder)), again, said.append), said
    finally:
        work.close()
        store.close()


def test_points_of_undecided_claims_are_launched_until_they_are_decided(tmp_path: Path) -> None:
    runner = Runner(factors=(1.0, 1.3, 0.8, 1.1, 0.9, 1.2, 1.05))
    text = claims("at('speedup', ranks=2); figure > 1.3", "at('speedup', ranks=1); figure == 1")
    outcome, said = repeated(tmp_path, text, runner, 20)
    (decided, _) = evaluation.load(str(tmp_path)).verdicts
    assert outcome is not None and decided.verdict == HOLDS and outcome.done == 3
    count = Counter(words[words.index("--ranks") + 1] for words in runner.calls)
    assert 3 < count["1"] == count["2"] < 23 and count["4"] == 3  # the claim is not about four ranks
    assert outcome.launched == count["1"] + count["2"] - 6 and decided.n == count["1"]
    assert said == ["up to 20 more launches of each of 2 points for 1 undecided claim, 82 s at most"]


def test_a_claim_at_its_threshold_stops_at_the_limit(tmp_path: Path) -> None:
    runner = Runner(factors=(0.7, 1.0, 1.4, 0.75, 1.3))
    outcome, _ = repeated(tmp_path, claims("at('speedup', ranks=2); figure > 2"), runner, 4)
    assert outcome is not None and outcome.launched == 8
    assert evaluation.load(str(tmp_path)).verdicts[0].n == 7
    # In a later run it may go on, by as many again.
    outcome, _ = repeated(tmp_path, claims("at('speedup', ranks=2); figure > 2"), runner, 1)
    assert outcome is not None and outcome.launched == 2


def test_what_sessions_differ_by_is_not_decided_by_launches(tmp_path: Path) -> None:
    text = claims("at('speedup', ranks=2); figure > 2")
    outcome, _ = repeated(tmp_path, text, Runner(factors=(1.0, 1.001, 0.999, 1.002)), 5)
    (said,) = evaluation.load(str(tmp_path)).verdicts
    assert outcome is None and said.verdict == UNDECIDED and said.settled
    assert "more launches do not help, as sessions here differ by 3 %" in said.reason


@pytest.mark.parametrize(
    ("around", "verdict"), [({"virtual": False}, HOLDS), ({"virtual": True}, UNDECIDED), ({}, UNDECIDED)]
)
def test_virtual_and_unknown_machines_drift_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, around: dict[str, bool], verdict: str
) -> None:
    told = studies.record
    monkeypatch.setattr(
        "studies.record", lambda words, factor=1.0: {**told(words, factor), "environment": around}
    )
    (said,) = verdicts(tmp_path, claims("at('speedup', ranks=2); figure > 1.6"))
    assert said.verdict == verdict


def test_nothing_is_said_or_launched_where_all_is_decided(tmp_path: Path) -> None:
    assert repeated(tmp_path, claims("at('speedup', ranks=2); figure > 1"), Runner(), 4) == (None, [])


def test_points_that_fail_are_not_tried_for_ever(tmp_path: Path) -> None:
    class Failing(Runner):
        def __call__(self, words: list[str], folder: str, timeout: float | None) -> running.Ended:
            self._fails = lambda words: len(self.calls) > 9
            return super().__call__(words, folder, timeout)

    outcome, _ = repeated(tmp_path, claims("at('speedup', ranks=2); figure > 2"), Failing(factors=SPREAD), 5)
    assert outcome is not None and outcome.failed == 2 and outcome.launched == 2


def test_of_what_is_ahead_seconds_are_told(tmp_path: Path) -> None:
    run(tmp_path, claims("at('speedup', ranks=2); figure > 2"), Runner(factors=SPREAD))
    found = ahead(evaluation.load(str(tmp_path)), 100)
    assert len(found.points) == 2 and found.seconds == pytest.approx(2 * 100 * 2.05)
    assert found.told(100).endswith("of each of 2 points for 1 undecided claim, 7 min at most")
