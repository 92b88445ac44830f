"""The first measurement: made once, before a long job on a machine of which nothing is known."""

from __future__ import annotations

import os
import time
from typing import Any

from tilewise.base.errors import Interrupted, TilewiseError
from tilewise.engine.job_output import JobOutput
from tilewise.engine.request import Listener, Request
from tilewise.launch.signals import Signals
from tilewise.machine import profile
from tilewise.machine.terms import Machine
from tilewise.operations.prediction import machine_name, predicted
from tilewise.planning.cost import Cost
from tilewise.planning.plan import Plan

LONG = 10.0  # seconds that a job must be predicted to take to be worth two or three of measuring
LIMIT = 30.0  # seconds, after which measuring is given up


def is_wanted(request: Request, plan: Plan, cost: Cost, machine: Machine) -> bool:
    """Whether a job of this `cost` is worth measuring its `machine` first."""
    there = plan.choices.hosts or plan.choices.launcher or plan.facts.elsewhere
    if not request.learns or request.resume or plan.choices.simulate or there:
        return False
    if request.time_limit is not None or request.timeout is not None:  # the time is counted
        return False
    return not machine.known and cost.sure and predicted(plan, cost, machine).wall >= LONG


def measure_once(output: JobOutput[Any], listener: Listener, caught: Signals) -> None:
    """Measures this machine and keeps its terms; says so, and where it fails, why it knows nothing still.

    Files of some megabytes lie beside the output meanwhile. Interrupted where a signal says so.
    """
    from tilewise.lab.measurement import first, lines
    from tilewise.lab.measurement.run import Runner
    from tilewise.lab.measurement.scratch import Scratch
    from tilewise.lab.measurement.terms import terms_of

    plan = output.plan
    for each in output.rooms():
        each.require()
    begin = time.perf_counter()
    folder = os.path.dirname(output.target.path) if output.target is not None else output.folder
    try:
        with caught.hold():
            scratch = Scratch(folder or ".", "the output's folder", ["sample"])
        try:
            launches = first.launches(plan.facts, scratch.path("sample"))
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
