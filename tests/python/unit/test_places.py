"""Which places the ranks of a product get: the best there are, and the usual where little is gained."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import facts
from tilewise.files.region import Region
from tilewise.operations.multiply.options import Multiply
from tilewise.operations.multiply.plan import CLEARLY, Places, Product, choose
from tilewise.planning import grid
from tilewise.planning.plan import Plan

EXTENTS = st.one_of(st.integers(0, 40), st.integers(0, 5000))


def usual(algorithm: str, ranks: int, m: int, n: int) -> Places:
    shape, copies = grid.choose(algorithm, ranks, None, m, n)
    return Places(*shape, copies)


def planned(m: int, k: int, n: int, ranks: int, exchange: str | None = "overlap", **options: object) -> Plan:
    def matrix(rows: int, columns: int) -> Region:
        return Region(path="/x.npy", name="x.npy", rows=rows, columns=columns, dtype="float64")

    asked = Multiply(a="A", b="B", output="C", ranks=ranks, exchange=exchange, **options)
    return asked.plan([matrix(m, k), matrix(k, n)], None, facts(), None)


@given(EXTENTS, EXTENTS, EXTENTS, st.integers(1, 150), st.sampled_from(["summa", "replicated"]))
def test_no_places_are_better_than_those_chosen(m: int, k: int, n: int, ranks: int, algorithm: str) -> None:
    ranks = max(2, ranks)
    today, product = usual(algorithm, ranks, m, n), Product(m, k, n)
    why: list[str] = []
    chosen = choose(product, ranks, today, why)
    copies = [1] if today.copies == 1 else range(2, max(2, min(today.copies, round(ranks ** (1 / 3)))) + 1)
    every = [
        Places(p, q, c)
        for c in copies
        for p in range(1, ranks // c + 1)
        for q in range(1, ranks // c // p + 1)
    ]
    least = min(map(product.cost, every))
    assert product.cost(chosen) <= product.cost(today)
    assert product.cost(chosen) * CLEARLY <= least
    assert chosen.ranks <= ranks and chosen.copies <= today.copies
    assert bool(why) == (chosen != today)
    if chosen != today:
        assert product.cost(chosen) == least < CLEARLY * product.cost(today)


@given(EXTENTS, EXTENTS, EXTENTS, st.integers(2, 60), st.sampled_from(["summa", "replicated"]))
def test_an_uneven_division_never_makes_it_worse(m: int, k: int, n: int, ranks: int, algorithm: str) -> None:
    today, product = usual(algorithm, ranks, m, n), Product(m, k, n, "last")
    assert product.cost(choose(product, ranks, today, [])) <= product.cost(today)


@given(EXTENTS, EXTENTS, EXTENTS, st.integers(1, 12), st.integers(1, 12))
def test_what_is_received_is_what_others_own(m: int, k: int, n: int, p: int, q: int) -> None:
    m, k, n = m * p, k * p * q, n * q
    block = m // p * (k - k // q) + n // q * (k - k // p)
    assert math.isclose(Product(m, k, n).received(Places(p, q)), block)


@pytest.mark.parametrize(
    ("ranks", "places", "reason"),
    [
        (61, (6, 10), "6×10 grid: 1 of 61 ranks is left idle, and the busiest receives"),
        (127, (9, 14), "9×14 grid: 1 of 127 ranks is left idle"),
        (62, (2, 31), ""),
        (94, (7, 13), "7×13 grid: 3 of 94 ranks are left idle"),
        (64, (8, 8), ""),
        (7, (1, 7), ""),
    ],
)
def test_ranks_are_left_idle_where_that_pays(ranks: int, places: tuple[int, int], reason: str) -> None:
    plan = planned(4096, 4096, 4096, ranks)
    assert plan.job.variant.grid == places and plan.job.variant.ranks == ranks
    assert any(reason in each for each in plan.reasons)
    assert bool(reason) == any("idle" in each for each in plan.reasons)


def test_what_the_user_says_or_nobody_receives_stays() -> None:
    assert planned(4096, 4096, 4096, 61, grid=(61, 1)).job.variant.grid == (61, 1)
    assert planned(4096, 4096, 4096, 61, exchange="shared").job.variant.grid == (1, 61)
    for ranks in range(2, 9):
        for exchange in ("overlap", "shared"):
            today = grid.nearest_square(ranks, 4096, 4096)
            assert planned(4096, 4096, 4096, ranks, exchange).job.variant.grid == today


def test_copies_of_a_grid_leave_ranks_idle_too() -> None:
    plan = planned(4096, 4096, 4096, 61, algorithm="replicated")
    p, q = plan.job.variant.grid
    assert 2 <= plan.job.variant.copies <= 4 and 50 < p * q * plan.job.variant.copies <= 61
    assert any(f"{plan.job.variant.copies} copies of a {p}×{q} grid" in each for each in plan.reasons)
