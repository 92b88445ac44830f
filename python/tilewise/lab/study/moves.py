"""How a figure moves where a point has only one of its launches, for intervals of what is made of cells.

point a: launches 1.0 1.2   ──▶  rule(1.0, b)  rule(1.2, b)                  a: [ … ]
point b: launches 3.0 2.8 3.1 ─▶ rule(a, 3.0)  rule(a, 2.8)  rule(a, 3.1)    b: [ … ]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

Moves = Mapping[str, Sequence[float]]


class Movable(Protocol):
    """A figure, and what it would be with single launches of each point that it is made of."""

    value: float | None
    moves: Moves


def placed(cell: Movable, point: str, launch: int) -> float | None:
    """The figure where `point` has only that launch; as it is where it does not depend on the point."""
    moved = cell.moves.get(point, ())
    return moved[launch] if launch < len(moved) else cell.value


def moves_of(rule: Callable[[str, int], float], cells: Iterable[Movable]) -> dict[str, list[float]]:
    """What `rule(point, launch)` comes to for each launch of each point that one of `cells` depends on."""
    counts: dict[str, int] = {}
    for cell in cells:
        for point, moved in cell.moves.items():
            counts[point] = min(len(moved), counts.get(point, len(moved)))
    return {point: [rule(point, launch) for launch in range(count)] for point, count in counts.items()}
