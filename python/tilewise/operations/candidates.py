"""Candidates: the ways in which a job can be done, each with its memory, or with the reason why it cannot."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

import msgspec

from tilewise.base.errors import UsageError
from tilewise.files.target import Target
from tilewise.launch.job import Stack, Variant
from tilewise.launch.join import Join
from tilewise.machine.terms import Machine
from tilewise.operations.operation import Operation
from tilewise.operations.predicted import cost_of, machine_of, predicted
from tilewise.planning.choices import Strategies, parse_io
from tilewise.planning.cost import Prediction
from tilewise.planning.names import ONE_FILE
from tilewise.planning.need import Need, Refusal
from tilewise.planning.plan import Plan


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One way: its variant, what that needs, and `refusal` where there is no room for it.

    `reasons` are the rule's for what it left open. `foreseen`: how long it is predicted to take.
    """

    variant: Variant
    stack: Stack | None
    need: Need
    foreseen: Prediction
    reasons: list[str]
    refusal: Refusal | None = None


def candidates(
    chosen: Plan,
    operation: Operation,
    target: Target | None,
    joined: Join | None = None,
    machine: Machine | None = None,
) -> list[Candidate]:
    """Every variant within the flags that were given, that of `chosen` first.

    Algorithms and exchanges are crossed, on the chosen number of ranks, on one, on one for each node and on
    one for each core of a node. Of ways to read and write, those of the chosen variant are tried one by one.
    What does not go together is no variant. Plans each, and runs nothing: a millisecond or less for each.
    `machine` is one that is not here.
    """
    machine = machine or machine_of(chosen)
    ways = {_key(chosen.job.variant): _candidate(chosen, target, machine)}
    for options in _alternatives(operation, chosen):
        with contextlib.suppress(UsageError):
            plan = options.plan_all(chosen.job.inputs, target, chosen.facts, joined)
            ways.setdefault(_key(plan.job.variant), _candidate(plan, target, machine))
    first, *others = ways.values()
    return [first, *sorted(others, key=lambda each: each.foreseen.wall)]


def _key(variant: Variant) -> bytes:
    """What is the same for variants that are done alike on this machine."""
    return msgspec.json.encode(msgspec.structs.replace(variant, between_nodes=""))


def _candidate(plan: Plan, target: Target | None, machine: Machine) -> Candidate:
    return Candidate(
        variant=plan.job.variant,
        stack=plan.job.stack,
        need=plan.need,
        foreseen=predicted(plan, cost_of(plan, target), machine),
        reasons=plan.reasons,
        refusal=plan.refusal,
    )


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
