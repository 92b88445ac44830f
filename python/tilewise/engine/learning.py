"""Measures a machine of which nothing is known before a long job, and learns from each job that has run."""

from __future__ import annotations

import os
import time

import msgspec

from tilewise.base.errors import Interrupted, TilewiseError
from tilewise.engine.job_output import JobOutput
from tilewise.engine.request import Listener, Request
from tilewise.files.target import Target
from tilewise.launch import launcher
from tilewise.launch.record import Record
from tilewise.launch.signals import Signals
from tilewise.machine import profile
from tilewise.machine.terms import Habit, Machine, Term
from tilewise.operations.prediction import accustomed, cost_after, learned, machine_name, predicted
from tilewise.planning.cost import PHASES, TOTAL, Cost
from tilewise.planning.plan import Plan

LONG = 10.0  # seconds that a job must be predicted to take to be worth two or three of measuring
LIMIT = 30.0  # seconds, after which measuring is given up


def is_wanted(request: Request, plan: Plan, cost: Cost, machine: Machine) -> bool:
    """True if a job of this `cost` is worth measuring its `machine` first."""
    there = plan.choices.hosts or plan.choices.launcher or plan.facts.remote
    if not request.learns or request.resume or plan.choices.simulate or there:
        return False
    if request.time_limit is not None or request.timeout is not None:  # the time is counted
        return False
    return not machine.known and cost.sure and predicted(plan, cost, machine).wall >= LONG


def measure_once(output: JobOutput, listener: Listener, caught: Signals) -> None:
    """Measures this machine and keeps its terms; says so, and where it fails, why it knows nothing still.

    Files of some megabytes lie beside the output meanwhile. Interrupted where a signal says so.
    """
    from tilewise.lab.measurement import lines, plans
    from tilewise.lab.measurement.fit import terms_of
    from tilewise.lab.measurement.run import Runner, Scratch

    plan = output.plan
    for each in output.disk_needs():
        each.require()
    begin = time.perf_counter()
    folder = os.path.dirname(output.target.path) if output.target is not None else output.folder
    try:
        with caught.hold():
            scratch = Scratch(folder or ".", "the output's folder", ["sample"])
        try:
            launches = plans.first_launches(plan.facts, scratch.path("sample"))
            ran = Runner(launches, 1, 0, caught, timeout=LIMIT).run()
        finally:
            scratch.remove()
    except Interrupted:
        raise
    except TilewiseError as error:
        listener.warning(f"this machine was not measured, so its speed is assumed: {error.message}")
        return
    found = terms_of(lines.lines_of(launches, ran), plan.facts.cores)
    profile.store_terms(machine_name(plan.facts), lambda old: found | old)
    listener.measured(time.perf_counter() - begin)


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
        from tilewise.machine.machines import measure_tile

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
    """True if nothing disturbed the run, and it did what was planned as jobs usually do."""
    variant = plan.job.variant
    changed = plan.each is not None or request.resume or plan.job.sync or "survived" in record.result
    unusual = changed or variant.kernel != "fast" or any(os.environ.get(name) for name in _FORCING)
    elsewhere = plan.choices.simulate is not None or plan.oversubscribed or plan.facts.remote
    return request.learns and not (record.labels or unusual or elsewhere)
