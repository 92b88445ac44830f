"""Cost: what a way to do a job takes, as amounts of a machine's terms by phase, and so in seconds.

    operations/*/cost.py ── Cost: amounts ──┐
                                            ├── predict ──▶ Prediction: seconds of each phase, low, high
    machine/terms.py ──── Machine: terms ───┘

Amounts are those of the rank that has most to do in the phase. Counts (messages, bytes exchanged, operations)
are those of all ranks, exact where a job's course does not depend on its numbers.

Reading inputs and writing a result costs by strategy, format and the state of the page cache:

    positioned   each thread calls for each row of its block, or a few times for whole rows
    MPI's own    one thread of each rank calls, and waits
    root         rank 0 calls for everything, and all else is sent: a link, and one core, do all of it
    mapped       where pages are computed with as they lie, nothing is copied; else as positioned
    two_phase    whole panels, then an exchange among ranks
    uncached     the device, and nothing else

What is read into memory that was never touched pays for its pages as well. Where these come from:
docs/design/formats.md, and `tilewise measure file`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from tilewise.base.units import seconds_text
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.launch.job import Variant
from tilewise.machine import storage
from tilewise.machine.terms import AT, Habit, Machine
from tilewise.planning.need import characters
from tilewise.planning.plan import Plan
from tilewise.planning.where import Spread

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
        """Amounts that take that time."""

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


class Traffic(NamedTuple):
    """Messages and numbers that all ranks receive, and those of the rank that receives most."""

    messages: int = 0
    numbers: int = 0
    most_messages: int = 0
    most: int = 0


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
        """Names of all terms, without repetition."""
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
    """Prediction of `cost` on `machine`. Takes some tens of microseconds."""
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
    """Habit of jobs of this kind in a phase or in the `total`; where there is none, the terms hold."""
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
    """The heaviest `term`, the total, and the gain if it were twice as fast."""

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


_ROOT = ("root", "root_collective")
_EXCHANGING = ("collective", "split_collective", "two_phase")
DEALT = ("shared_pointer", "ordered")  # what a rank has read goes on to those that want it
_ONE_THREAD = (*_EXCHANGING, *DEALT, "independent")
_AROUND = 8  # pages of a mapped file that come with one that is touched
LONG_CALL = 1 << 20  # bytes that one call moves at most
_TRANSFERS = 3  # of a byte of the page cache that goes to memory: it comes, and so does its place, which goes


class Use:
    """Who reads and writes: so many ranks, of which `on_node` share a node, with threads each."""

    def __init__(self, variant: Variant, spread: Spread) -> None:
        self.ranks, self.threads, self.on_node = variant.ranks, variant.threads, spread.on_node
        self.ranks_and_nodes = (spread.on_node, spread.nodes)
        self.here = spread.nodes == 1  # where the page cache that can be looked at is that of the ranks
        self.link = "link/node" if spread.nodes > 1 else "link/core"
        self.message = "message/node" if spread.nodes > 1 else "message/core"

    def shared_out(self, term: str, amount: float) -> Take:
        """`amount` in all, done by all threads of all ranks."""
        return Take(term, amount / (self.ranks * self.threads), self.on_node * self.threads)

    def by_way(self, way: str, term: str, amount: float) -> Take:
        """Amount shared out among the threads that call where files are read or written that `way`."""
        return self.by_ranks(term, amount) if way in _ONE_THREAD else self.shared_out(term, amount)

    def by_ranks(self, term: str, amount: float) -> Take:
        """Amount shared out among the ranks, by one thread of each."""
        return Take(term, amount / self.ranks, self.on_node)

    def new_pages(self, amount: float) -> list[Part]:
        """Memory of that size that nobody has touched yet, by all threads of all ranks."""
        return [self.shared_out("fault", amount), self.shared_out("recall", amount)]

    def sent(self, amount: float, messages: float = 0.0) -> list[Part]:
        """Bytes and messages that one rank receives, while all others do."""
        return [Take(self.message, messages), Take(self.link, amount, self.on_node)]


def reading(
    region: Region,
    way: str,
    use: Use,
    *,
    rows: int = 0,
    times: float = 1.0,
    whole_rows: bool = True,
    fresh: bool = True,
    cached: bool = False,
) -> list[Part]:
    """The parts of reading a whole region once (or `times`), each number by one rank.

    `rows` are those of a rank's block as the file stores it, which are `whole_rows` or parts of them.
    `fresh`: into memory that nobody has touched yet. `cached`: into a buffer that stays in a processor's
    cache, so that of the bytes that pass between it and memory those of the file are left.
    """
    size = region.bytes * times
    pages = use.new_pages(size) if fresh else []
    if region.generator:
        return [use.shared_out("generate", size), *pages]
    if region.encoding == "text":
        end = region.file_bytes if region.text_end < 0 else region.text_end
        share = times * region.bytes / max(1, region.uncut.bytes)
        return [use.shared_out("parse", max(0, end) * share), *_spread_out(use, size, way), *pages]
    if region.chunks is not None:
        return [use.shared_out("unpack", size), *_spread_out(use, size, "two_phase"), *pages]
    cold = way == "uncached" or is_cold(region, use)
    term = at("device/read" if cold else "read", region.path)
    if way in _ROOT:
        return [
            Take(term, size),
            Take("copy", 2 * size),
            *use.sent(size * (use.ranks - 1) / use.ranks),
            *pages,
        ]
    calls = rows if not whole_rows else size / use.ranks / LONG_CALL
    moved = size / _TRANSFERS if cached and not cold else size
    parts: list[Part] = [use.by_way(way, term, moved), Take("call", calls * times / use.threads), *pages]
    parts += _through_buffer(use, size, way)
    return parts + (_spread_out(use, size, way) if way in _EXCHANGING else [])


def touching(region: Region, use: Use) -> list[Part]:
    """The parts of computing with the pages of a mapped file, beside what is computed: those that are not in
    memory come from the device, and many are mapped at once."""
    if is_cold(region, use):
        return [use.shared_out(at("device/read", region.path), region.bytes)]
    return [use.shared_out("fault", region.bytes / _AROUND)]


def is_cold(region: Region, use: Use) -> bool:
    """True if the page cache of this machine, on which the ranks run, has next to nothing of a file."""
    return use.here and storage.cache_state(region.path) == "cold"


def at(term: str, path: str) -> str:
    """A term of files, on the file system of `path`."""
    mount = storage.mount_point(path) if path else ""
    return f"{term}{AT}{mount}" if mount else term


def into_cache(path: str) -> list[str]:
    """The terms of a byte that is written into a new page of the page cache, on the file system of `path`."""
    return [at("write", path), "recall"]


def writing(
    plan: Plan, target: Target | None, use: Use, *, rows: int = 0, whole_rows: bool = True
) -> list[Part]:
    """The parts of writing the result of `plan`; `target` is None where nothing is written."""
    if target is None:
        return []
    kind, way, dtype = target.format, plan.job.variant.write, plan.dtype
    numbers = plan.shape[0] * plan.shape[1]
    size = float(numbers * ITEMSIZE[dtype])
    if kind.text:
        text = numbers * characters(dtype) * 0.8
        written = [use.shared_out(term, text) for term in into_cache(target.path)]
        return [use.shared_out("format", text), *_spread_out(use, size, way), *written]
    terms = [at("device/write", target.path)] if way == "uncached" else into_cache(target.path)
    if way in _ROOT:
        return [*(Take(term, size) for term in terms), *use.sent(size * (use.ranks - 1) / use.ranks)]
    calls = rows if not whole_rows else size / use.ranks / LONG_CALL
    parts: list[Part] = [use.by_way(way, term, size) for term in terms]
    parts += [Take("call", calls / use.threads), *_through_buffer(use, size, way)]
    if not kind.one_array and not kind.folder:  # packed by the front when all is done
        parts.append(Take("pack", size))
    return parts + (_spread_out(use, size, way) if way in _EXCHANGING else [])


def verifying(inputs: Sequence[Region], output: float, target: Target | None, use: Use) -> list[Part]:
    """The parts of reading all files again, of which the result has `output` bytes."""
    files = [(region.path, float(region.bytes)) for region in inputs if not region.generator]
    files.append((target.path if target is not None else "", output))
    read = [use.shared_out(at("read", path), size) for path, size in files]
    return [*read, use.shared_out("copy", sum(size for _, size in files))]


def _through_buffer(use: Use, size: float, way: str) -> list[Part]:
    """All of it copied once more, where whole windows of the file are read or written."""
    return [use.shared_out("copy", 2 * size)] if way == "sieve" else []


def _spread_out(use: Use, size: float, way: str) -> list[Part]:
    """All of it exchanged among ranks, once."""
    if use.ranks == 1:
        return []
    share = size / use.ranks if way not in _ROOT else size
    return use.sent(share * (use.ranks - 1) / use.ranks, use.ranks - 1)
