"""The points of a study as they are on this machine, and those of them that are asked for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tilewise import __version__
from tilewise.base.errors import UsageError
from tilewise.lab.measurement.points import SIMULATED
from tilewise.lab.study import simulated
from tilewise.lab.study.checks import check_lines, check_stops
from tilewise.lab.study.evaluation import check
from tilewise.lab.study.points import Point, expand
from tilewise.lab.study.store import Environment
from tilewise.lab.study.study import Study
from tilewise.launch import worker
from tilewise.launch.constants import Devices
from tilewise.machine import storage
from tilewise.machine.facts import gather, of_ranks


def points_of(
    study: Study,
    work: str,
    machine: str,
    flags_of: Callable[[str], Mapping[str, Any]],
    check_words: Callable[[list[str]], None],
    *,
    submits: bool = False,
) -> tuple[Environment, list[Point]]:
    """All points as they are here, with matrices in `work`; `machine` is a name instead of the host's.

    `flags_of` knows the flags of a command, `check_words` refuses the words of a command line. What `submits`
    asks for the graphics processors that points need, so one is counted as there. Raises
    UsageError for whatever can be known to be wrong before anything runs.
    """
    here, facts = gather(), of_ranks()
    program = worker.find()
    # Hosts that are called alike may call their disks differently.
    disks = storage.described(work, devices=not machine)
    build = worker.build_facts(program) if program is not None else {}
    environment = Environment(
        tilewise=__version__,
        machine=machine or here.host,
        cpu=here.cpu,
        cores=facts.cores,
        mpi={key: build[key] for key in ("mpi", "blas", "compiler", "version") if key in build},
        storage=disks,
    )
    graphics = _graphics(program) if program is not None and "gpus" in study.text else None
    if graphics is not None and graphics.simulated:
        environment = msgspec.structs.replace(environment, machine=f"{SIMULATED}s on {environment.machine}")
    known = {
        "cores": facts.cores,
        "cpus": facts.cpus,
        "gpus": max(int(submits), len(graphics.devices) if graphics is not None else 0),
        "hosts": len(facts.granted.nodes) if facts.granted is not None else 1,
        "memory": facts.memory_available,
        "disk": shutil.disk_usage(work).free,
    }
    if clusters := simulated.clusters_of(study):
        environment = simulated.environment_of(clusters, environment)
        known |= simulated.known_of(clusters)
    points = expand(study, known, flags_of)
    check_lines(study, [point for point in points if not (clusters and point.reason)], check_words)
    check_stops(study)
    check(study, points)
    return environment, points


def _graphics(worker: str) -> Devices:
    """Graphics processors that the worker can have buffers on."""
    from tilewise.launch.constants import devices

    return devices(worker)


def existing(path: str) -> str:
    """The folder nearest to `path` that is there already: its file system will be `path`'s."""
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def picked(points: list[Point], only: tuple[str, ...], key: str) -> list[Point]:
    """The points that --only and --point leave; UsageError where that is none."""
    left = [point for point in points if point.key.startswith(key)]
    for text in only:
        axis, equals, values = text.partition("=")
        axes = list(dict.fromkeys(["run", *(axis for point in points for axis in point.axes)]))
        if not equals or axis not in axes:
            raise UsageError(f"--only expects AXIS=VALUE, not {text!r}; axes are {', '.join(axes)}")
        taken = {*values.split(",")}
        left = [p for p in left if _spellings(p.run if axis == "run" else p.axes.get(axis)) & taken]
    if not left:
        said = [*only, f"--point {key}" if key else ""]
        raise UsageError(f"no point is left by {' and '.join(filter(None, said))}")
    return left


def _spellings(value: object) -> set[str]:
    """How a value of an axis may be written behind --only: as in the study's file, and as Python has it."""
    return {str(value), msgspec.json.encode(value).decode()}
