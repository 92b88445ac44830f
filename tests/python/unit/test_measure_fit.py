"""The cost model: known pieces are found again, real curves are predicted where they were not measured."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.optimize
from tilewise.lab.measurement.fit import cost_key, fit, fit_cost, pieces, search, straight
from tilewise.lab.measurement.result import Line, Model
from tilewise.lab.statistics.summary import Summary

POWERS = [1 << k for k in range(23)]

MPICH = [  # µs of a round trip: 2 ranks on two cores, MPICH 5.0.2, median of three launches
    *(
        1.503,
        1.482,
        1.490,
        1.496,
        1.493,
        1.500,
        1.512,
        1.543,
        1.532,
        1.540,
        1.580,
        1.638,
        1.832,
        6.320,
        7.343,
    ),
    *(9.216, 13.22, 20.76, 36.00, 75.38, 139.6, 273.1, 714.2),
]
OPEN_MPI = [  # the same with Open MPI 4.1.4
    *(
        0.7124,
        0.7093,
        0.7053,
        0.7079,
        0.8264,
        0.8262,
        0.8375,
        0.8591,
        0.8983,
        1.330,
        1.443,
        1.534,
        5.268,
        5.750,
    ),
    *(6.714, 8.687, 12.59, 20.04, 35.49, 68.26, 136.1, 267.0, 541.8),
]


def summary(seconds: float) -> Summary:
    return Summary(
        n=9,
        median=seconds,
        low=seconds,
        high=seconds,
        mean=seconds,
        minimum=seconds,
        maximum=seconds,
        outliers=0,
        spread=0.0,
    )


def line(seconds: float, **fields: object) -> Line:
    """A measured line of 64 bytes between cores, unless `fields` say otherwise."""
    given: dict[str, object] = {
        "key": "",
        "kind": "ping",
        "name": "blocking",
        "level": "core",
        "pairs": 1,
        "bytes": 64,
        "pattern": "roundtrip",
    }
    return Line(**{**given, **fields}, summary=summary(seconds))  # type: ignore[arg-type]


def curve(alpha_beta: list[tuple[float, float, float]], noise: float = 0.0) -> dict[int, float]:
    """Seconds at all powers of two, of pieces (begin, α, β); `noise` is relative, always the same."""
    random = np.random.default_rng(5)
    found = {}
    for size in POWERS:
        _, alpha, beta = [piece for piece in alpha_beta if piece[0] <= size][-1]
        found[size] = (alpha + beta * size) * math.exp(random.normal(0, noise))
    return found


THREE = [(0, 1e-6, 1e-10), (8192, 4e-6, 5e-11), (1 << 20, 0.0, 2e-10)]


def test_pieces_that_are_exactly_so_are_found_again() -> None:
    cost = fit_cost("x", curve(THREE))
    assert [piece.begin for piece in cost.pieces] == [0, 8192, 1 << 20]
    for piece, (_, alpha, beta) in zip(cost.pieces, THREE, strict=True):
        assert piece.alpha == pytest.approx(alpha, abs=1e-12)
        assert piece.beta == pytest.approx(beta, rel=1e-6)
    assert cost.largest_error == pytest.approx(0, abs=1e-6)


def test_one_straight_line_stays_one_piece() -> None:
    cost = fit_cost("x", curve([(0, 2e-6, 1e-10)], noise=0.01))
    assert len(cost.pieces) == 1
    assert cost.pieces[0].alpha == pytest.approx(2e-6, rel=0.02)
    assert cost.pieces[0].beta == pytest.approx(1e-10, rel=0.02)
    assert cost.median_error is not None
    assert cost.median_error < 0.02


@pytest.mark.parametrize("measured", [MPICH, OPEN_MPI], ids=["mpich", "openmpi"])
def test_real_messages_are_predicted_at_sizes_left_out(measured: list[float]) -> None:
    cost = fit_cost("x", dict(zip(POWERS, [t * 1e-6 / 2 for t in measured], strict=True)))
    assert 2 <= len(cost.pieces) <= 3
    assert cost.median_error is not None
    assert cost.largest_error is not None
    assert cost.median_error <= 0.05
    assert cost.largest_error <= 0.20


@pytest.mark.parametrize(
    ("measured", "beside"), [(MPICH, {12, 13}), (OPEN_MPI, {8, 9, 11, 12})], ids=["mpich", "openmpi"]
)
def test_errors_are_what_somebody_else_finds_who_leaves_sizes_out(
    measured: list[float], beside: set[int]
) -> None:
    """Every third size in turn is kept from the fit altogether, but for those beside a jump."""
    seconds = dict(zip(POWERS, [t * 1e-6 / 2 for t in measured], strict=True))
    errors = []
    for first in (1, 2, 3):
        hidden = [k for k in range(first, 22, 3) if k not in beside]
        cost = fit_cost("x", {size: seconds[size] for k, size in enumerate(POWERS) if k not in hidden})
        errors += [abs(cost.seconds(POWERS[k]) / seconds[POWERS[k]] - 1) for k in hidden]
    assert len(errors) == 21 - len(beside)
    assert np.median(errors) <= 0.05
    assert max(errors) <= 0.20


def test_pieces_that_cross_meet_and_others_jump() -> None:
    meeting = fit_cost("x", curve([(0, 1e-6, 0.0), (3000, 0.0, 1e-9 / 3)]))
    assert meeting.seconds(2999.9) == pytest.approx(meeting.seconds(3000.1), rel=1e-3)
    jumping = fit_cost("x", curve([(0, 1e-6, 1e-11), (8192, 5e-6, 5e-11)]))
    assert jumping.seconds(4096) < jumping.seconds(8192) / 4
    steps = [jumping.seconds(size) for size in range(4096, 8193, 256)]
    assert all(low < high < 1.2 * low for low, high in pairwise(steps))


def test_costs_are_never_negative() -> None:
    falling = {size: 1e-6 * (2 - k / 23) for k, size in enumerate(POWERS)}
    for piece in fit_cost("x", falling).pieces:
        assert piece.alpha >= 0
        assert piece.beta >= 0


def test_a_straight_line_has_the_least_relative_error() -> None:
    sizes = np.array([1.0, 10.0, 100.0, 1000.0])
    seconds = np.array([2.0, 2.3, 4.0, 30.0])
    alpha, beta, error = straight(sizes, seconds)

    def badness(ab: np.ndarray) -> float:
        return float((((ab[0] + ab[1] * sizes) / seconds - 1) ** 2).sum())

    other = scipy.optimize.minimize(badness, [1, 0.01], method="Nelder-Mead", options={"xatol": 1e-9})
    assert error == pytest.approx(badness(np.array([alpha, beta])))
    assert error <= other.fun * (1 + 1e-6)


def test_the_search_is_as_good_as_trying_all_cuts() -> None:
    random = np.random.default_rng(9)
    sizes = np.array(POWERS[:9], dtype=float)
    for _ in range(5):
        seconds = np.exp(random.normal(0, 0.5, 9)) * (1 + sizes / 50)

        def total(cuts: list[int], seconds: np.ndarray = seconds) -> float:
            ends = [*cuts[1:], 9]
            return sum(straight(sizes[b:e], seconds[b:e])[2] for b, e in zip(cuts, ends, strict=True))

        every = [
            [0],
            *([0, a] for a in range(2, 8)),
            *([0, a, b] for a in range(2, 6) for b in range(a + 2, 8)),
        ]
        assert total(search(sizes, seconds, 3)) == pytest.approx(min(total(cuts) for cuts in every))


def test_two_sizes_give_a_line_and_no_error() -> None:
    cost = fit_cost("x", {1000: 2e-6, 3000: 4e-6})
    assert len(cost.pieces) == 1
    assert cost.seconds(2000) == pytest.approx(3e-6)
    assert cost.median_error is None


def test_pieces_begin_at_zero_bytes() -> None:
    sizes = np.array([128e3, 1e6, 16e6])
    assert pieces(sizes, sizes * 1e-9, [0])[0].begin == 0.0


STREAM = {"level": "node", "name": "nonblocking", "pattern": "stream", "pairs": 3}
BCAST = {"kind": "collective", "name": "bcast", "pattern": "loop", "ranks": 4}
USUAL = {"layout": "interleaved", "buffer": "malloc", "cache": "warm", "check": "counts"}
READ = {**USUAL, "kind": "file", "name": "positioned", "series": "read", "ranks": 2, "blocks": 64, "shift": 1}
DIRECT = {**READ, "name": "uncached", "layout": "contiguous", "cache": "direct", "sync": True, "shift": 0}


@pytest.mark.parametrize(
    ("key", "operations", "fields"),
    [
        ("ping/core/blocking", 2, {}),
        ("ping/core/put", 1, {"name": "put"}),
        ("ping/node/nonblocking/stream/3pairs", 1, STREAM),
        ("collective/core/bcast/loop/4ranks", 1, BCAST),
        ("file/positioned/read/2ranks", 64, READ),
        ("file/uncached/read/2ranks/contiguous/direct/sync/shift0", 64, DIRECT),
    ],
)
def test_each_cost_is_of_one_operation(key: str, operations: int, fields: dict[str, object]) -> None:
    lines = [line(operations * (1e-6 + 1e-9 * size), bytes=size, **fields) for size in (64, 4096, 1 << 20)]
    assert {cost_key(one) for one in lines} == {key}
    cost = fit(lines).cost(key)
    assert cost is not None
    assert cost.seconds(1000) == pytest.approx(2e-6, rel=1e-6)


def test_a_node_sends_what_all_pairs_together_get() -> None:
    lines = [
        line(2 * 3 * 0.01, level="node", pairs=3, bytes=1_000_000),
        line(2 * 0.01, level="node", pairs=1, bytes=1_000_000),
        line(2 * 3 * 0.001, level="core", pairs=3, bytes=1_000_000),
        line(3 * 0.009, level="node", pairs=3, bytes=1_000_000, pattern="stream"),
        line(3 * 0.00001, level="node", pairs=3, bytes=16_384, pattern="stream"),
    ]
    assert fit(lines).injection == pytest.approx(1_000_000 / 0.009)
    assert fit([*lines, line(6 * 0.04, level="node", pairs=3, bytes=1 << 22)]).injection == pytest.approx(
        (1 << 22) / 0.04
    )
    assert fit(lines[1:3]).injection is None


def test_the_copy_rate_is_of_the_largest_arrays_and_most_threads() -> None:
    def copy(seconds: float, size: int, threads: int, name: str = "copy") -> Line:
        return line(seconds, kind="memory", name=name, bytes=size, threads=threads, amount=2.0 * size)

    lines = [
        copy(1e-7, 1000, 2),
        copy(0.01, 1 << 26, 1),
        copy(0.008, 1 << 26, 2),
        copy(0.001, 1 << 26, 2, "triad"),
    ]
    assert fit(lines).copy_rate == pytest.approx(2 * (1 << 26) / 0.008)


def test_what_was_not_run_and_what_is_not_known_is_passed_over() -> None:
    lines = [
        Line(key="a", kind="ping", name="put", bytes=8, skipped="no windows"),
        line(1e-6, kind="compute", name="gemm", bytes=0),
        line(-1e-9),
        line(1e-6),
    ]
    assert fit(lines) == Model()
    assert fit([]) == Model()
