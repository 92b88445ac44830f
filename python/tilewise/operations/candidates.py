"""Candidates: the ways in which a job can be done, each with its memory, or with the reason why it cannot.

`weighed` decides whether another way than the rule's is predicted to be clearly faster. The rule's choice
stays where nothing is known of the machine, where the job is short, and where the gain is within what
predictions may be off: then both are about the same, and the rule has its reasons.

Design: docs/design/front.md.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import plural, seconds_text, share_text
from tilewise.files.target import Target
from tilewise.launch.job import Variant
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.machine.terms import Machine
from tilewise.operations.operation import Operation
from tilewise.operations.prediction import cost_of, machine_of, predicted
from tilewise.planning.choices import Strategies, parse_io
from tilewise.planning.cost import Prediction, told_apart
from tilewise.planning.names import ONE_FILE
from tilewise.planning.plan import Plan


def candidates(
    chosen: Plan,
    operation: Operation,
    target: Target | None,
    joined: Join | None = None,
    machine: Machine | None = None,
) -> list[tuple[Plan, Prediction]]:
    """Plans of every variant within the flags, each beside its prediction; `chosen` comes first.

    Algorithms and exchanges are crossed, on the chosen number of ranks, on one, on one for each node and on
    one for each core of a node. Of ways to read and write, those of the chosen variant are tried one by one.
    What does not go together is no variant. Plans each, and runs nothing: a millisecond or less for each.
    `machine` is one that is not here.
    """
    machine = machine or machine_of(chosen)
    ways = {_key(chosen.job.variant): chosen}
    for options in _alternatives(operation, chosen):
        with contextlib.suppress(UsageError):
            plan = options.plan_all(chosen.job.inputs, target, chosen.facts, joined)
            ways.setdefault(_key(plan.job.variant), plan)
    first, *others = ((plan, predicted(plan, cost_of(plan, target), machine)) for plan in ways.values())
    return [first, *sorted(others, key=lambda each: each[1].wall)]


def _key(variant: Variant) -> bytes:
    """Key that variants share which are done alike on this machine."""
    return msgspec.json.encode(msgspec.structs.replace(variant, between_nodes=""))


def _alternatives(operation: Operation, plan: Plan) -> Iterator[Operation]:
    """The options with what they leave open filled in."""
    chosen = plan.job.variant
    usual = (chosen.ranks, 1, plan.spread.nodes, plan.facts.cores)
    counts = [operation.ranks] if operation.ranks else dict.fromkeys(usual)
    known = operation.algorithms
    names: list[str | None] = [operation.algorithm] if operation.algorithm or not known else [*known]
    for ranks, name in itertools.product(counts, names):
        exchanges: tuple[str | None, ...] = (operation.exchange,)
        if name is not None and operation.exchange is None:
            exchanges = (None, *known[name].exchanges)
        for exchange in exchanges:
            yield msgspec.structs.replace(operation, ranks=ranks, algorithm=name, exchange=exchange)
    if operation.io == Strategies():
        way = msgspec.structs.replace(
            operation,
            ranks=chosen.ranks,
            algorithm=chosen.algorithm if known else None,
            exchange=chosen.exchange if chosen.exchange != "none" else None,
        )
        for name in ONE_FILE:
            yield msgspec.structs.replace(way, io=parse_io(name))


WORTH = 0.2  # seconds that the job must be predicted to take
CLEARLY = 0.9  # of the rule's time


def weighed(
    plan: Plan,
    operation: Operation,
    target: Target | None,
    facts: Facts,
    joined: Join | None,
    machine: Machine | None,
) -> Plan:
    """`plan`, or that of another way which is predicted to take clearly less; says so.

    `machine` is one that is not here, None: the one that `plan` is for.
    """
    settled = plan.refusal is not None or plan.each is not None or operation.resumed is not None
    if settled or not operation.weighs:
        return plan
    machine = machine or machine_of(plan)
    if not machine.known:
        return plan
    usual = predicted(plan, cost_of(plan, target), machine)
    if usual.wall < WORTH:
        return plan
    best, foreseen = plan, usual
    for options in _ways(operation, plan, facts):
        with contextlib.suppress(UsageError):
            other = options.plan_all(plan.job.inputs, target, facts, joined)
            if other.refusal is not None:
                continue
            found = predicted(other, cost_of(other, target), machine)
            if found.wall < foreseen.wall:
                best, foreseen = other, found
    if best is plan or not _clearly(foreseen, usual):
        return plan
    return msgspec.structs.replace(
        best,
        choices=operation,
        fixed=plan.fixed,
        chosen_by=plan.chosen_by,
        reasons=[*best.reasons, _said(best, foreseen, plan, usual)],
    )


def _ways(operation: Operation, plan: Plan, facts: Facts) -> Iterator[Operation]:
    """The options with what may be weighed filled in, where the user left it open."""
    chosen = plan.job.variant
    ranks: dict[int | None, None] = {operation.ranks: None}
    if operation.ranks is None and "hosts" in operation.weighs:  # all that there are, or one
        ranks = dict.fromkeys((chosen.ranks, 1, plan.spread.nodes) if plan.spread.nodes > 1 else (None,))
    if operation.ranks is None and "ranks" in operation.weighs:
        ranks = dict.fromkeys((chosen.ranks, 1, plan.spread.nodes, facts.cores, _square(chosen.ranks)))
    algorithms = [operation.algorithm]
    if operation.algorithm is None and "algorithm" in operation.weighs:
        algorithms = [None, *operation.algorithms]
    for count, algorithm in itertools.product(ranks, algorithms):
        yield msgspec.structs.replace(operation, ranks=count, algorithm=algorithm)


def _square(ranks: int) -> int:
    """The largest square number up to `ranks`."""
    return math.isqrt(ranks) ** 2


def _clearly(one: Prediction, other: Prediction) -> bool:
    """True if `one` takes clearly less time, both being as long as they may be.

    What both are off by they mostly share: half of it is what may tell them apart.
    """
    doubt = (one.high - one.low + other.high - other.low) / 8
    return one.wall < CLEARLY * other.wall and one.wall + doubt < other.wall


def _said(best: Plan, foreseen: Prediction, plan: Plan, usual: Prediction) -> str:
    """`cannon on 64 ranks: 2.1 s are predicted, 15 % less than for summa: exchange takes 0.1 s, not 0.4`."""
    one, other = best.job.variant, plan.job.variant
    way = f"{one.algorithm} on {plural(one.ranks, 'rank')}: {seconds_text(foreseen.wall)} s are predicted"
    instead = other.algorithm if other.ranks == one.ranks else f"{other.algorithm} on {other.ranks}"
    gains = told_apart(foreseen.as_dict(), usual.as_dict())
    return f"{way}, {share_text(1 - foreseen.wall / usual.wall)} less than for {instead}: {gains}"
