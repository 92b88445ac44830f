"""What a job that has ended teaches about its machine: the best tile, and the terms that plans use."""

from __future__ import annotations

import os

import msgspec

from tilewise.engine.request import Request
from tilewise.files.target import Target
from tilewise.launch import launcher
from tilewise.launch.record import Record
from tilewise.machine import profile
from tilewise.machine.terms import Habit, Machine, Term
from tilewise.operations.prediction import accustomed, cost_after, learned, machine_name
from tilewise.planning.cost import PHASES, TOTAL, Cost
from tilewise.planning.plan import Plan

_FORCING = ("OPENBLAS_CORETYPE", "TILEWISE_KERNELS")  # another processor's kernels


def remember(request: Request, record: Record, plan: Plan) -> None:
    """Keeps when it ended, what was found of the output's device, and measures what the next job can use."""
    if request.no_learn:
        return
    if request.learns:
        profile.job_ended()
    if plan.probed is not None:
        profile.store_device(*plan.probed)
    if plan.measure_tile is not None:
        from tilewise.machine.transposition import measure_tile

        measure_tile(*plan.measure_tile, plan.facts, launcher.find_worker().path)


def teach(
    request: Request,
    record: Record,
    plan: Plan,
    target: Target | None,
    cost: Cost,
    machine: Machine,
    *,
    plain: bool,
) -> None:
    """Corrects the terms of `machine`, by which this job's `cost` was foreseen, where the run tells of them.

    `plain`: the ranks alone read and wrote its files, and nothing but them took part in `wall`.
    """
    if not _tells(request, record, plan):
        return
    cost = cost_after(plan, target, cost, record.result)
    if not cost.sure:
        return
    seconds = record.seconds
    took = {phase: float(getattr(seconds, phase).max) for phase in PHASES}
    if plain and not (plan.choices.again or request.trace):
        took["start"] = seconds.wall - seconds.total.max
    took[TOTAL] = float(seconds.total.max)

    def changed(terms: dict[str, Term], habits: dict[str, Habit]) -> profile.Taught:
        # Others may have taught it meanwhile.
        now = msgspec.structs.replace(machine, terms=machine.terms | terms, habits=habits)
        found = learned(cost, now, took)
        then = msgspec.structs.replace(now, terms=now.terms | found)
        return terms | found, habits | accustomed(cost, now, then, took)

    profile.store_taught(machine_name(plan.facts), changed)


def _tells(request: Request, record: Record, plan: Plan) -> bool:
    """Whether nothing disturbed the run, and it did what was planned as jobs usually do."""
    variant = plan.job.variant
    changed = plan.each is not None or request.resume or plan.job.sync or "survived" in record.result
    unusual = changed or variant.kernel != "fast" or any(os.environ.get(name) for name in _FORCING)
    elsewhere = plan.choices.simulate is not None or plan.oversubscribed or plan.facts.elsewhere
    return request.learns and not (record.labels or unusual or elsewhere)
