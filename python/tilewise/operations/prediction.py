"""Prediction: the cost of a plan on its machine; learning: a run corrects the machine's terms.

A phase that took r times what was predicted makes each of its terms slower by a power of r that grows with
its share, so that the phase as a whole moves by a part of r: a half at first, a tenth after many runs. So one
run moves a term little that many have made, a term that hardly counted hardly moves, and no run moves one by
more than a factor of two. Late runs count for the side on which they are more than for how far: terms follow
the median. The error of a term follows how far predictions with it were off.

What is left over is a habit of such jobs: their phases take so many times what the terms say, a mean of the
runs, the late ones of which count more. So terms move by what is new, whoever runs; and in phases that are
`peculiar` to an algorithm, whose operations are not those of a product or a copy, they do not move at all.

Design: docs/design/front.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from tilewise.files.formats import ending_of
from tilewise.files.target import Target, base_of
from tilewise.launch import worker
from tilewise.machine.facts import Facts
from tilewise.machine.machines import local_machine
from tilewise.machine.profile import machine_key
from tilewise.machine.terms import Habit, Machine, Term
from tilewise.operations import module_of
from tilewise.planning.cost import TOTAL, Cost, Part, Prediction, habit_of, predict, usual
from tilewise.planning.plan import Plan


def machine_of(plan: Plan) -> Machine:
    """The machine that `plan` is for: simulated, or this one with what is known of it."""
    if plan.choices.simulate is not None:
        return plan.choices.simulate.machine()
    return local_machine(plan.facts, machine_name(plan.facts))


def machine_name(facts: Facts) -> str:
    """The key of what the profile knows of the machine of these `facts`, with the worker that jobs take."""
    found = worker.find()
    return machine_key(facts.host, facts.cpu, worker.build_facts(found).get("mpi", "") if found else "")


def cost_of(plan: Plan, target: Target | None) -> Cost:
    """The cost of a job; of one that is done for the slices of a stack, that of one slice."""
    cost: Cost = module_of(plan.job.command, "cost").cost_of(plan, target)
    return msgspec.structs.replace(cost, habits=_habits(plan, target))


def _habits(plan: Plan, target: Target | None) -> dict[str, str]:
    """Names of habits that jobs of this kind share, phase by phase."""
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
    room = module_of(plan.job.command, "cost")
    if not hasattr(room, "cost_after"):
        return cost
    after: Cost = room.cost_after(plan, target, result)
    return msgspec.structs.replace(after, habits=cost.habits)


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


LEAST = 0.005  # seconds of a phase: what takes less tells of the clock
_FASTEST, _SLOWEST = 0.5, 0.1  # weights of the first run and of late ones
# Of the logarithm of a ratio, what counts at most: of the first run, which moves a term by a factor of two,
# and of late ones. What is slow once in a while then counts as often as it happens, not by how much.
_EARLY, _LATE = 2 * math.log(2), 0.3
_ERRORS = (0.05, 1.0)
_RECENT = 0.15  # weight of a late run in a habit
_COUNTS = 0.05  # of a phase: terms with less are left alone


def learned(cost: Cost, machine: Machine, took: Mapping[str, float]) -> dict[str, Term]:
    """The terms that a run corrects, of a job of this `cost`, whose phases `took` so many seconds.

    Of a term of two phases, the longer one corrects it. `took` may also have `start`: the seconds outside of
    all phases, which correct what is in none.
    """
    changed: dict[str, Term] = {}
    untold = (*cost.behind, *cost.peculiar)
    phases = {phase: list(parts) for phase, parts in cost.phases.items() if phase not in untold}
    longest = sorted(phases, key=lambda phase: took.get(phase, 0.0))  # which has the last word on a term
    for phase in longest:
        beyond = habit_of(cost, phase, machine).factor
        changed |= _of_phase(phases[phase], machine, took.get(phase, 0.0) / beyond)
    return _of_phase(cost.starting(), machine, took.get("start", 0.0)) | changed


def accustomed(cost: Cost, machine: Machine, taught: Machine, took: Mapping[str, float]) -> dict[str, Habit]:
    """The habits that a run corrects, of a job that `machine` foresaw and that `taught` its terms; of the
    `total` how far that was off."""
    changed: dict[str, Habit] = {}
    for phase, name in cost.habits.items():
        if phase == TOTAL:
            foreseen = expected = predict(cost, machine).total
        elif phase in cost.behind:
            continue
        else:
            foreseen = usual(cost, phase, machine).seconds
            expected = usual(cost, phase, taught).seconds
        if took.get(phase, 0.0) >= LEAST and foreseen > 0:
            ratios = took[phase] / foreseen, took[phase] / expected
            changed[name] = _adapted(habit_of(cost, phase, machine), *map(math.log, ratios))
    return changed


def _adapted(habit: Habit, missed: float, left: float) -> Habit:
    """`missed`: the logarithm of how far a run was off; `left`: by the terms as they are since."""
    first = habit.runs == 0
    weight = max(_RECENT, 1 / (1 + habit.runs))
    step = weight * (left if first else min(_LATE, max(-_LATE, left)))
    error = habit.error
    if not first:  # of the first, the terms alone were off
        error += max(_RECENT, 1 / (2 + habit.runs)) * (min(abs(missed), _ERRORS[1]) - error)
    return Habit(habit.factor * math.exp(step), max(_ERRORS[0], error), habit.runs + 1)


def _of_phase(parts: list[Part], machine: Machine, took: float) -> dict[str, Term]:
    shares: dict[str, float] = {}
    for take in (take for part in parts for take in part.takes(machine)):
        shares[take.term] = shares.get(take.term, 0.0) + take.span(machine).seconds
    whole = sum(part.span(machine).seconds for part in parts)
    if took < LEAST or whole <= 0:
        return {}
    ratio = took / whole
    counted = {name: seconds / whole for name, seconds in shares.items() if seconds >= _COUNTS * whole}
    together = sum(share * share for share in counted.values())  # how far the phase moves by shares alone
    return {
        name: _corrected(machine.term(name), machine.terms.get(name), ratio, share / max(share, together))
        for name, share in counted.items()
    }


def _corrected(term: Term, own: Term | None, ratio: float, share: float) -> Term:
    """`own`: what is known under that very name, not of all file systems."""
    weight = share * max(_SLOWEST, _FASTEST / (1 + term.runs / 4))
    most = max(_LATE, _EARLY / (1 + term.runs))
    factor = math.exp(weight * min(most, max(-most, math.log(ratio))))
    missed = min(_ERRORS[1], abs(math.log(ratio)))
    error = term.error + weight * (missed - term.error)
    runs = term.runs + 1
    before = own.before if own is not None else None
    if own is not None and not own.runs and own.source != "assumed":
        before = own
    return msgspec.structs.replace(
        term.times(factor, f"learned from {runs} run{'s' * (runs > 1)}", max(_ERRORS[0], error)),
        runs=runs,
        before=before,
    )
