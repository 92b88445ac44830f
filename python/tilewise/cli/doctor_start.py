"""What `tilewise doctor` finds about starting ranks: whose launcher, over which nodes, by which MPI type."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tilewise.base.errors import TilewiseError
from tilewise.base.units import listing
from tilewise.launch import diagnose, job, join, launcher, signals, slurm
from tilewise.launch.cleanup import Guardian
from tilewise.launch.supervise import Supervisor
from tilewise.machine import allocation

_PATIENCE = 60.0  # seconds for ranks to start and to leave
_MOST = 64  # ranks that are started for a look


class Finding(NamedTuple):
    """One line: `verdict` is `ok`, `note` or `FAIL`; `advice` says what to do."""

    label: str
    text: str
    verdict: str = "ok"
    advice: str = ""


def launcher_of(worker: launcher.Worker) -> Iterator[Finding]:
    """The launcher, and whether it starts ranks: in a Slurm allocation, one on each of its nodes."""
    ours = launcher.mpiexec_path(worker.build)
    kind = "the mpich package" if worker.mpi == "wheel" else "the site's MPI"
    if ours is None:
        yield Finding(
            "mpiexec",
            f"the launcher of {kind} is missing; only one rank can run",
            "FAIL",
            "pip install mpich",
        )
        return
    yield Finding("mpiexec", f"{ours} ({'Slurm' if os.path.basename(ours) == 'srun' else kind})")
    onpath = shutil.which("mpiexec")
    if onpath is not None and os.path.realpath(onpath) != os.path.realpath(ours):
        theirs, mine = launcher.kind_of(onpath), launcher.kind_of(ours)
        foreign = mine not in (theirs, launcher.SRUN)
        yield Finding(
            "PATH",
            f"mpiexec there is {onpath}"
            + (f" of another MPI ({theirs.name})" if foreign else ", the same kind"),
            "note" if foreign else "ok",
            "tilewise CMD -n N starts the right one" if foreign else "",
        )
    granted = allocation.granted(os.environ)
    if granted is None:
        yield _ranks(worker, [])
        return
    yield Finding("Slurm", f"{granted.said()}{', in a step of it' if join.in_step(os.environ) else ''}")
    yield _mpi_type(worker)
    nodes = [node.name for node in granted.nodes[:_MOST]]
    yield _ranks(worker, nodes if len(nodes) > 1 else nodes * 2)


def _mpi_type(worker: launcher.Worker) -> Finding:
    """Which MPI type a step has that names none, and whether the worker's MPI understands it."""
    told = os.environ.get("SLURM_MPI_TYPE", "")
    default = slurm.mpi_default()
    source = "MpiDefault" if not told else "this step's" if join.in_step(os.environ) else "SLURM_MPI_TYPE"
    kind, spoken = told or default or "not known", slurm.SPOKEN.get(worker.family, ())
    text = f"{kind} ({source}); tilewise … -n N selects the right one"
    offered = slurm.mpi_types("srun")
    able = [name for name in offered if name in spoken]
    if not spoken or kind in spoken:
        return Finding("MPI type", text)
    name = launcher.NAMES[worker.family]
    if able or not offered:
        return Finding(
            "MPI type",
            f"{text}, a plain srun tilewise … would fail: {name} does not support {kind}",
            "note",
            f"srun --mpi={(able or spoken)[0]} tilewise …, or SLURM_MPI_TYPE={(able or spoken)[0]}",
        )
    return Finding(
        "MPI type",
        f"{text}; srun tilewise … would fail: {name} needs {spoken[0]}, Slurm offers {listing(offered)}",
        "note",
        "tilewise … -n N, not srun tilewise …",
    )


def _ranks(worker: launcher.Worker, nodes: list[str]) -> Finding:
    """Starts a rank on each of `nodes`, or two here, and ends them: that tests what the lines above say."""
    ranks = max(2, len(nodes))
    variant = msgspec.structs.replace(job.quit_job().variant, ranks=ranks, grid=(1, ranks))
    nothing = job.Measure(stop=job.Stop(), points=[])
    looked = msgspec.structs.replace(job.quit_job(), command="measure", variant=variant, measure=nothing)
    label = "two ranks" if ranks == 2 else f"{ranks} ranks"
    guardian = Guardian([], "the trial was killed")
    try:
        with signals.watched() as caught:
            start = launcher.own_start(worker, variant, nodes, "", oversubscribed=True)
            outcome = Supervisor(start, worker.path, caught, timeout=_PATIENCE).run(job.encode(looked))
            wrong = diagnose.error_of(outcome, _PATIENCE, start)
    except TilewiseError as error:
        return Finding(label, error.message, "FAIL", error.advice)
    finally:
        guardian.dismiss()
    if wrong is not None:
        return Finding(label, f"did not start: {wrong.message}", "FAIL", wrong.advice)
    assert outcome.started is not None
    there = list(dict.fromkeys(rank.host for rank in outcome.started.ranks))
    hosts = f"on {listing(there)} " if nodes else ""
    return Finding(label, f"{hosts}started and ended within {outcome.wall:.2f} s")
