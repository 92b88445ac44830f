"""The places of a product whose panels travel: a grid and its copies, fewer than ranks where that pays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from tilewise.base.units import plural, shape_text
from tilewise.planning.grid import part

WORD = 16  # multiply-adds in the time in which a number arrives: 20 GF/s and 5 GB/s for a rank, in float64
CLEARLY = 0.95  # of the time that the usual grid takes: what gains less is within the error of the model


class Places(NamedTuple):
    """`copies` of `rows` × `columns`."""

    rows: int
    columns: int
    copies: int = 1

    @property
    def ranks(self) -> int:
        """How many have one."""
        return self.rows * self.columns * self.copies

    def said(self) -> str:
        """As a plan says it."""
        grid = f"{shape_text(self.rows, self.columns)} grid"
        return grid if self.copies == 1 else f"{self.copies} copies of a {grid}"

    def with_article(self) -> str:
        """The same within a sentence."""
        return f"a {self.said()}" if self.copies == 1 else self.said()


class Product(NamedTuple):
    """An m×k · k×n product, and how uneven divisions are dealt out."""

    m: int
    k: int
    n: int
    remainder: str = "spread"

    def cost(self, places: Places) -> int:
        """The time of the rank with most to do, in multiply-adds.

        Panels of its own count as received, since it passes them on: so more places never cost more.
        """
        rows, columns, depth = self._block(places)
        added = rows * columns if places.copies > 1 else 0
        return rows * columns * depth + WORD * ((rows + columns) * depth + added)

    def received(self, places: Places) -> float:
        """Numbers that come to a rank from others."""
        rows, columns, depth = self._block(places)
        p, q, copies = places
        panels = depth * (rows * (q - 1) / q + columns * (p - 1) / p)
        return panels + rows * columns * (copies - 1) / copies

    def _block(self, places: Places) -> tuple[int, int, int]:
        return (
            part(self.m, places.rows, self.remainder),
            part(self.n, places.columns, self.remainder),
            part(self.k, places.copies, self.remainder),
        )


def choose(product: Product, ranks: int, usual: Places, why: list[str]) -> Places:
    """`usual`, which has a place for each rank, or what takes clearly less time; adds its reason to `why`.

    Copies stay copies, and are never more than `usual` has: each takes memory for all of C.
    """
    best = min(_candidates(ranks, usual.copies), key=product.cost)
    if product.cost(best) >= CLEARLY * product.cost(usual):
        return usual
    less = product.received(usual) / max(1.0, product.received(best))
    gain = (
        f"the busiest receives {less:.1f} times less than on {usual.with_article()}"
        if less >= 1.1
        else f"the busiest has less to do than on {usual.with_article()}"
    )
    idle = ranks - best.ranks
    left = f"{idle} of {plural(ranks, 'rank')} {'is' if idle == 1 else 'are'} left idle, and " if idle else ""
    why.append(f"{best.said()}: {left}{gain}")
    return best


def _candidates(ranks: int, most_copies: int) -> Iterator[Places]:
    """All to which no row and no column could be added; of copies, up to the cube root of the ranks.

    More copies than that send more, not less: see Solomonik and Demmel, 2011.
    """
    few, many = (1, 1) if most_copies == 1 else (2, max(2, min(most_copies, round(ranks ** (1 / 3)))))
    for copies in range(few, many + 1):
        each = ranks // copies
        for p in range(1, math.isqrt(each) + 1):
            q = each // p
            yield Places(each // q, q, copies)
            yield Places(q, each // q, copies)
