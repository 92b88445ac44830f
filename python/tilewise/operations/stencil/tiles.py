"""Which part of a field that does not fit in memory is swept at a time, and how often the field is read.

A pass goes from file to file, tile after tile, and does `depth` sweeps over each. For these it needs
R = depth · radius cells around a tile, which neighbouring tiles compute, too:

    cost of a number = passes · TRANSFER · (1 + 2R / columns) · (1 + CALL / columns)
                       + steps · (1 + R / rows) · (1 + R / columns)

in sweeps over it, where TRANSFER is what it costs to read, convert and write it, and CALL numbers are moved
in the time that a call for each row of a narrow tile costs. A factor is 1 where a tile is as long as the
field. Rows around a tile are read once, as the rank goes downwards; columns again. So deep passes read less,
and compute more twice. Of depths that need different numbers of passes, and of some widths, the cheapest is
taken, each time with as many rows as fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

TRANSFER = 64
CALL = 2048
LEAST_ROWS, LEAST_COLUMNS = 64, 1024  # of a tile, as stored; smaller ones would be read for most of the time
_MULTIPLE = 16  # of columns: cache lines


class Tiles(NamedTuple):
    """Rows and columns of a tile, as they are stored, and sweeps of a pass."""

    rows: int
    columns: int
    depth: int


class Field(NamedTuple):
    """A plane as it is stored, and what is to be done: at most `stretch` sweeps without a snapshot."""

    rows: int
    columns: int
    radius: int
    steps: int
    stretch: int

    def passes(self, depth: int) -> int:
        """Passes of so many sweeps, each of which ends at the latest where a snapshot is due."""
        whole, rest = divmod(max(1, self.steps), self.stretch)
        return whole * -(-self.stretch // depth) + -(-rest // depth)

    def cost(self, tiles: Tiles) -> float:
        """Sweeps over a number that all that is done with it costs."""
        reach = tiles.depth * self.radius
        down = reach / tiles.rows if tiles.rows < self.rows else 0.0
        across = call = 0.0
        if tiles.columns < self.columns:
            across, call = reach / tiles.columns, CALL / tiles.columns
        sweeps = self.steps * (1 + down) * (1 + across)
        return self.passes(tiles.depth) * TRANSFER * (1 + 2 * across) * (1 + call) + sweeps


def cheapest(
    field: Field,
    depth: int | None,
    ranks: int,
    whole_rows: bool,
    over: Callable[[Tiles], int],
) -> Tiles | None:
    """The cheapest tiles that fit, of as many bands as all `ranks` have work with; None where none fit.

    `over`: bytes that tiles need beyond what there is, at most 0 where they fit, and more by the same number
    for each row. `depth` is what the user wants, `whole_rows`: a tile is as wide as the field.
    """
    found: list[Tiles] = []
    for sweeps in [depth] if depth else _depths(field.stretch):
        for columns in _widths(field.columns, whole_rows):
            rows = _most_rows(field, columns, sweeps, over)
            if rows > 0:
                found.append(_dealt(field, Tiles(rows, columns, sweeps), ranks))
    return min(found, key=field.cost) if found else None


def smallest(field: Field, depth: int | None, whole_rows: bool) -> Tiles:
    """The least that is ever taken."""
    columns = min(_widths(field.columns, whole_rows))
    return Tiles(min(field.rows, LEAST_ROWS), columns, depth or 1)


def _depths(stretch: int) -> Iterator[int]:
    """Depths that make different numbers of passes, the deepest first."""
    passes, before = 1, 0
    while before != 1:
        depth = -(-stretch // passes)
        if depth != before:
            yield depth
        before, passes = depth, max(passes + 1, passes * 5 // 4)


def _widths(columns: int, whole: bool) -> Iterator[int]:
    parts = 1
    while parts == 1 or (not whole and columns // parts >= LEAST_COLUMNS):
        yield columns if parts == 1 else min(columns, -(-columns // parts // _MULTIPLE + 1) * _MULTIPLE)
        parts = max(parts + 1, parts * 3 // 2)


def _most_rows(field: Field, columns: int, depth: int, over: Callable[[Tiles], int]) -> int:
    """As many rows as fit; 0 where too few do."""
    if over(Tiles(field.rows, columns, depth)) <= 0:
        return field.rows
    least = min(field.rows, LEAST_ROWS)
    beyond = over(Tiles(least, columns, depth))
    if beyond > 0 or least == field.rows:
        return 0
    row = over(Tiles(least + 1, columns, depth)) - beyond
    return min(field.rows - 1, least + (-beyond // row if row > 0 else 0))


def _dealt(field: Field, tiles: Tiles, ranks: int) -> Tiles:
    """Tiles that are nearly equal, and that every rank has as many of."""
    bands, strips = -(-field.rows // tiles.rows), -(-field.columns // tiles.columns)
    if bands * strips % ranks:
        bands = -(-bands // ranks) * ranks
    return tiles._replace(rows=-(-field.rows // bands))
