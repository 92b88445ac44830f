"""The road of a measurement: look, plan the launches, run them, make lines of them, keep them."""

from __future__ import annotations

import datetime
import os
import random
import time
from collections.abc import Sequence
from contextlib import ExitStack

import msgspec

import tilewise
from tilewise.base.errors import TilewiseError, UsageError
from tilewise.engine.record import environment_of
from tilewise.engine.request import Listener
from tilewise.lab.measurement import device_trial, lines, messages, plans, stored
from tilewise.lab.measurement.request import MeasureRequest
from tilewise.lab.measurement.result import SIMULATED, Launch, Level, Measurement, has_simulated_devices
from tilewise.lab.measurement.run import Runner, RunResult, Scratch
from tilewise.launch import environment, signals
from tilewise.launch.cleanup import Guardian
from tilewise.launch.constants import devices, no_graphics
from tilewise.launch.launcher import find_worker
from tilewise.launch.record import Storage
from tilewise.machine import allocation, host, storage, topology
from tilewise.machine.facts import Facts, gather


class MeasureOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a measurement.

    `kept` are the files of this machine's profile that have it now; `chatter` is what launchers printed.
    `error` is what ended a launch, where one failed: the others are measured all the same.
    """

    measurement: Measurement
    kept: list[str]
    chatter: list[str]
    error: TilewiseError | None


def measure(request: MeasureRequest, listener: Listener, command: Sequence[str]) -> MeasureOutcome:
    """Measure what `request` asks for, and store it where that asks for it and no launch failed.

    The measurement says that `command` made it. Raises UsageError, RunError or Interrupted where nothing was
    measured.
    """
    from tilewise.lab.measurement import fit  # noqa: F401 - a fault there must not cost a measurement

    begin = time.perf_counter()
    if request.seed is None:
        request = msgspec.structs.replace(request, seed=random.SystemRandom().randrange(1 << 31))
    facts = gather()
    with signals.watched() as caught:
        measurement, ran = _measured(request, listener, facts, caught)
        measurement.command = list(command)
        measurement.seconds = time.perf_counter() - begin
        caught.check()
    kept: list[str] = []
    if has_simulated_devices(measurement.environment):
        measurement.warnings.append(
            "the driver of the tests played the graphics processors: these figures say nothing of a device"
        )
    elif request.stored and ran.error is None:
        kept = stored.keep(measurement, facts)
        if not kept:
            measurement.warnings.append("the profile cannot be written, so nothing is stored; XDG_CACHE_HOME")
    return MeasureOutcome(measurement=measurement, kept=kept, chatter=ran.chatter, error=ran.error)


def _measured(
    request: MeasureRequest, listener: Listener, facts: Facts, caught: signals.Signals
) -> tuple[Measurement, RunResult]:
    with ExitStack() as stack:
        samples = ""
        if "file" in request.kinds:
            with caught.hold():
                scratch = Scratch(request.folder, "--folder", plans.sample_names(request, facts))
                stack.callback(scratch.remove)
            samples = scratch.path("sample")
        else:
            stack.callback(Guardian([], "the measurement was killed").dismiss)
        there, launches = _launches(request, facts, samples)
        launches, said = device_trial.resolved(launches, request.launcher, caught)
        runner = Runner(
            launches,
            request.launches,
            request.seed or 0,
            caught,
            user_launcher=request.launcher,
            timeout=request.timeout,
            fault=os.environ.get("TILEWISE_FAULT", ""),
            progress=listener.progress,
            update=listener.update,
            say=listener.chatter,
        )
        listener.foreseen(runner.seconds())
        ran = runner.run()
    measurement = _measurement(request, facts, launches, ran, there)
    measurement.warnings += said
    return measurement, ran


def _launches(request: MeasureRequest, facts: Facts, samples: str) -> tuple[list[Level], list[Launch]]:
    """Everything that is asked for. Raises UsageError where that is nothing that can be run."""
    there: list[Level] = []
    planned: list[Launch] = []
    no_gpu = _no_gpu(request)
    if "ping" in request.kinds:
        known = topology.read()
        others = messages.Hosts(request, allocation.granted(os.environ))
        there = messages.levels(request, known, others)
        planned += messages.launches(request, facts, known, others, there, no_gpu)
    if "file" in request.kinds:
        planned += plans.file_launches(request, facts, samples, no_gpu)
    if "memory" in request.kinds:
        planned += plans.memory_launches(request, facts)
    elif {"ping", "file"} & set(request.kinds):
        planned += plans.carriers(request, facts)
    if "compute" in request.kinds:
        planned += plans.product_launches(request, facts)
    if request.kinds == ("ping",) and not any(one.level for one in planned):
        raise UsageError(
            "no two ranks can communicate here: " + "; ".join(dict.fromkeys(level.missing for level in there))
        )
    _require_something(
        request, [ask.skipped for one in planned if one.kind in request.kinds for ask in one.asks]
    )
    return there, planned


def _no_gpu(request: MeasureRequest) -> str:
    """Why ranks on this host have no buffers of a graphics processor; empty where nobody wants to know."""
    if request.hosts or set(request.buffers or ()) <= {"malloc"}:
        return ""
    return no_graphics(devices(find_worker().path))


def _require_something(request: MeasureRequest, skipped: Sequence[str]) -> None:
    if skipped and all(skipped):
        raise UsageError(f"{' and '.join(request.kinds)} cannot run: {skipped[0]}")


def _measurement(
    request: MeasureRequest, facts: Facts, launches: Sequence[Launch], ran: RunResult, there: list[Level]
) -> Measurement:
    from tilewise.lab.measurement.fit import fit

    measured_lines = lines.lines_of(launches, ran)
    asked = [line.skipped for line in measured_lines if line.kind in (*request.kinds, "collective")]
    if ran.error is not None and all(asked):
        raise ran.error
    _require_something(request, asked)
    links = host.links()
    lines.add_shares(measured_lines, links)
    kept = [Storage(os.path.realpath(request.folder), storage.file_system(request.folder), "")]
    around = environment_of(
        ran.last.done,
        facts,
        ran.last.start,
        bind=ran.last.final.bind,
        storage=kept if "file" in request.kinds else [],
        oversubscribed=ran.last.launch.oversubscribed,
    )
    told = msgspec.to_builtins(around)
    told["binding"] = _binding(launches, str(told.get("binding", "")))
    told["caches"] = {f"L{level}": size for level in (1, 2, 3) if (size := host.cache_bytes(level))}
    told["links"] = links
    if found := sorted({name for line in measured_lines for name in line.devices}):
        told["devices"] = found
        told["simulated_devices"] = any(SIMULATED in line.labels for line in measured_lines)
    return Measurement(
        tilewise=tilewise.__version__,
        command=[],
        time=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        seconds=0.0,
        kinds=list(request.kinds),
        launches=request.launches,
        seed=request.seed or 0,
        environment=told,
        clock=ran.clock,
        levels=there,
        lines=measured_lines,
        matrices=lines.matrices_of(launches, ran),
        disturbances=ran.disturbances,
        model=fit([line for line in measured_lines if SIMULATED not in line.labels]),
        warnings=environment.blas_warnings(os.environ, facts) if "compute" in request.kinds else [],
    )


def _binding(launches: Sequence[Launch], usual: str) -> str:
    """Where ranks and threads of each kind are; `usual` is how ranks of jobs are bound."""
    places = {
        "ping": "messages: one core each" if any(one.cpus for one in launches) else "",
        "file": f"files: {usual or 'as jobs'}",
        "memory": "memory, arithmetic: all cores",
    }
    places["compute"] = places["memory"]
    kinds = dict.fromkeys(one.kind for one in launches if any(not ask.skipped for ask in one.asks))
    return "; ".join(dict.fromkeys(filter(None, (places.get(kind, "") for kind in kinds)))) or usual
