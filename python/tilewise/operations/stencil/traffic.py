"""Messages of a stencil and the bytes in them, counted as the worker counts them: what ranks receive.

A part's margin goes `reach` cells beyond it on every side, over as many parts as that takes, and around where
the boundary is periodic. What lies in one part in both directions is one message; what is the part's own is
none.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewise.planning.grid import cuts


class Stretch(NamedTuple):
    """Cells of a margin along one direction that are those of one part, which may be the `own`."""

    cells: int
    own: bool


class Traffic(NamedTuple):
    """What all ranks receive for one exchange, and what the one does that receives most."""

    messages: int
    cells: int
    most_messages: int
    most_cells: int


def traffic(
    extents: tuple[int, int],
    grid: tuple[int, int],
    reach: int,
    *,
    periodic: bool,
    corners: bool,
    remainder: str = "spread",
) -> Traffic:
    """Of one exchange of margins of `reach` cells; takes as long as the grid has rows and columns."""
    down, across = (
        [
            (end - begin, margin(parts, place, reach, extent, periodic))
            for place, (begin, end) in enumerate(parts)
        ]
        for extent, parts in (
            (extent, cuts(extent, count, remainder)) for extent, count in zip(extents, grid, strict=True)
        )
    )
    messages = cells = 0
    for one, other in ((down, across), (across, down)):
        foreign = [stretch.cells for _, margins in one for stretch in margins if not stretch.own]
        messages += len(foreign) * len(other)
        cells += sum(foreign) * sum(size for size, _ in other)
    if corners:
        of_rows, of_columns = ([s for _, margins in each for s in margins] for each in (down, across))
        own_rows, own_columns = ([s for s in each if s.own] for each in (of_rows, of_columns))
        messages += len(of_rows) * len(of_columns) - len(own_rows) * len(own_columns)
        cells += _cells(of_rows) * _cells(of_columns) - _cells(own_rows) * _cells(own_columns)
    # Some rank has the most neighbours in both directions, or nearly so.
    (rows, above), (columns, beside) = (
        (max((size for size, _ in each), default=0), max((_foreign(m) for _, m in each), default=(0, 0)))
        for each in (down, across)
    )
    meet = (above[1] * beside[1], above[0] * beside[0]) if corners else (0, 0)
    return Traffic(
        messages,
        cells,
        above[1] + beside[1] + meet[0],
        above[0] * columns + beside[0] * rows + meet[1],
    )


def margin(
    parts: list[tuple[int, int]], place: int, reach: int, extent: int, periodic: bool
) -> list[Stretch]:
    """What lies `reach` cells before and behind part `place`, part by part."""
    begin, end = parts[place]
    found: list[Stretch] = []
    for first, last in ((begin - reach, begin), (end, end + reach)):
        at = first
        while at < last:
            if not 0 <= at < extent and not periodic:
                at = 0 if at < 0 < last else last
                continue
            inside = at % extent
            owner = next(i for i, (_, stop) in enumerate(parts) if inside < stop)
            length = min(last - at, parts[owner][1] - inside)
            found.append(Stretch(length, owner == place))
            at += length
    return found


def _foreign(stretches: list[Stretch]) -> tuple[int, int]:
    """Cells of others, and in how many stretches."""
    foreign = [stretch for stretch in stretches if not stretch.own]
    return _cells(foreign), len(foreign)


def _cells(stretches: list[Stretch]) -> int:
    return sum(stretch.cells for stretch in stretches)
