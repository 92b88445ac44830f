"""How ranks are started: which program, with which options, in which environment."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping

import msgspec

from tilewise.errors import UsageError
from tilewise.launch import environment, hosts, worker
from tilewise.launch.job import Variant

_FORK = ["-launcher", "fork"]  # hydra starts all ranks on this node
_START, _START_OF_RANK = 120.0, 0.1  # seconds in which ranks have surely started, and for each of them
_PATIENCE = 60.0  # seconds for a launcher to say its version


class Worker(msgspec.Struct, frozen=True):
    """The worker program and what `build.json` beside it says."""

    path: str
    build: dict[str, str]

    @property
    def mpi(self) -> str:
        """`wheel` (the mpich package of this Python) or `site`."""
        return self.build.get("mpi", "wheel")


class Start(msgspec.Struct, frozen=True):
    """A command line and its environment. `joined`: the ranks exist already, ours is one of them.

    `hydra`: it is a launcher whose children live as long as their ranks. `patience` is how many seconds
    `ranks` may take to start; None: as long as they like, since a launcher such as srun may queue.
    """

    command: list[str]
    environment: dict[str, str]
    joined: bool = False
    ranks: int = 1
    hydra: bool = False
    patience: float | None = None


def find_worker() -> Worker:
    """The worker; raises UsageError, saying where it was sought, when there is none."""
    path = worker.find()
    if path is None:
        raise UsageError(
            f"the worker program is missing, sought first at {worker.candidates()[0]}",
            "tilewise doctor, or install tilewise again",
        )
    return Worker(path, worker.build_facts(path))


def mpiexec_path(build: Mapping[str, str]) -> str | None:
    """The launcher that belongs to the worker's MPI library, or None when it is not there."""
    if build.get("mpi", "wheel") == "site":
        import shutil

        if "SLURM_JOB_ID" in os.environ and (srun := shutil.which("srun")):
            return srun
        recorded = build.get("mpiexec", "")
        return (
            recorded
            if os.access(recorded, os.X_OK)
            else shutil.which(os.path.basename(recorded) or "mpiexec")
        )
    places = (os.path.join(sys.prefix, "bin"), os.path.dirname(sys.executable))
    return next(
        (path for folder in places if os.access(path := os.path.join(folder, "mpiexec"), os.X_OK)), None
    )


def flavour(mpiexec: str) -> str:
    """`openmpi`, `hydra`, `srun` or `unknown`: whose options `mpiexec` understands."""
    name = os.path.basename(os.path.realpath(mpiexec))
    for kind, names in (
        ("openmpi", ("orterun", "prterun", "prte", "mpirun.openmpi", "mpiexec.openmpi")),
        ("hydra", ("mpiexec.hydra", "mpirun.hydra")),
        ("srun", ("srun",)),
    ):
        if name in names:
            return kind
    try:
        said = subprocess.run(
            [mpiexec, "--version"], capture_output=True, text=True, timeout=_PATIENCE, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    if "Open MPI" in said or "PRRTE" in said or "OpenRTE" in said:
        return "openmpi"
    return "hydra" if "HYDRA" in said or "Intel(R) MPI" in said else "unknown"


def join_start(found: Worker, variant: Variant, oversubscribed: bool) -> Start:
    """Our rank's own worker, in a job that somebody else's launcher started."""
    told = environment.for_ranks(os.environ, variant.threads, oversubscribed, own_launcher=False)
    words = [found.path, "--expect", str(variant.ranks), "--joined"]
    return Start(words, told, joined=True, ranks=variant.ranks, patience=_patience(variant.ranks))


def _patience(ranks: int) -> float:
    """Seconds in which so many ranks have surely started, on a slow cluster too."""
    return _START + ranks * _START_OF_RANK


def own_start(
    found: Worker,
    variant: Variant,
    hosts_file: str,
    launcher: str,
    oversubscribed: bool,
    place: str = "core",
    single: bool = False,
) -> Start:
    """A job of our own: the worker alone for one rank, else under the package's or the user's launcher.

    A launcher of the user's that we know hears of the hosts too, unless it is told of hosts already. `single`
    tells MPI that ranks have no threads, which spares some libraries locks.
    """
    told = environment.for_ranks(os.environ, variant.threads, oversubscribed, own_launcher=True)
    if single:
        told["TILEWISE_MPI_THREADS"] = "single"
    count = ["-n", str(variant.ranks)]
    dealt = hosts.deal(hosts.read_hosts(hosts_file), variant.ranks, place) if hosts_file else []
    if launcher:
        import shutil

        words = shlex.split(launcher)
        if not words or shutil.which(words[0]) is None:
            raise UsageError(f"--launcher {launcher!r}: there is no program {words[0] if words else ''!r}")
        environment.for_open_mpi(told)
        if dealt and (kind := flavour(words[0])) != "unknown" and not hosts.named_in(kind, words):
            words += [*hosts.options(kind, dealt, place), *_carried(kind, told)]
        named, ours = shutil.which(words[0]) or "", mpiexec_path(found.build) or ""
        hydra = found.mpi == "wheel" and os.path.realpath(named) == os.path.realpath(ours)
        words += [*count, found.path, "--expect", str(variant.ranks)]
        return Start(words, told, ranks=variant.ranks, hydra=hydra)
    if variant.ranks == 1 and not dealt:
        if found.mpi == "wheel":
            environment.for_one_node(told)
        return Start([found.path], told, patience=_patience(1))
    mpiexec = mpiexec_path(found.build)
    if mpiexec is None:
        wanted = (
            "the mpich package of this Python"
            if found.mpi == "wheel"
            else found.build.get("mpiexec", "mpiexec")
        )
        raise UsageError(f"mpiexec is missing; the worker needs that of {wanted}", "tilewise doctor, or -n 1")
    kind = "hydra" if found.mpi == "wheel" else flavour(mpiexec)
    where = [*hosts.options(kind, dealt, place), *_carried(kind, told)] if dealt else []
    if dealt and kind == "unknown":
        where = ["-f", hosts_file]
    options = _options(kind, variant, told, bool(dealt))
    if found.mpi == "wheel" and options == _FORK:
        environment.for_one_node(told)
    words = [mpiexec, *options, *where, *count, found.path]
    patience = None if kind == "srun" else _patience(variant.ranks)
    return Start(words, told, ranks=variant.ranks, hydra=kind == "hydra", patience=patience)


def _options(kind: str, variant: Variant, told: dict[str, str], elsewhere: bool) -> list[str]:
    """What this launcher wants to hear besides hosts; binding is the worker's own business."""
    if kind == "openmpi":
        environment.for_open_mpi(told)
        return ["--bind-to", "none", "--oversubscribe"]
    if kind == "srun":
        return ["--cpu-bind=none", f"--cpus-per-task={variant.threads}"]
    if kind == "hydra" and not elsewhere:
        # Without fork, hydra may look for ssh or a batch system that one machine does not need.
        batch = any(key in os.environ for key in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"))
        return [] if batch or "HYDRA_LAUNCHER" in os.environ else _FORK
    return []


def _carried(kind: str, told: dict[str, str]) -> list[str]:
    """Variables that must reach ranks on other hosts: Open MPI, unlike the others, passes on only its own."""
    if kind != "openmpi":
        return []
    return [word for key in environment.for_other_hosts(told) for word in ("-x", key)]
