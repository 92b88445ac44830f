"""How ranks are started: which program, with which options, in which environment."""

from __future__ import annotations

import errno
import functools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.launch import environment, hosts, lines, slurm, worker
from tilewise.launch.job import Variant
from tilewise.launch.join import Join
from tilewise.machine import allocation

_FORK = ["-launcher", "fork"]  # hydra starts all ranks on this node
_START, _START_OF_RANK = 25.0, 0.1  # seconds in which ranks have surely started, and for each of them
_PATIENCE = 10.0  # seconds for a launcher to say its version
NAMES = {"mpich": "MPICH", "openmpi": "Open MPI"}
_FAMILY = {"hydra": "mpich", "openmpi": "openmpi"}  # whose launcher that is


class Worker(msgspec.Struct, frozen=True):
    """The worker program and what `build.json` beside it says."""

    path: str
    build: dict[str, str]

    @property
    def mpi(self) -> str:
        """`wheel` (the mpich package of this Python) or `site`."""
        return self.build.get("mpi", "wheel")

    @property
    def family(self) -> str:
        """`mpich`, `openmpi` or `unknown`: which launchers and MPI types it understands."""
        if self.mpi == "wheel":
            return "mpich"
        recorded = self.build.get("mpiexec", "")
        return _FAMILY.get(flavour(recorded), "unknown") if recorded else "unknown"


class Start(msgspec.Struct, frozen=True):
    """A command line and its environment. `joined`: the ranks exist already, ours is one of them.

    `hydra`: it is a launcher whose children live as long as their ranks. `patience` is how many seconds
    `ranks` may take to start; None: as long as they like, since a launcher such as srun may queue.
    `kind` is whose launcher it is (`alone`, `joined`, `hydra`, `openmpi`, `srun`, `unknown`), `chosen` the
    user's words for it, `family` the worker's MPI; for messages. `elsewhere`: ranks may be on other hosts
    than this; `hosts`: on which, where that is known. `survives`: ranks go on without one that has died.
    `kept` is what must be there until they end.
    """

    command: list[str]
    environment: dict[str, str]
    joined: bool = False
    ranks: int = 1
    hydra: bool = False
    patience: float | None = None
    kind: str = "unknown"
    chosen: str = ""
    family: str = "unknown"
    elsewhere: bool = False
    hosts: tuple[str, ...] = ()
    survives: bool = False
    kept: Any = None


def find_worker() -> Worker:
    """The worker; raises UsageError, saying where it was sought, when there is none."""
    path = worker.find()
    if path is None:
        raise UsageError(
            f"the worker program is missing, expected at {worker.candidates()[0]}",
            "tilewise doctor, or install tilewise again",
        )
    return Worker(path, worker.build_facts(path))


def mpiexec_path(build: Mapping[str, str]) -> str | None:
    """The launcher that belongs to the worker's MPI library, or None when it is not there.

    A site's is srun in an allocation of Slurm's, where that has an MPI type which the library understands.
    """
    if build.get("mpi", "wheel") == "site":
        import shutil

        recorded = build.get("mpiexec", "")
        there = os.access(recorded, os.X_OK)
        own = recorded if there else shutil.which(os.path.basename(recorded) or "mpiexec")
        srun = shutil.which("srun") if slurm.in_allocation(os.environ) else None
        if srun and (
            own is None or slurm.mpi_type(srun, Worker("", dict(build)).family, os.environ) is not None
        ):
            return srun
        return own
    places = (os.path.join(sys.prefix, "bin"), os.path.dirname(sys.executable))
    return next(
        (path for folder in places if os.access(path := os.path.join(folder, "mpiexec"), os.X_OK)), None
    )


