"""Messages of a product and the bytes in them, counted as the worker counts them: what ranks receive."""

from __future__ import annotations

from typing import NamedTuple

from tilewise.files.dtypes import ITEMSIZE
from tilewise.launch.constants import constants
from tilewise.launch.job import Variant
from tilewise.operations.multiply.need import Sizes
from tilewise.planning.grid import cuts, part, sizes
from tilewise.planning.names import DESCRIBED_ONCE

PIECE = 2 << 20  # bytes of a piece of a panel, at least
GETTING = ("one_sided_fence", "one_sided_lock")
_AT_ONCE = ("collective", *GETTING)  # where a panel is one message


class Traffic(NamedTuple):
    """All that ranks receive together, of one repetition."""

    messages: int
    bytes: int

    def __add__(self, other: object) -> Traffic:
        assert isinstance(other, Traffic)
        return Traffic(self.messages + other.messages, self.bytes + other.bytes)


def traffic(m: int, k: int, n: int, dtype: str, variant: Variant, width: int) -> Traffic:
    """Of an m×k · k×n product, whose panels are `width` wide at most."""
    if variant.exchange in ("none", "shared"):
        panels = Traffic(0, 0)
    elif variant.algorithm == "cannon":
        panels = _blocks(m, k, n, dtype, variant)
    else:
        panels = Traffic(0, 0)
        for begin, end in cuts(k, variant.copies, variant.remainder):
            panels += _panels(m, end - begin, n, dtype, variant, width)
    return panels + (_layers(m, n, dtype, variant) if variant.copies > 1 else Traffic(0, 0))


def widths(k: int, variant: Variant, width: int) -> list[int]:
    """Those of the panels of one layer's k: they end where an owner of A or of B does."""
    borders = {end for parts in variant.grid for _, end in cuts(k, parts, variant.remainder)}
    found: list[int] = []
    begin = 0
    for end in sorted(borders):
        while begin < end:
            found.append(min(width, end - begin))
            begin += found[-1]
    return found


def pieces(elements: int, item: int, ranks: int, exchange: str) -> int:
    """Those of a panel on its way around a ring of so many ranks."""
    if exchange in _AT_ONCE:
        return 1
    return min(max(1, elements * item // PIECE), max(1, ranks - 1))


def _blocks(m: int, k: int, n: int, dtype: str, variant: Variant) -> Traffic:
    """Every block of A and of B visits the q − 1 other ranks of its row or column.

    Messages that were described once are as long as the largest block of the row or column. Of empty blocks
    nobody gets anything, but they are sent.
    """
    q, remainder = variant.grid[0], variant.remainder
    numbers = m * k + k * n
    if variant.exchange in DESCRIBED_ONCE:
        numbers = (m + n) * q * part(k, q, remainder)
    messages = 2 * q * q
    if variant.exchange in GETTING:
        there = [len(cuts(extent, q, remainder)) for extent in (m, k, n)]
        messages = (there[0] + there[2]) * there[1]
    return Traffic((q - 1) * messages, (q - 1) * numbers * ITEMSIZE[dtype])


def _panels(m: int, k: int, n: int, dtype: str, variant: Variant, width: int) -> Traffic:
    """Each panel of A goes to all others of its row, each of B to all others of its column."""
    item = ITEMSIZE[dtype]
    p, q = variant.grid
    messages = 0
    for each in widths(k, variant, width):
        for extent, parts, others in ((m, p, q), (n, q, p)):
            for size, count in sizes(extent, parts, variant.remainder):
                if size == 0 and variant.exchange in GETTING:
                    continue
                messages += count * (others - 1) * pieces(size * each, item, others, variant.exchange)
    return Traffic(messages, ((q - 1) * m * k + (p - 1) * k * n) * item)


def _layers(m: int, n: int, dtype: str, variant: Variant) -> Traffic:
    """Each layer gets its share of the rows of C from all others, in pieces."""
    item = ITEMSIZE[dtype]
    piece = constants("multiply", Sizes).layer_piece_bytes // item
    p, q = variant.grid
    messages = 0
    for rows, of_rows in sizes(m, p, variant.remainder):
        for columns, of_columns in sizes(n, q, variant.remainder):
            for share, layers in sizes(rows, variant.copies, "spread"):
                times = of_rows * of_columns * layers * (variant.copies - 1)
                messages += times * -(-share * columns // piece)
    return Traffic(messages, (variant.copies - 1) * m * n * item)
