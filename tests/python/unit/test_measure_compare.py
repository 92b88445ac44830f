"""Comparison of two measurements, by simulation: what it finds, what it must not find, what else it says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import msgspec
import numpy as np
import pytest
import scipy.stats
from tilewise.lab.measurement.compare import FASTER, SAME, SLOWER, Comparison, compare
from tilewise.lab.measurement.result import Disturbance, Line, Measurement

Shift = Callable[[Line], float]


def design() -> list[Line]:
    """What one measurement of everything has, without samples: some 230 lines."""
    lines = [
        Line(
            key="", kind="ping", name=name, pattern="roundtrip", level="core", pairs=1, ranks=2, bytes=1 << k
        )
        for name in ("blocking", "nonblocking", "put", "get")
        for k in range(23)
    ]
    lines += [
        Line(key="", kind="collective", name=name, pattern=pattern, level="core", ranks=2, bytes=1 << k)
        for name in ("bcast", "scatter", "gather", "allreduce", "alltoallv")
        for pattern in ("library", "loop")
        for k in (3, 10, 16, 20)
    ]
    lines += [
        Line(key="", kind="memory", name=name, threads=threads, bytes=1 << k)
        for name in ("copy", "triad", "read", "write")
        for threads in (1, 2)
        for k in range(12, 27, 2)
    ]
    lines += [
        Line(key="", kind="compute", name="gemm", dtype=dtype, size=size, threads=threads, unit="flop")
        for dtype in ("float32", "float64")
        for size in (64, 128, 256, 512, 1024, 2048)
        for threads in (1, 2)
    ]
    lines += [
        Line(key="", kind="file", name=name, series=series, ranks=2, blocks=64, bytes=size)
        for name in ("collective", "independent", "positioned")
        for size in (128_000, 1_000_000, 16_000_000)
        for series in ("write", "read")
    ]
    for line in lines:
        size = str(line.bytes or line.size)
        words = (line.kind, line.name, line.series, line.pattern, line.dtype, str(line.threads), size)
        line.key = "/".join(words)
    return lines


LINES = design()
KEYS = [line.key for line in LINES]


def measured(
    random: np.random.Generator,
    *,
    changed: Iterable[str] = (),
    times: float = 1.3,
    common: float = 0.0,
    own: float = 0.05,
    mode: float = 0.0,
    heavy: bool = False,
    virtual: bool = True,
    launches: int = 3,
) -> Measurement:
    """A measurement in which `changed` keys take `times` as long.

    All lines of a kind and thread count share a factor of each launch (`common`, standard deviation of its
    logarithm); each line has one of its own (`own`; `heavy`: of Student's t with 3 degrees of freedom). Half
    of the measurements are in a slow mode of the machine, which small sizes feel by exp(`mode`); one launch
    in ten flips.
    """
    slow = {key: random.random() < 0.5 for key in {(line.kind, line.threads) for line in LINES}}
    flips = {key: random.random(launches) < 0.1 for key in slow}
    factors = {key: random.normal(0, common, launches) for key in slow}
    found = []
    aside = set(changed)
    for line in LINES:
        key = (line.kind, line.threads)
        feels = mode / (1 + max(line.bytes, 8 * line.size**2) / 8192)
        size = random.standard_t(3, launches) / math.sqrt(3) if heavy else random.normal(0, 1, launches)
        middle = math.log(1e-5) + (math.log(times) if line.key in aside else 0.0)
        middles = middle + factors[key] + own * size + feels * (flips[key] ^ slow[key])
        samples = np.exp(middles[:, None] + random.normal(0, 0.03, (launches, 9)))
        found.append(msgspec.structs.replace(line, launches=samples.tolist()))
    return measurement(found, virtual=virtual)


def measurement(lines: list[Line], **environment: object) -> Measurement:
    return Measurement(
        tilewise="0.1.0", command=["measure"], time="now", seconds=1.0, environment=environment, lines=lines
    )


def simulated(
    times: int, choose: Callable[[np.random.Generator], list[str]], **how: object
) -> tuple[float, float]:
    """Shares of lines that were said to differ: of those that did not, and of those that did."""
    random = np.random.default_rng(17)
    wrong, right = [], []
    for _ in range(times):
        changed = choose(random)
        before = measured(random, **how)  # type: ignore[arg-type]
        after = measured(random, changed=changed, **how)  # type: ignore[arg-type]
        for change in compare(before, after).changes:
            if change.key in changed:
                right.append(change.word == SLOWER)
            else:
                wrong.append(change.word != SAME)
    return float(np.mean(wrong)), float(np.mean(right)) if right else math.nan


def nothing(_: np.random.Generator) -> list[str]:
    return []


def tenth(random: np.random.Generator) -> list[str]:
    return [str(key) for key in random.choice(KEYS, len(KEYS) // 10, replace=False)]


def puts(_: np.random.Generator) -> list[str]:
    return [line.key for line in LINES if line.name == "put"]


def pings(_: np.random.Generator) -> list[str]:
    return [line.key for line in LINES if line.kind == "ping"]


@pytest.mark.parametrize(
    "how",
    [
        {"own": 0.05, "common": 0.05},
        {"own": 0.05, "common": 0.05, "heavy": True},
        {"own": 0.03, "common": 0.02, "mode": 0.34},
        {"own": 0.15, "common": 0.1, "virtual": False},
        {"own": 0.002, "common": 0.0, "virtual": False},
    ],
    ids=["launches", "heavy tails", "modes of the machine", "a noisy machine", "a quiet machine"],
)
def test_where_nothing_changed_nothing_is_said_to_have_changed(how: dict[str, object]) -> None:
    wrong, _ = simulated(12, nothing, **how)
    assert wrong <= 0.01


@pytest.mark.parametrize(
    ("choose", "how", "power"),
    [
        (tenth, {"own": 0.05, "common": 0.0}, 0.8),
        (tenth, {"own": 0.035, "common": 0.035, "mode": 0.34}, 0.8),
        (tenth, {"own": 0.05, "common": 0.0, "virtual": False}, 0.85),
        (puts, {"own": 0.035, "common": 0.035}, 0.85),
        (pings, {"own": 0.035, "common": 0.035, "virtual": False}, 0.8),
    ],
    ids=[
        "some lines",
        "some lines under modes",
        "some lines on a real machine",
        "one exchange",
        "all of a kind",
    ],
)
def test_three_tenths_are_found_with_three_launches(
    choose: Callable[[np.random.Generator], list[str]], how: dict[str, object], power: float
) -> None:
    wrong, right = simulated(20, choose, **how)
    assert wrong <= 0.01
    assert right >= power


def test_what_all_lines_of_a_kind_do_together_is_drift_on_a_virtual_machine_and_said() -> None:
    random = np.random.default_rng(2)
    comparison = compare(
        measured(random, own=0.02), measured(random, own=0.02, changed=pings(random), times=1.4)
    )
    assert {change.word for change in comparison.changes} == {SAME}
    assert any("All of ping moved together (1.4" in note for note in comparison.notes)
    assert not any("All of memory" in note for note in comparison.notes)


def test_drift_can_be_given() -> None:
    random = np.random.default_rng(2)
    before = measured(random, own=0.02)
    after = measured(random, own=0.02, changed=pings(random), times=1.4)
    comparison = compare(before, after, drift=0.01)
    assert {change.word for change in comparison.changes if change.kind == "ping"} == {SLOWER}
    assert sum(change.word != SAME for change in comparison.changes if change.kind != "ping") <= 2


def test_five_hundredths_are_not_worth_a_word_however_sure() -> None:
    random = np.random.default_rng(4)
    few = KEYS[::10]
    before = measured(random, own=0.001)
    assert compare(before, measured(random, own=0.001, changed=few, times=1.03)).counts[SLOWER] == 0
    assert compare(before, measured(random, own=0.001, changed=few, times=1.3)).counts[SLOWER] == len(few)
    assert compare(before, measured(random, own=0.001, changed=few, times=1.3), least=0.4).counts[SLOWER] == 0


def test_both_directions_count_alike() -> None:
    random = np.random.default_rng(6)
    before, after = measured(random), measured(random, changed=KEYS[::9], times=1.5)
    there, back = compare(before, after), compare(after, before)
    assert there.counts[SLOWER] == back.counts[FASTER] > 20
    assert [change.ratio for change in there.changes] == pytest.approx([1 / c.ratio for c in back.changes])
    assert [change.q for change in there.changes] == pytest.approx([change.q for change in back.changes])


def test_a_line_has_its_times_its_ratio_and_its_interval() -> None:
    before = measurement([msgspec.structs.replace(LINES[0], launches=[[1.0, 9.0, 1.1], [1.21], [1.0]])])
    after = measurement([msgspec.structs.replace(LINES[0], launches=[[2.0], [2.0], [2.2]], labels=["busy"])])
    (change,) = compare(before, after).changes
    first, second = np.log([1.1, 1.21, 1.0]), np.log([2.0, 2.0, 2.2])
    known = scipy.stats.ttest_ind(second, first).confidence_interval()
    assert change.before == pytest.approx(math.exp(first.mean()))
    assert change.after == pytest.approx(math.exp(second.mean()))
    assert change.ratio == pytest.approx(change.after / change.before)
    assert (change.low, change.high) == pytest.approx((math.exp(known.low), math.exp(known.high)))
    assert (change.labels_before, change.labels_after, change.launches) == ([], ["busy"], (3, 3))
    assert change.shared is None


def test_one_launch_on_each_side_tells_nothing() -> None:
    random = np.random.default_rng(8)
    comparison = compare(measured(random, launches=1), measured(random, launches=1, changed=KEYS, times=5))
    assert comparison.counts == {FASTER: 0, SLOWER: 0, SAME: len(KEYS)}
    assert comparison.changes[0].low is None
    assert any("one launch" in note for note in comparison.notes)


def test_unlike_numbers_of_launches_are_compared() -> None:
    random = np.random.default_rng(9)
    comparison = compare(
        measured(random, launches=5), measured(random, launches=2, changed=KEYS[::7], times=2)
    )
    assert comparison.counts[SLOWER] > len(KEYS[::7]) * 0.9
    assert comparison.counts[FASTER] == 0


def test_lines_of_one_side_and_lines_not_run_are_listed() -> None:
    def line(key: str, **fields: object) -> Line:
        given: dict[str, object] = {"launches": [[1.0], [1.0], [1.0]]}
        return Line(key=key, kind="memory", name="copy", **{**given, **fields})  # type: ignore[arg-type]

    before = measurement([line("a"), line("b"), line("c"), line("d", launches=[[0.0], [1.0]]), line("e")])
    after = measurement(
        [line("a"), line("c", skipped="no room"), line("d"), line("e", launches=[[]]), line("f")]
    )
    comparison = compare(before, after)
    assert [change.key for change in comparison.changes] == ["a"]
    assert (comparison.only_before, comparison.only_after) == (["b"], ["f"])
    assert [key for key, _ in comparison.skipped] == ["c", "d", "e"]
    assert "no room" in comparison.skipped[0][1]


def test_other_surroundings_are_listed_and_the_time_is_not() -> None:
    before = measurement(
        [], mpi_library="MPICH 5.0.2", time="now", versions={"kernel": "6.1", "python": "3.11"}
    )
    after = measurement(
        [], mpi_library="Open MPI 4.1", time="later", versions={"kernel": "6.2", "python": "3.11"}, numa=2
    )
    found = {found.name: (found.before, found.after) for found in compare(before, after).environment}
    assert found == {
        "mpi_library": ("MPICH 5.0.2", "Open MPI 4.1"),
        "versions.kernel": ("6.1", "6.2"),
        "numa": (None, 2),
    }


def test_nothing_in_common_and_disturbances_are_said() -> None:
    after = measurement([])
    after.disturbances = [
        Disturbance(launch=0, what="ping", seconds=1, labels=["busy (1.2 cores)", "busy (1.3 cores)"]),
        Disturbance(launch=1, what="ping", seconds=1),
    ]
    notes = compare(measurement([]), after).notes
    assert any("no line in common" in note for note in notes)
    assert "Disturbed after (busy): 1 of 2 launches." in notes


def test_it_goes_through_json() -> None:
    random = np.random.default_rng(3)
    comparison = compare(measured(random), measured(random, changed=KEYS[:9], times=2))
    assert msgspec.json.decode(msgspec.json.encode(comparison), type=Comparison) == comparison
    assert sum(comparison.counts.values()) == len(KEYS)
