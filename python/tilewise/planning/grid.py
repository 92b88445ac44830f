"""Process grids: the shapes that `p × q` ranks can take, and which shape a product wants. Integers only."""

from __future__ import annotations

import itertools
import math

from tilewise.base.errors import UsageError
from tilewise.base.units import plural


def nearest_square(ranks: int, rows: int = 0, columns: int = 0) -> tuple[int, int]:
    """The grid p × q = `ranks` nearest to a square, p ≤ q; turned when the result is taller than wide."""
    p = next(d for d in range(math.isqrt(ranks), 0, -1) if ranks % d == 0)
    q = ranks // p
    return (q, p) if rows > columns else (p, q)


def smallest_prime_factor(number: int) -> int:
    """The smallest prime that divides `number` (≥ 2)."""
    return next((d for d in range(2, math.isqrt(number) + 1) if number % d == 0), number)


def part(extent: int, parts: int, remainder: str) -> int:
    """The largest of `parts` parts of `extent`: cut evenly (`spread`), or the rest all on the `last`."""
    return extent - extent // parts * (parts - 1) if remainder == "last" else -(-extent // parts)


def cuts(extent: int, parts: int, remainder: str) -> list[tuple[int, int]]:
    """The parts of `extent` that are not empty, as [begin, end)."""
    base, extra = divmod(extent, parts)
    larger = extra if remainder == "spread" else 0
    borders = [part * base + min(part, larger) for part in range(parts)] + [extent]
    return [(begin, end) for begin, end in itertools.pairwise(borders) if begin < end]


def sizes(extent: int, parts: int, remainder: str) -> list[tuple[int, int]]:
    """The sizes of `parts` parts of `extent`, two at most, and how many have each; empty ones count, too."""
    base, extra = divmod(extent, parts)
    if remainder == "last":
        found = [(base, parts - 1), (base + extra, 1)]
    else:
        found = [(base + 1, extra), (base, parts - extra)]
    return [(size, count) for size, count in found if count]


def rectangles(
    shape: tuple[int, int], grid: tuple[int, int], remainder: str = "spread"
) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Rows and columns [begin, end) that the places of `grid` own; empty parts are left away."""

    blocks = [
        (rows, columns)
        for rows in cuts(shape[0], grid[0], remainder)
        for columns in cuts(shape[1], grid[1], remainder)
    ]
    return blocks or [((0, shape[0]), (0, shape[1]))]


def choose(
    algorithm: str, ranks: int, wanted: tuple[int, int] | None, rows: int, columns: int
) -> tuple[tuple[int, int], int]:
    """Grid and layers of `algorithm` on `ranks` ranks for a `rows` × `columns` result.

    `wanted` is the user's grid. Raises UsageError, saying what would do, when it does not fit the ranks or
    the algorithm.
    """
    if wanted is not None and 0 in wanted:
        raise UsageError(f"--grid {wanted[0]}x{wanted[1]} has no ranks; both numbers must be 1 or more")
    if algorithm == "replicated":
        return _layers(ranks, wanted, rows, columns)
    if wanted is not None and wanted[0] * wanted[1] != ranks:
        p, q = wanted
        near = nearest_square(ranks)
        raise UsageError(
            f"--grid {p}x{q} makes {plural(p * q, 'rank')}, but there are {ranks}",
            f"-n {p * q}, or --grid {near[0]}x{near[1]}",
        )
    if algorithm == "cannon":
        q = math.isqrt(ranks)
        if wanted is not None and wanted[0] != wanted[1]:
            raise UsageError(
                f"cannon works on square grids only, not {wanted[0]}x{wanted[1]}", f"--grid {q}x{q}"
            )
        return (q, q), 1
    return wanted or nearest_square(ranks, rows, columns), 1


def _layers(
    ranks: int, wanted: tuple[int, int] | None, rows: int, columns: int
) -> tuple[tuple[int, int], int]:
    if wanted is None:
        copies = smallest_prime_factor(ranks)
        return nearest_square(ranks // copies, rows, columns), copies
    p, q = wanted
    if ranks % (p * q) != 0 or ranks // (p * q) < 2:
        raise UsageError(
            f"replicated needs 2 or more whole copies of its grid, but {ranks} ranks are no such multiple of "
            f"{p}x{q}",
            f"-n {2 * p * q}",
        )
    return wanted, ranks // (p * q)
