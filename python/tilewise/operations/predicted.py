"""What a plan is predicted to take: its operation's cost, on the machine that it is planned for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import msgspec

from tilewise.files.formats import ending_of
from tilewise.files.target import Target, base_of
from tilewise.launch import worker
from tilewise.machine.facts import Facts
from tilewise.machine.here import machine_here
from tilewise.machine.profile import machine_key
from tilewise.machine.terms import Machine
from tilewise.planning.cost import TOTAL, Cost, Prediction, predict
from tilewise.planning.plan import Plan


def machine_of(plan: Plan) -> Machine:
    """The machine that `plan` is for: simulated, or this one with what is known of it."""
    if plan.choices.simulate is not None:
        return plan.choices.simulate.machine()
    return machine_here(plan.facts, machine_name(plan.facts))


def machine_name(facts: Facts) -> str:
    """The key of what the profile knows of the machine of these `facts`, with the worker that jobs take."""
    found = worker.find()
    return machine_key(facts.host, facts.cpu, worker.build_facts(found).get("mpi", "") if found else "")


def cost_of(plan: Plan, target: Target | None) -> Cost:
    """The cost of a job; of one that is done for the slices of a stack, that of one slice."""
    cost: Cost = _room(plan).cost_of(plan, target)
    return msgspec.structs.replace(cost, habits=_habits(plan, target))


def _habits(plan: Plan, target: Target | None) -> dict[str, str]:
    """What jobs of this kind have in common, phase by phase."""
    variant = plan.job.variant
    stored = {"generated" if each.generator else each.encoding for each in plan.job.inputs}
    read = "/".join([variant.read, *sorted(stored)])
    written = f"{variant.write}/{ending_of(base_of(target))}" if target is not None else ""
    kind = "/".join(filter(None, [plan.job.command, variant.algorithm, plan.job.dtype]))
    return {
        "input": f"{kind}/input/{read}",
        **{phase: f"{kind}/{phase}" for phase in ("compute", "exchange", "verify")},
        "output": f"{kind}/output/{written}",
        TOTAL: f"{kind}/{read}/{written}",
    }


def cost_after(plan: Plan, target: Target | None, cost: Cost, result: Mapping[str, Any]) -> Cost:
    """The `cost` of a job that is done, whose `result` tells what depended on its numbers."""
    room = _room(plan)
    if not hasattr(room, "cost_after"):
        return cost
    after: Cost = room.cost_after(plan, target, result)
    return msgspec.structs.replace(after, habits=cost.habits)


def _room(plan: Plan) -> Any:
    return importlib.import_module(f"tilewise.operations.{plan.job.command}.cost")


def predicted(plan: Plan, cost: Cost, machine: Machine) -> Prediction:
    """The seconds of `plan`, of that `cost`: of slices that ranks do apart, of the rank that does most.

    What is repeated in memory counts once in the phases, as in a record, and each time in `wall`.
    """
    found = predict(cost, machine)
    more = plan.choices.repeat + plan.choices.warmup - 1
    if more:
        again = found.phases["compute"] + found.phases["exchange"]
        found = msgspec.structs.replace(found, wall=found.wall + more * again)
    if plan.each is None:
        return found
    stack = plan.job.stack
    apart = stack is not None and stack.apart
    times = -(-plan.each.count // plan.job.variant.ranks) if apart else plan.each.count
    total = found.total * times
    return msgspec.structs.replace(
        found,
        phases={phase: seconds * times for phase, seconds in found.phases.items()},
        total=total,
        wall=found.wall - found.total + total,
        low=found.low * times,
        high=found.high * times,
    )
