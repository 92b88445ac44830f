"""Says whether the table of processors chooses the faster kernel here, from products timed in turn.

launch 0   tiles BLAS tiles BLAS …  ──▶ time of the chosen one / time of the other ┐
launch 1   tiles BLAS tiles BLAS …  ──▶ …                                          ├─▶ interval, against 1.05
launch 2   tiles BLAS tiles BLAS …  ──▶ …                                          ┘
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from tilewise.lab.measurement.result import Line
from tilewise.lab.statistics.decisions import decided
from tilewise.lab.statistics.intervals import launch_interval

CHOICES = ("tiles", "blas")
TYPES = ("float32", "float64")  # that there are tiles for
WORTH = 1.05
"""The other kernel is so many times as fast where the choice is called wrong; `compare` has 5 % too."""

_NAMES = {"tiles": "tiles", "blas": "BLAS"}


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One type and size: how many times as fast as the `chosen` kernel the other is, with a 95 % interval.

    `holds` is None where the interval reaches to both sides of 1.05, or a single launch gives none.
    """

    dtype: str
    size: int
    chosen: str
    ratio: float
    low: float
    high: float
    holds: bool | None

    @property
    def other(self) -> str:
        """The kernel that jobs do not use."""
        (name,) = {*CHOICES} - {self.chosen}
        return name


def choices(lines: Sequence[Line]) -> list[Choice]:
    """What the lines of both kernels say, by type and size, in their order."""
    both: dict[tuple[str, int], dict[str, Line]] = {}
    for line in lines:
        if line.chosen in CHOICES and line.kernel in CHOICES and line.summary is not None:
            both.setdefault((line.dtype, line.size), {})[line.kernel] = line
    return [_choice(pair[CHOICES[0]].chosen, pair) for pair in both.values() if len(pair) == len(CHOICES)]


def _choice(chosen: str, pair: dict[str, Line]) -> Choice:
    (other,) = {*CHOICES} - {chosen}
    ratios = [
        statistics.median(ours) / statistics.median(theirs)
        for ours, theirs in zip(pair[chosen].launches, pair[other].launches, strict=True)
        if ours and theirs and min(theirs) > 0
    ]
    ratio = statistics.median(ratios) if ratios else float("nan")
    interval = launch_interval(ratios)
    low, high = interval or (ratio, ratio)
    return Choice(
        dtype=pair[chosen].dtype,
        size=pair[chosen].size,
        chosen=chosen,
        ratio=ratio,
        low=low,
        high=high,
        holds=None if interval is None else decided(lambda each: each <= WORTH, ratio, interval),
    )


def sentences(found: Sequence[Choice]) -> list[str]:
    """One for each type: the choice holds, is wrong at a size, or is not decided."""
    types = dict.fromkeys(choice.dtype for choice in found)
    return [_sentence(dtype, [choice for choice in found if choice.dtype == dtype]) for dtype in types]


def _sentence(dtype: str, found: list[Choice]) -> str:
    wrong = [choice for choice in found if choice.holds is False]
    if wrong:
        worst = max(wrong, key=lambda choice: choice.ratio)
        others = [choice for choice in wrong if choice is not worst]
        more = f", and faster at {_sizes(others)}" if others else ""
        return (
            f"{dtype}: the choice of {_NAMES[worst.chosen]} is wrong here:"
            f" {_NAMES[worst.other]} {_told(worst)} as fast at {worst.size}²{more};"
            f" use --kernel {worst.other}"
        )
    open_ = [choice for choice in found if choice.holds is None]
    if open_:
        worst = max(open_, key=lambda choice: choice.ratio)
        return (
            f"{dtype}: the choice of kernel is undecided here at {_sizes(open_)}: at {worst.size}²"
            f" {_NAMES[worst.other]} {_told(worst)} as fast as {_NAMES[worst.chosen]}, which jobs use;"
            " more --launches tell"
        )
    each = [
        f"{_NAMES[kernel]} at {_sizes([choice for choice in found if choice.chosen == kernel])}"
        for kernel in dict.fromkeys(choice.chosen for choice in found)
    ]
    return f"{dtype}: the choice of kernel holds here: {', '.join(each)}"


def _told(choice: Choice) -> str:
    verb = "are" if choice.other == "tiles" else "is"
    return f"{verb} {choice.ratio:.2f} ({choice.low:.2f}–{choice.high:.2f}) times"


def _sizes(found: list[Choice]) -> str:
    return ", ".join(f"{choice.size}²" for choice in found)
