"""The points of a study as they are on this machine, or on the cluster that all of them are simulated on.

A study's own file may say `simulate` (an axis or a flag); else `study run --simulate CLUSTER` has all of its
jobs simulated. Results carry the name of the cluster where others have that of a machine.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tilewise import __version__
from tilewise.base.errors import UsageError
from tilewise.base.units import rate_text
from tilewise.lab.measurement.result import SIMULATED
from tilewise.lab.study.checks import check_lines, check_stops
from tilewise.lab.study.evaluation import check
from tilewise.lab.study.points import StudyPoint, expand
from tilewise.lab.study.schema import Condition, Run
from tilewise.lab.study.store import StudyEnvironment
from tilewise.lab.study.study import Study
from tilewise.launch import simulated, worker
from tilewise.launch.constants import Devices
from tilewise.machine import storage
from tilewise.machine.cluster import Cluster, parse_cluster
from tilewise.machine.facts import gather, of_ranks
from tilewise.planning.names import MPI_IO

AXIS = "simulate"
_JOBS = ("multiply", "transpose", "stencil", "svd")
_MPI_IO = "MPI-IO, which is not simulated"
_LACKING = ("shared", "partitioned")  # exchanges that the simulator cannot do


def clusters_of(study: Study) -> tuple[Cluster, ...]:
    """The clusters that the runs of `study` are simulated on, none where they are real.

    UsageError where some are simulated and others not: no page is to mix the two.
    """
    names: dict[str, None] = {}
    real = ""
    for run in study.runs:
        said = [*run.axes.get(AXIS, []), *([run.flags[AXIS]] if AXIS in run.flags else [])]
        if run.name in study.skipped:
            continue
        names.update(dict.fromkeys(map(str, said)))
        real = real if said else run.name
    if names and real:
        raise UsageError(
            f"{study.path}: runs {real} is real, and others are simulated: that takes two studies"
        )
    return tuple(map(parse_cluster, names))


def on_cluster(study: Study, name: str) -> Study:
    """`study` with all of its jobs simulated on the cluster `name`; the rest is left out."""
    if clusters_of(study):
        raise UsageError(f"{study.path}: says itself what it is simulated on", "no --simulate")
    counted = parse_cluster(name).counted
    skipped = dict(study.skipped)
    runs = []
    for run in study.runs:
        if run.command not in _JOBS:
            skipped.setdefault(run.name, f"needs a real machine: {run.command} is not simulated")
        elif run.flags.get("exchange") in _LACKING:
            skipped.setdefault(run.name, f"needs {run.flags['exchange']}, which the simulator cannot do")
        runs.append(_simulated(run, name, counted) if run.command in _JOBS else run)
    return msgspec.structs.replace(study, runs=runs, skipped=skipped)


def _simulated(run: Run, name: str, counted: bool) -> Run:
    """`run` on the cluster. Where work is counted one launch is as good as many: they are all the same.

    How files are read and written makes no difference, so that a run's MPI-IO is replaced.
    """
    flags = {**run.flags, **({"io": "positioned"} if _is_mpi_io(run.flags.get("io", "")) else {})}
    fewer: dict[str, Any] = {"launches": 1, "warmup_launches": 0, "stop": None} if counted else {}
    return msgspec.structs.replace(
        run,
        flags={**flags, AXIS: name},
        limits=[*run.limits, *_limits(run)],
        launcher=None,
        trace=False,
        **fewer,
    )


def _is_mpi_io(io: object) -> bool:
    return any(way in MPI_IO for way in str(io).split(":"))


def _limits(run: Run) -> Iterator[Condition]:
    """Limits that keep points of `run` from being simulated."""
    if "threads" in run.axes:
        yield Condition(holds="threads == 1", words="one thread per rank, as simulated ranks have")
    for io in filter(_is_mpi_io, run.axes.get("io", [])):
        yield Condition(holds=f"io != {io!r}", words=_MPI_IO)
    if "view" in run.axes.get("root_write", []):
        yield Condition(holds="root_write != 'view'", words=_MPI_IO)
    lacking = (*_LACKING, *(["collective"] if run.command == "stencil" else []))
    for exchange in set(lacking) & set(map(str, run.axes.get("exchange", []))):
        yield Condition(holds=f"exchange != {exchange!r}", words=f"{exchange}, which the simulator cannot do")


def environment_of(clusters: Sequence[Cluster], here: StudyEnvironment) -> StudyEnvironment:
    """Environment of results on these clusters, which depend on them and not on this machine."""
    simulated.find()
    return msgspec.structs.replace(
        here,
        machine=f"simulated: {', '.join(map(str, clusters))}",
        cpu=", ".join(dict.fromkeys(map(_core, clusters))),
        cores=known_of(clusters)["cores"],
        mpi={**here.mpi, "mpi": "SimGrid"},
        storage="",
    )


def known_of(clusters: Sequence[Cluster]) -> dict[str, int]:
    """Cores and hosts, for the limits of points."""
    cores = max(cluster.cores * len(cluster.hosts) for cluster in clusters)
    return {"cores": cores, "cpus": cores, "hosts": max(len(cluster.hosts) for cluster in clusters)}


def _core(cluster: Cluster) -> str:
    if not cluster.counted:
        return "computing is timed, not counted"
    return f"{rate_text(cluster.operations, 'FLOP/s')} and {rate_text(cluster.bytes, 'B/s')} a core"


def points_of(
    study: Study,
    work: str,
    machine: str,
    flags_of: Callable[[str], Mapping[str, Any]],
    check_words: Callable[[list[str]], None],
    *,
    submits: bool = False,
) -> tuple[StudyEnvironment, list[StudyPoint]]:
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
    environment = StudyEnvironment(
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
    if clusters := clusters_of(study):
        environment = environment_of(clusters, environment)
        known |= known_of(clusters)
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


def picked(points: list[StudyPoint], only: tuple[str, ...], key: str) -> list[StudyPoint]:
    """The points that --only and --point leave; UsageError where that is none."""
    left = [point for point in points if point.key.startswith(key)]
    for text in only:
        axis, equals, values = text.partition("=")
        axes = list(dict.fromkeys(["run", *(axis for point in points for axis in point.axes)]))
        if not equals or axis not in axes:
            raise UsageError(f"--only expects AXIS=VALUE, not {text!r}; axes are {', '.join(axes)}")
        taken = {*values.split(",")}
        known = {each for p in points for each in _spellings(p.run if axis == "run" else p.axes.get(axis))}
        if unknown := taken - known:
            raise UsageError(
                f"--only {text}: {axis} has no value {sorted(unknown)[0]!r}", "repeat --only for another axis"
            )
        left = [p for p in left if _spellings(p.run if axis == "run" else p.axes.get(axis)) & taken]
    if not left:
        said = [*only, f"--point {key}" if key else ""]
        raise UsageError(f"no point is left by {' and '.join(filter(None, said))}")
    return left


def _spellings(value: object) -> set[str]:
    """How a value of an axis may be written behind --only: as in the study's file, and as Python has it."""
    return {str(value), msgspec.json.encode(value).decode()}
