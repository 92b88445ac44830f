"""Cost: what a way to do a job takes, as amounts of a machine's terms by phase, and so in seconds.

    operations/*/cost.py ── Cost: amounts ──┐
                                            ├── predict ──▶ Prediction: seconds of each phase, low, high
    machine/terms.py ──── Machine: terms ───┘

Amounts are those of the rank that has most to do in the phase. Counts (messages, bytes exchanged, operations)
are those of all ranks, exact where a job's course does not depend on its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from tilewise.base.units import seconds_text
from tilewise.machine.terms import Habit, Machine

_WORTH = 0.1  # of the total, that a faster term saves: less is not worth saying
PHASES = ("input", "compute", "exchange", "output", "verify")
TOTAL = "total"
_KNOWN = 2  # runs of a kind of job, from which on they say how far predictions are off
_WIDE = 2.0  # times the mean error: of a normal distribution nine of ten are within
_CLOCK = 0.005  # seconds that an interruption may take, whatever the job


class Span(NamedTuple):
    """Seconds, and how far they may be off."""

    seconds: float
    error: float = 0.0


class Part(Protocol):
    """Something that takes time."""

    def span(self, machine: Machine) -> Span:
        """How long, on `machine`."""

    def takes(self, machine: Machine) -> Sequence[Take]:
        """What of it takes that time."""

    def terms(self) -> Sequence[str]:
        """All that its time may depend on."""


class Take(NamedTuple):
    """`amount` of a machine's `term`, done by one while `at_once` of a node do as much."""

    term: str
    amount: float
    at_once: int = 1

    def span(self, machine: Machine) -> Span:
        seconds = machine.seconds(*self)
        return Span(seconds, seconds * machine.term(self.term).error)

    def takes(self, machine: Machine) -> Sequence[Take]:
        return [self]

    def terms(self) -> Sequence[str]:
        return [self.term]


class Longest(NamedTuple):
    """Parts that go on at the same time: the longest counts."""

    parts: tuple[Part, ...]

    def span(self, machine: Machine) -> Span:
        return max(part.span(machine) for part in self.parts)

    def takes(self, machine: Machine) -> Sequence[Take]:
        return max(self.parts, key=lambda part: part.span(machine)).takes(machine)

    def terms(self) -> Sequence[str]:
        return [name for part in self.parts for name in part.terms()]


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of each phase, which add up. Those `behind` go on while ranks compute, and take time where they
    take longer than that.

    Where the course of a job depends on its numbers, and is not known yet, it is not `sure`: then this is
    what may be expected, and it may take from `course[0]` to `course[1]` times as long.
    `messages` and `exchanged` bytes, received by all ranks, and `flops`: those of one repetition; None where
    they depend on the numbers. `ranks` are those of a node, and nodes. `apart`: what is done outside of all
    phases. `habits`: of phases and the `total`, the names of what jobs of this kind teach; in those that are
    `peculiar` terms mean what they mean nowhere else.
    """

    phases: Mapping[str, Sequence[Part]]
    behind: Mapping[str, Sequence[Part]] = {}
    apart: Sequence[Part] = ()
    habits: Mapping[str, str] = {}
    peculiar: Sequence[str] = ()
    ranks: tuple[int, int] = (1, 1)
    sure: bool = True
    course: tuple[float, float] = (1.0, 1.0)
    messages: int | None = None
    exchanged: int | None = None
    flops: float | None = None

    def terms(self) -> list[str]:
        """Those of all parts, each once."""
        parts = [part for phases in (self.phases, self.behind) for some in phases.values() for part in some]
        return list(dict.fromkeys(name for part in parts for name in part.terms()))

    def starting(self) -> list[Part]:
        """The parts of the command outside of all phases: starting and ending first of all."""
        on_node, nodes = self.ranks
        return [
            Take("start", 1),
            Take("start/rank", on_node - 1),
            Take("start/nodes", math.log2(nodes)),
            *self.apart,
        ]


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of each phase of the slowest rank, of `total` and of the whole command (`wall`); `total` is
    from `low` to `high`, as far as anybody knows."""

    phases: dict[str, float]
    total: float
    wall: float
    low: float
    high: float

    def as_dict(self) -> dict[str, float]:
        """As records have it."""
        return {
            **self.phases,
            "total": self.total,
            "wall": self.wall,
            "low": self.low,
            "high": self.high,
        }


def predict(cost: Cost, machine: Machine) -> Prediction:
    """What `cost` takes on `machine`. Some tens of microseconds."""
    spans = {phase: usual(cost, phase, machine) for phase in PHASES}
    for phase, parts in cost.behind.items():
        there, hidden = spans[phase], of_phase(parts, machine)
        left = max(0.0, hidden.seconds - spans["compute"].seconds)
        error = hidden.error * left / hidden.seconds if left else 0.0
        spans[phase] = Span(there.seconds + left, math.hypot(there.error, error))
    total = sum(span.seconds for span in spans.values())
    error = math.sqrt(sum(span.error**2 for span in spans.values()))
    habit = habit_of(cost, TOTAL, machine)
    if habit.runs >= _KNOWN:
        error = max(_WIDE * habit.error * total, _CLOCK)
    start = of_phase(cost.starting(), machine).seconds
    return Prediction(
        phases={phase: span.seconds for phase, span in spans.items()},
        total=total,
        wall=total + start,
        low=max(0.0, total * cost.course[0] - error),
        high=total * cost.course[1] + error,
    )


def habit_of(cost: Cost, phase: str, machine: Machine) -> Habit:
    """What jobs of this kind have taught of a phase or of the `total`; of what none has, that terms hold."""
    return machine.habits.get(cost.habits.get(phase, ""), Habit())


def usual(cost: Cost, phase: str, machine: Machine) -> Span:
    """The seconds of a phase, as jobs of this kind were seen to take."""
    span, factor = of_phase(cost.phases.get(phase, ()), machine), habit_of(cost, phase, machine).factor
    return Span(span.seconds * factor, span.error * factor)


def told_apart(one: Mapping[str, float], other: Mapping[str, float]) -> str:
    """`input takes 0.03 s, not 0.5`: the phase, or starting, that makes `one` faster or slower than `other`.

    Both as `Prediction.as_dict` has them.
    """
    ours, theirs = (
        {**{phase: each[phase] for phase in PHASES}, "starting": each["wall"] - each["total"]}
        for each in (one, other)
    )
    side = 1 if one["wall"] > other["wall"] else -1
    most = max(ours, key=lambda name: side * (ours[name] - theirs[name]))
    return f"{most} takes {seconds_text(ours[most])} s, not {seconds_text(theirs[most])}"


class Heaviest(NamedTuple):
    """What takes most of the time: the `term`, the total, and what it would save to have it twice as fast."""

    term: str
    total: float
    gain: float


def heaviest(cost: Cost, machine: Machine) -> Heaviest | None:
    """The term of which it would save most to have it twice as fast; None where none would save a tenth."""
    total = predict(cost, machine).total
    best: Heaviest | None = None
    for name in cost.terms():
        faster = machine.term(name).times(0.5, "supposed", 0.0)
        supposed = msgspec.structs.replace(machine, terms={**machine.terms, name: faster})
        gain = total - predict(cost, supposed).total
        if gain > (best.gain if best else _WORTH * total):
            best = Heaviest(name, total, gain)
    return best


def of_phase(parts: Iterable[Part], machine: Machine) -> Span:
    """The seconds of `parts`, one after another."""
    spans = [part.span(machine) for part in parts]
    return Span(sum(span.seconds for span in spans), math.sqrt(sum(span.error**2 for span in spans)))
