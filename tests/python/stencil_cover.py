"""Ways to run a stencil, few enough to run: every two values of two different choices meet at least once."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from tilewise.operations.stencil.options import HALOS
from tilewise.planning.names import EXCHANGES

CHOICES: dict[str, tuple[object, ...]] = {
    "boundary": ("fixed", "periodic", "mirror", "constant:-1.25"),  # one of each kind
    "weights": ("star5", "star9", "w3.npy", "w7.npy"),
    "cut": ("rows", "columns", "grid"),
    "ranks": (2, 3, 4, 6),
    "exchange": tuple(EXCHANGES),
    "halo": tuple(HALOS),
    "depth": (1, 2, 5),
    "remainder": ("spread", "last"),
    "threads": (1, 2),
}
RADIUS = {"star5": 1, "star9": 2, "w3.npy": 1, "w7.npy": 3}
SHAPE = (67, 53)
Way = dict[str, object]


def possible(way: Way) -> bool:
    """Whether the command takes it: the exchange can do the halo so, and parts are large enough."""
    ranks, depth = int(str(way["ranks"])), int(str(way["depth"]))
    reach = RADIUS[str(way["weights"])] * depth
    least = {"rows": SHAPE[0] // ranks, "columns": SHAPE[1] // ranks, "grid": min(SHAPE) // 3}[
        str(way["cut"])
    ]
    return way["exchange"] in HALOS[str(way["halo"])] and reach <= least


def cover(seed: int = 1) -> Iterator[Way]:
    """The ways, in a fixed sequence: of some drawn ones always that which has most pairs not seen yet."""
    draw = random.Random(seed)

    def drawn() -> Way:
        while True:
            way: Way = {name: draw.choice(values) for name, values in CHOICES.items()}
            if possible(way):
                return way

    def pairs(way: Way) -> set[tuple[tuple[str, object], tuple[str, object]]]:
        return set(itertools.combinations(way.items(), 2))

    left = set().union(*(pairs(drawn()) for _ in range(6000)))
    while left:
        best = max((drawn() for _ in range(150)), key=lambda way: len(pairs(way) & left))
        if pairs(best) & left:
            left -= pairs(best)
            yield best
