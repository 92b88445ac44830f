"""Repeats launches of the points that undecided claims are about, until their intervals leave the thresholds.

claims ──▶ undecided ──▶ its points, once more each ──▶ claims ──▶ … at most N times a point

A claim is left alone where its figure is nearer to the threshold than sessions are to each other: no launch
decides it. All others go on together, a round each, so that drift meets all of their points alike.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Collection

import msgspec

from tilewise.base.units import plural
from tilewise.lab.study.claims import UNDECIDED
from tilewise.lab.study.evaluation import Evaluated
from tilewise.lab.study.run import Outcome

_LOOK_SECONDS = 0.05  # of reading and judging everything once more, for each point that goes on


class Ahead(msgspec.Struct, frozen=True):
    """What may still be launched: undecided `claims`, their `points`, and `seconds` at most."""

    claims: int
    points: list[str]
    seconds: float

    def told(self, most: int) -> str:
        """A sentence, said before it begins."""
        launches = f"up to {plural(most, 'more launch')} of each of {plural(len(self.points), 'point')}"
        minutes = f"{self.seconds:.0f} s" if self.seconds < 100 else f"{self.seconds / 60:.0f} min"
        return f"{plural(self.claims, 'claim')} undecided: {launches}, {minutes} at most"


def ahead(found: Evaluated, most: int, launched: Counter[str] | None = None) -> Ahead:
    """What is undecided and can go on, where a point may be launched `most` times; some were already."""
    done = launched or Counter[str]()
    opened = [each for each in found.verdicts if each.verdict == UNDECIDED and not each.settled]
    open_points = {key for each in opened for key in each.points}
    seconds, keys = 0.0, []
    for point in found.results.points:
        left = most - done[point.key]
        if point.key in open_points and point.entries and left > 0:
            keys.append(point.key)
            usual = statistics.median(entry.seconds for entry in point.entries)
            seconds += left * (usual + _LOOK_SECONDS)
    return Ahead(sum(bool(set(each.points) & set(keys)) for each in opened), keys, seconds)


def until_decided(
    most: int,
    look: Callable[[], Evaluated],
    again: Callable[[Collection[str]], Outcome],
    tell: Callable[[str], None],
) -> Outcome | None:
    """Goes on while claims are undecided and a point of theirs was launched fewer than `most` times here.

    `look` reads what there is by now, `again` launches points once more. Returns how all points ended, with
    all launches counted; None where there was nothing to do.
    """
    launched: Counter[str] = Counter()
    first = left = ahead(look(), most)
    if not first.points:
        return None
    tell(first.told(most))
    total, outcome = 0, None
    while left.points:
        outcome = again(left.points)
        total += outcome.launched
        launched.update(left.points)  # those of other parts and those that fail too, so that it ends
        left = ahead(look(), most, launched)
    assert outcome is not None
    outcome.launched = total
    return outcome
