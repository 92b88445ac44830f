"""Which part of a product that does not fit stays in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

MULTIPLE = 8  # rows and columns of a tile: whole register tiles
LEAST_RUN = 2 << 10  # bytes of a row of A, so that a device reads at speed
SHARE_OF_TILE = (
    4  # k is a quarter of a tile's shorter side: both panels then take half of what the tile takes
)
ADVISED = 512
MOST_TILES = 1024  # along a side


class Stage(NamedTuple):
    """Rows and columns of the tile of C, and of k what is read of A and B at a time."""

    m: int
    n: int
    k: int


def largest(
    m: int,
    k: int,
    n: int,
    item: int,
    fits: Callable[[Stage], bool],
    whole_rows: bool = False,
) -> Stage | None:
    """The largest nearly square tile of C that `fits`, and then the most of k; None where none does.

    A and B are read ⌈n / tile.n⌉ and ⌈m / tile.m⌉ times, so that the tile matters more than k, of which a
    range needs only be long enough for a device to read it at speed. `whole_rows`: the tile is as wide as C.
    """
    for tile in _tiles(m, n, whole_rows):
        depth = min(k, max(1, LEAST_RUN // item, min(tile) // SHARE_OF_TILE))
        if fits(Stage(*tile, depth)):
            while depth < k and fits(Stage(*tile, min(k, 2 * depth))):
                depth = min(k, 2 * depth)
            return Stage(*tile, even(k, depth))
    return None


def smallest(m: int, k: int, n: int, item: int, whole_rows: bool = False) -> Stage:
    """The smallest to be advised: with smaller tiles A and B are read for most of the time."""
    columns = n if whole_rows else min(n, ADVISED)
    return Stage(max(1, min(m, ADVISED)), max(1, columns), min(k, max(1, LEAST_RUN // item)))


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
