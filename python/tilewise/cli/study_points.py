"""The points of a study on this machine, those that are asked for, and their command lines."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import msgspec

from tilewise.errors import UsageError

if TYPE_CHECKING:
    from tilewise.study.points import Point
    from tilewise.study.store import Environment
    from tilewise.study.study import Study


def points_of(study: Study, work: str, machine: str) -> tuple[Environment, list[Point]]:
    """All points as they are here, with matrices in `work`; `machine` is a name instead of the host's.

    Raises UsageError for whatever can be known to be wrong before anything runs.
    """
    import shutil

    from tilewise import __version__
    from tilewise.cli.flags import check_words, flags_of
    from tilewise.launch import worker
    from tilewise.machine import storage
    from tilewise.machine.facts import gather
    from tilewise.study.checks import check_lines, check_stops
    from tilewise.study.evaluated import check
    from tilewise.study.points import expand
    from tilewise.study.store import Environment

    facts = gather()
    found = worker.find()
    # Hosts that are called alike may call their disks differently.
    disks = storage.described(work, devices=not machine)
    build = worker.build_facts(found) if found is not None else {}
    environment = Environment(
        tilewise=__version__,
        machine=machine or facts.host,
        cpu=facts.cpu,
        cores=facts.cores,
        mpi={key: build[key] for key in ("mpi", "blas", "compiler", "version") if key in build},
        storage=disks,
    )
    known = {
        "cores": facts.cores,
        "cpus": facts.cpus,
        "gpus": _graphics(found) if found is not None and "gpus" in study.text else 0,
        "memory": facts.memory_available,
        "disk": shutil.disk_usage(work).free,
    }
    points = expand(study, known, flags_of)
    check_lines(study, points, check_words)
    check_stops(study)
    check(study, points)
    return environment, points


def _graphics(worker: str) -> int:
    """Graphics processors that the worker can have buffers on; 0 where it was built without."""
    from tilewise.launch.describe import describe

    told, _ = describe(worker)
    return int(told.get("gpus", 0)) if told else 0


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
            raise UsageError(f"--only wants AXIS=VALUE, not {text!r}; axes are {', '.join(axes)}")
        taken = {*values.split(",")}
        left = [p for p in left if _spellings(p.run if axis == "run" else p.axes.get(axis)) & taken]
    if not left:
        said = [*only, f"--point {key}" if key else ""]
        raise UsageError(f"no point is left by {' and '.join(filter(None, said))}")
    return left


def _spellings(value: object) -> set[str]:
    """How a value of an axis may be written behind --only: as in the study's file, and as Python has it."""
    return {str(value), msgspec.json.encode(value).decode()}


def dry_run(points: list[Point]) -> int:
    """Prints every command line, those that make inputs too; returns the exit code."""
    shown: set[str] = set()
    for point in points:
        for made in point.inputs:
            if made.generate and made.word not in shown and not point.reason:
                shown.add(made.word)
                print(shlex.join(["tilewise", *made.generate]))
        print(f"# not run: {point.reason}: {point.line()}" if point.reason else point.line())
    return 0
