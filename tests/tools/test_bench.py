"""The benchmark's arithmetic: ratios of medians, targets met or missed, sides in turns."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import harness
import losses
import readme_table
from cases import small


@pytest.mark.parametrize(
    ("bound", "target", "met"),
    [
        ("at least", 1.9, True),
        ("at least", 2.1, False),
        ("at most", 2.1, True),
        ("at most", 1.9, False),
        ("", 0, None),
    ],
)
def test_a_target_is_met_or_missed(bound: str, target: float, met: bool | None) -> None:
    row = harness.compare(harness.Row("r", "r", bound, target), [2.0, 4.0, 90.0], [2.0, 2.0, 1.0])

    assert row.ratio == 2.0
    assert row.met is met


def test_the_interval_is_welchs_and_holds_the_ratio_of_medians() -> None:
    above, below = [1.0, 1.1, 1.2, 1.3], [0.9, 1.0, 1.1, 1.2]
    known = stats.ttest_ind(np.log(above), np.log(below), equal_var=False).confidence_interval()

    row = harness.compare(harness.Row("r", "r", "", 0), above, below)
    skew = harness.compare(harness.Row("r", "r", "", 0), [1.0] * 60 + [9.0] * 40, [1.0] * 100)

    assert (row.low, row.high) == pytest.approx((np.exp(known.low), np.exp(known.high)))
    assert skew.low == skew.ratio == 1.0


def test_one_round_has_no_interval() -> None:
    row = harness.compare(harness.Row("r", "r", "at most", 1.0), [2.0], [4.0])

    assert (row.ratio, row.low, row.high, row.met) == (0.5, None, None, True)


def test_sides_take_turns_in_both_directions() -> None:
    order: list[str] = []

    def side(name: str) -> harness.Sample:
        return lambda: [float(len(order)), order.append(name)][:1]  # type: ignore[func-returns-value,list-item]

    samples = harness.alternate({"a": side("a"), "b": side("b")}, 3)

    assert order == ["a", "b", "b", "a", "a", "b"]
    assert samples == {"a": [0.0, 3.0, 4.0], "b": [1.0, 2.0, 5.0]}


def test_a_row_that_was_not_run_says_why() -> None:
    assert "not run  " in harness.table([harness.Row("r", "r", "at least", 1, note="install it")])


def test_no_variable_that_chooses_a_kernel_reaches_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")

    assert "OPENBLAS_CORETYPE" not in harness.clean_environment()
    assert harness.clean_environment(OPENBLAS_CORETYPE="Zen")["OPENBLAS_CORETYPE"] == "Zen"


def test_own_volumes() -> None:
    assert small.cannon_volume(6, 2) == 2 * 3 * 3
    assert small.summa_volume(6, 2, 3) == 3 * 6 * 2 / 3 + 6 * 2 * 1 / 2


def test_what_is_slower_is_said_first_and_the_worst_of_it() -> None:
    def row(what: str, **medians: float) -> dict[str, object]:
        return {"what": what, "medians": medians}

    rows = [row("won", tilewise=1, peer=2), row("lost", peer=3, tilewise=4), row("worse", below=2, above=1)]
    unlike = [row("a bound", tilewise=9, copy=1), row("no peer", seconds=1), row("strategies", a=1, b=2)]

    assert losses.losses(rows + unlike).splitlines() == [
        "Slower in 2 comparisons:",
        "   0.50 times as fast: worse",
        "   0.75 times as fast: lost",
    ]
    assert losses.losses(rows[:1]) == ""


def shown(medians: dict[str, float], ratio: float, low: float, high: float) -> str:
    """How many times faster, as a row of the benchmarks' page shows it."""
    line = readme_table.LINES[0]
    row = {"name": line.row, "medians": medians, "ratio": ratio, "low": low, "high": high}
    environment = {
        "time": "2026-11-21T08:33:36+0000",
        "cores": 2,
        "cpu": "X",
        "memory_bytes": 0,
        "system": "Y",
    }
    results = {"x": {line.suite: {"rows": [row], "environment": environment}}}
    return readme_table.table(results).splitlines()[2].split(" | ")[-2]


def test_results_are_kept_by_processor() -> None:
    assert readme_table.folder_of("AMD EPYC (Zen 5)") == "amd-epyc-zen-5"
    assert readme_table.folder_of("Intel(R) Xeon(R) Processor") == "intel-r-xeon-r-processor"


def test_a_kernel_that_falls_short_is_shown_with_its_shares() -> None:
    def row(name: str, met: bool) -> dict[str, object]:
        return {
            "name": f"avx2-{name}",
            "what": f"avx2, {name}",
            "met": met,
            "note": "3 bytes, 0.1 of memory read",
        }

    sets = {"environment": {"cpu": "X", "sets": ["avx2"]}, "rows": [row("slow", False), row("fast", True)]}

    first, _, last = readme_table.kernels({"x": {"sets": sets}}).splitlines()
    assert first.startswith(
        "**X, avx2**: 1 of 2 measurements reach 0.7 of their bound or 0.9 of their peer. "
    )
    assert last == "* slow: 0.1 of memory read"


def test_figures_have_one_direction_and_two_digits() -> None:
    medians = {"tilewise": 4.0, "peer": 3.0}

    assert shown(medians, 4 / 3, 1.25, 1.6) == "**0.75** (0.62 – 0.80)"  # our time over the peer's
    assert shown(medians, 3 / 4, 0.625, 0.8) == "**0.75** (0.62 – 0.80)"  # how much faster we are
    assert [readme_table.two_digits(value) for value in (141.04, 9.96, 1.0, 0.018)] == [
        "140",
        "10",
        "1.0",
        "0.018",
    ]