@functools.cache
def flavour(mpiexec: str) -> str:
    """`openmpi`, `hydra`, `srun` or `unknown`: whose options `mpiexec` understands; it may be asked, once."""
    name = os.path.basename(os.path.realpath(mpiexec))
    for kind, names in (
        ("openmpi", ("orterun", "prterun", "prte", "mpirun.openmpi", "mpiexec.openmpi")),
        ("hydra", ("mpiexec.hydra", "mpirun.hydra")),
        ("srun", ("srun",)),
    ):
        if name in names:
            return kind
    if not re.search("mpi|prun|prterun", name):  # whatever else it is, we do not run it to find out
        return "unknown"
    try:
        said = subprocess.run(
            [mpiexec, "--version"], capture_output=True, text=True, timeout=_PATIENCE, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    if "Open MPI" in said or "PRRTE" in said or "OpenRTE" in said:
        return "openmpi"
    return "hydra" if "HYDRA" in said or "Intel(R) MPI" in said else "unknown"


def join_start(worker: Worker, variant: Variant, oversubscribed: bool, elsewhere: bool) -> Start:
    """Our rank's own worker, in a job that somebody else's launcher started."""
    told = environment.for_ranks(os.environ, variant.threads, oversubscribed, own_launcher=False)
    words = [worker.path, "--expect", str(variant.ranks), "--joined"]
    granted = allocation.granted(os.environ)
    return Start(
        words,
        told,
        joined=True,
        ranks=variant.ranks,
        patience=_patience("joined", variant.ranks),
        kind="joined",
        family=worker.family,
        elsewhere=elsewhere,
        hosts=tuple(node.name for node in granted.nodes) if granted else (),
    )


def foreign(joined: Join, worker: Worker) -> UsageError:
    """The error of ranks whose launcher the worker's MPI does not understand."""
    mine, ranks = NAMES[worker.family], joined.size
    if joined.kind == "openmpi":
        ours = mpiexec_path(worker.build) or "the mpiexec of the mpich package"
        return UsageError(
            f"this mpiexec belongs to another MPI library (Open MPI) than the worker was built with ({mine})",
            f"{ours} -n {ranks} tilewise …, or tilewise … -n {ranks} without mpiexec",
        )
    given = "MPI type pmix" if joined.kind == "pmix" else "no MPI type (none)"
    fitting = slurm.SPOKEN[worker.family][0]
    return UsageError(
        f"srun started these {ranks} ranks with {given}, with which {mine} cannot connect them",
        f"srun --mpi={fitting} -n {ranks} tilewise …, or tilewise … -n {ranks} without srun",
    )


def _patience(kind: str, ranks: int) -> float | None:
    """Seconds in which so many ranks have surely started, on a slow cluster too; None: they may queue."""
    if kind == "unknown" or (kind == "srun" and not slurm.in_allocation(os.environ)):
        return None
    return _START + ranks * _START_OF_RANK


def own_start(
    worker: Worker,
    variant: Variant,
    dealt: Sequence[str],
    launcher: str,
    oversubscribed: bool,
    place: str = "core",
    single: bool = False,
    survives: bool = False,
) -> Start:
    """A job of our own: the worker alone for one rank, else under the package's or the user's launcher.

    `dealt` is the host of each rank; empty: this one, or wherever a launcher likes. A launcher of the user's
    that we know hears of the hosts too, unless it is told of hosts already. `single` tells MPI that ranks
    have no threads, which spares some libraries locks. `survives` has Open MPI let ranks live without others.
    """
    told = environment.for_ranks(os.environ, variant.threads, oversubscribed, own_launcher=True)
    if single:
        told["TILEWISE_MPI_THREADS"] = "single"
    alone = not dealt or _all_here(dealt)
    if not launcher and variant.ranks == 1 and alone:
        if worker.mpi == "wheel":
            environment.for_one_node(told)
        patience = _patience("alone", 1)
        return Start([worker.path], told, patience=patience, kind="alone", family=worker.family)
    if launcher:
        words, kind = _users_launcher(worker, launcher)
        options: list[str] = []
        placing = bool(dealt) and kind != "unknown" and not hosts.named_in(kind, words)
    else:
        words, kind = _our_launcher(worker)
        fork = kind == "hydra" and bool(dealt) and alone
        options = _FORK if fork else _options(kind, worker, variant, bool(dealt))
        placing = bool(dealt) and not fork
    _for_launcher(told, kind, worker.family)
    where = [*hosts.options(kind, dealt, place), *_carried(kind, told)] if placing else []
    if placing or not launcher:
        options = [*options, *_crowding(kind, oversubscribed)]
    if worker.mpi == "wheel" and options == _FORK:
        environment.for_one_node(told)
    told_elsewhere = dealt or hosts.named_in(kind, words) or _in_batch() or "HYDRA_HOST_FILE" in os.environ
    stays = kind == "hydra" and not told_elsewhere
    survives = survives and kind == "openmpi"
    if survives:
        options = ["--with-ft", "ulfm", *options]
    count = ["-n", str(variant.ranks), worker.path, *(["--expect", str(variant.ranks)] if launcher else [])]
    return Start(
        [*words, *options, *where, *count],
        told,
        ranks=variant.ranks,
        hydra=kind == "hydra" and (not launcher or _is_wheels(worker, words[0])),
        patience=_patience(kind, variant.ranks),
        kind=kind,
        chosen=launcher,
        family=worker.family,
        elsewhere=options != _FORK and (bool(launcher) or placing or kind != "openmpi" or _in_batch()),
        hosts=(os.uname().nodename,) if stays else tuple(dealt) if placing else (),
        survives=survives,
    )


def _all_here(dealt: Sequence[str]) -> bool:
    """Whether all ranks are for this host, by its own name or by Slurm's."""
    return set(dealt) == {allocation.this_host(allocation.granted(os.environ))}


def _our_launcher(worker: Worker) -> tuple[list[str], str]:
    """The launcher of the worker's MPI, and whose kind it is."""
    mpiexec = mpiexec_path(worker.build)
    if mpiexec is None:
        wanted = (
            "the mpich package of this Python"
            if worker.mpi == "wheel"
            else worker.build.get("mpiexec", "mpiexec")
        )
        raise UsageError(f"mpiexec is missing; the worker needs that of {wanted}", "tilewise doctor, or -n 1")
    return [mpiexec], "hydra" if worker.mpi == "wheel" else flavour(mpiexec)


def _users_launcher(worker: Worker, launcher: str) -> tuple[list[str], str]:
    """The same of --launcher; refuses what surely belongs to another MPI."""
    import shutil

    try:
        words = shlex.split(launcher)
    except ValueError as error:  # a quotation that does not end
        raise UsageError(f"--launcher {launcher!r}: {error}") from None
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise UsageError(f"--launcher {launcher!r}: there is no program {words[0] if words else ''!r}")
    kind = "hydra" if _is_wheels(worker, words[0]) else flavour(program)
    theirs, mine = _FAMILY.get(kind, worker.family), worker.family
    # A site's MPICH may be built to understand Open MPI's daemons, which speak PMIx; the wheel's is not.
    if theirs != mine and "unknown" not in (theirs, mine) and (worker.mpi == "wheel" or mine == "openmpi"):
        raise UsageError(
            f"--launcher {launcher!r} belongs to {NAMES[theirs]}, but the worker is built with {NAMES[mine]}",
            f"no --launcher, which takes {mpiexec_path(worker.build) or f'the mpiexec of {NAMES[mine]}'}",
        )
    return words, kind


def _is_wheels(worker: Worker, program: str) -> bool:
    """Whether `program` is the launcher of the package's own MPI."""
    import shutil

    ours = mpiexec_path(worker.build) if worker.mpi == "wheel" else None
    return ours is not None and os.path.realpath(shutil.which(program) or "") == os.path.realpath(ours)


def _for_launcher(told: dict[str, str], kind: str, family: str) -> None:
    """What a launcher of that kind, or an srun that it calls, wants to find in its environment."""
    if kind in ("openmpi", "unknown"):
        environment.for_open_mpi(told)
    if kind != "unknown":
        slurm.for_steps(told, kind, family, os.environ)


def _options(kind: str, worker: Worker, variant: Variant, elsewhere: bool) -> list[str]:
    """What this launcher of ours wants to hear besides hosts; binding is the worker's own business."""
    if kind == "openmpi":
        return ["--bind-to", "none"]
    if kind == "srun":
        mpi = slurm.mpi_type("srun", worker.family, os.environ)
        options = ["--cpu-bind=none", f"--cpus-per-task={variant.threads}"]
        return [f"--mpi={mpi}", *options] if mpi else options
    if kind == "hydra" and not elsewhere:
        # Without fork, hydra may look for ssh or a batch system that one machine does not need.
        return [] if _in_batch() or "HYDRA_LAUNCHER" in os.environ else _FORK
    return []


def _in_batch() -> bool:
    """Whether a batch system may have given us other hosts, which launchers find by themselves."""
    return any(key in os.environ for key in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"))


def _crowding(kind: str, oversubscribed: bool) -> list[str]:
    """What makes a launcher take as many ranks as were dealt, whatever its own count of slots says."""
    if kind == "openmpi":
        return ["--oversubscribe"]
    return ["--overcommit"] if kind == "srun" and oversubscribed else []


def _carried(kind: str, told: dict[str, str]) -> list[str]:
    """Variables that must reach ranks on other hosts: Open MPI, unlike the others, passes on only its own."""
    if kind != "openmpi":
        return []
    names = [*environment.for_other_hosts(told), lines.RUN, lines.FRONT]
    return [word for key in names for word in ("-x", key)]


def spawn(start: Start) -> subprocess.Popen[bytes]:
    """Starts the command in its own process group, with pipes for its three streams; it dies with us.

    No code of ours runs between fork and exec: threads, such as a progress bar's, may hold any lock then.
    Raises UsageError when the program cannot be started.
    """
    program = start.command[0]
    missing = os.sep in program and not os.access(program, os.X_OK)
    try:
        if missing:
            raise OSError(errno.ENOENT if not os.path.exists(program) else errno.EACCES, "")
        return subprocess.Popen(
            worker.tied(start.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=start.environment,
            # A rank of somebody else's job talks to its launcher over an inherited descriptor.
            close_fds=not start.joined,
        )
    except OSError as error:
        raise UsageError(
            f"{program} cannot be started: {os.strerror(error.errno or 0)}", "tilewise doctor"
        ) from None
