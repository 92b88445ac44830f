"""Which part of a product that does not fit stays in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

MULTIPLE = 8  # rows and columns of a tile: whole register tiles
LEAST_RUN = 2 << 10  # bytes of a row of A, so that a device reads at speed
RUN = 24 << 10  # bytes that are read in the time that it takes to ask for some: 40,000 runs a second, 1 GB/s
TRIED = 16  # tiles, from the largest that fits on
ADVISED = 512
MOST_TILES = 1024  # along a side


class Stage(NamedTuple):
    """Rows and columns of the tile of C, and of k what is read of A and B at a time."""

    m: int
    n: int
    k: int


def best(
    m: int,
    k: int,
    n: int,
    item: int,
    fits: Callable[[Stage], bool],
    across: tuple[bool, bool] = (True, True),
    whole_rows: bool = False,
) -> Stage | None:
    """Of nearly square tiles of C with as much of k as `fits`, that which reads in the least time; or None.

    A and B are read ⌈n / tile.n⌉ and ⌈m / tile.m⌉ times, in runs that are as long as `across` says of each of
    them (see `grid_of`): a run costs as much time as RUN bytes. `whole_rows`: the tile is as wide as C.
    """

    def cost(part: Stage) -> float:
        runs = (part.k if across[0] else part.m) * item, (part.n if across[1] else part.k) * item
        times = -(-n // part.n), -(-m // part.m)
        return times[0] * m * k * (1 + RUN / runs[0]) + times[1] * k * n * (1 + RUN / runs[1])

    found: list[Stage] = []
    for tile in _tiles(m, n, whole_rows):
        part = _deepest(tile, k, max(1, LEAST_RUN // item), fits)
        if part is not None:
            found.append(part)
        if len(found) == TRIED:
            break
    return min(found, key=cost, default=None)


def _deepest(tile: tuple[int, int], k: int, least: int, fits: Callable[[Stage], bool]) -> Stage | None:
    """That tile with the most of k that `fits`, in nearly equal parts."""
    if not fits(Stage(*tile, min(k, least))):
        return None
    few, many = 1, -(-k // least)  # parts: so few need not fit, so many do
    while few < many:
        middle = (few + many) // 2
        if fits(Stage(*tile, even(k, -(-k // middle)))):
            many = middle
        else:
            few = middle + 1
    part = Stage(*tile, even(k, -(-k // many)))
    return part if fits(part) else Stage(*tile, min(k, least))


def smallest(m: int, k: int, n: int, item: int, whole_rows: bool = False) -> Stage:
    """The smallest to be advised: with smaller tiles A and B are read for most of the time."""
    columns = n if whole_rows else min(n, ADVISED)
    return Stage(max(1, min(m, ADVISED)), max(1, columns), min(k, max(1, LEAST_RUN // item)))


def grid_of(ranks: int, across: tuple[bool, bool]) -> tuple[int, int]:
    """One column of ranks, or one row: whichever lets each of them read longer runs of the files.

    `across` says of A and of B whether a file has its rows together. A rank reads runs as long as its block:

        A by rows       k, a column     k / ranks, a row       B by rows       n           n / ranks
        A by columns    m / ranks       m                      B by columns    k / ranks   k

    k is the shortest, so that it is not to be shared.
    """
    column_shares, row_shares = not across[1], across[0]
    return (1, ranks) if column_shares and not row_shares else (ranks, 1)


def even(length: int, size: int) -> int:
    """The size of nearly equal parts of `length`, none of which is larger than `size`, rounded up as far."""
    parts = -(-length // max(1, size))
    equal = -(-length // max(1, parts))
    return max(1, min(length, size, -(-equal // MULTIPLE) * MULTIPLE))


def _tiles(m: int, n: int, whole_rows: bool) -> Iterator[tuple[int, int]]:
    """From the largest to the smallest."""
    longer = m if whole_rows else max(m, n)
    for count in range(1, MOST_TILES + 1):
        side = -(-max(1, -(-longer // count)) // MULTIPLE) * MULTIPLE
        yield even(m, side), max(1, n) if whole_rows else even(n, side)
