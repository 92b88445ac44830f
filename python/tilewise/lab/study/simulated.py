"""Studies on simulated clusters: every point of one runs there, or none.

A study's own file may say `simulate` (an axis or a flag); else `study run --simulate CLUSTER` has all of its
jobs simulated. Results carry the name of the cluster where others have that of a machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import rate_text
from tilewise.lab.study.schema import Condition, Run
from tilewise.lab.study.store import Environment
from tilewise.lab.study.study import Study
from tilewise.launch import simulated
from tilewise.machine.cluster import Cluster, parse_cluster
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
    """What keeps points of `run` from being simulated."""
    if "threads" in run.axes:
        yield Condition(holds="threads == 1", words="one thread per rank, as simulated ranks have")
    for io in filter(_is_mpi_io, run.axes.get("io", [])):
        yield Condition(holds=f"io != {io!r}", words=_MPI_IO)
    if "view" in run.axes.get("root_write", []):
        yield Condition(holds="root_write != 'view'", words=_MPI_IO)
    lacking = (*_LACKING, *(["collective"] if run.command == "stencil" else []))
    for exchange in set(lacking) & set(map(str, run.axes.get("exchange", []))):
        yield Condition(holds=f"exchange != {exchange!r}", words=f"{exchange}, which the simulator cannot do")


def environment_of(clusters: Sequence[Cluster], here: Environment) -> Environment:
    """What results on these clusters depend on: them, and not this machine."""
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
