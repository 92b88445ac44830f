"""How long ranks wait for panels that go around rings, hop by hop, while they compute.

    step s, owner o:    o ──▶ o+1 ──▶ o+2 ──▶ …     A rank passes a panel on where it looks for messages:
                                                    between slices of its product, or while it waits.

One ring stands for the rows and the columns of the grid, whose panels come to a rank at the same time. Hops
are added up rank by rank and step by step, as max-plus algebra has it: a panel is there once it was sent and
the link took its time; a product begins once its panel is there and the one before it is done.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tilewise.machine.terms import Machine
from tilewise.planning.cost import Part, Span, Take, of_phase

SLICE = 384  # of k, after which a rank that computes looks for messages


class Rings(NamedTuple):
    """Panels of so many `widths` of k, whose owners change where `owners` do, around `ranks` ranks.

    `product` and `hop` are the parts of one unit of k. With `overlap` a panel is on its way while the one
    before it is multiplied.
    """

    ranks: int
    widths: tuple[int, ...]
    owners: tuple[int, ...]
    product: tuple[Part, ...]
    hop: tuple[Part, ...]
    message: tuple[Part, ...]
    overlap: bool

    def span(self, machine: Machine) -> Span:
        """Seconds beyond those of all products."""
        product, hop = of_phase(self.product, machine), of_phase(self.hop, machine)
        start = of_phase(self.message, machine).seconds
        end = [0.0] * self.ranks  # of each rank's last product
        begun = [0.0] * self.ranks
        for step, (width, owner) in enumerate(zip(self.widths, self.owners, strict=True)):
            takes, travels = width * product.seconds, width * hop.seconds + start
            posted = begun if self.overlap and step else end  # a panel is asked for, and sent by its owner
            slices = max(1, width // SLICE)
            there = posted[owner]
            now = list(end)
            for place in range(1, self.ranks):
                rank = (owner + place) % self.ranks
                before = (rank - 1) % self.ranks
                sent = there if place == 1 else _looked(there, begun[before], end[before], slices)
                there = max(sent, posted[rank]) + travels
                now[rank] = max(end[rank], there)
            begun = now
            end = [moment + takes for moment in now]
        computing = sum(self.widths) * product.seconds
        waited = max(end, default=0.0) - computing
        return Span(waited, waited * (hop.error / hop.seconds if hop.seconds else 0.0))

    def takes(self, machine: Machine) -> Sequence[Take]:
        """Nothing: what is waited for is many terms at once."""
        return []

    def terms(self) -> Sequence[str]:
        """Those of products, hops and messages."""
        return [name for part in (*self.product, *self.hop, *self.message) for name in part.terms()]


def _looked(there: float, begun: float, end: float, slices: int) -> float:
    """When a rank that computes from `begun` to `end` finds what is `there`."""
    if not begun < there < end:
        return there
    piece = (end - begun) / slices
    return begun + math.ceil((there - begun) / piece) * piece
