"""Starting ranks: a class for each kind of launcher, and the command line and environment of a job."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.launch import environment, slurm, worker
from tilewise.launch.job import Variant
from tilewise.launch.join import Join
from tilewise.machine import allocation

_FORK = ["-launcher", "fork"]  # hydra starts all ranks on this node
_START, _START_OF_RANK = 25.0, 0.1  # seconds in which ranks have surely started, and for each of them
_PATIENCE = 10.0  # seconds for a launcher to print its version
NAMES = {"mpich": "MPICH", "openmpi": "Open MPI"}

# On other hosts the launcher starts this shell, which is everywhere; it becomes the worker, $0, once it has
# seen that the worker can run. A launcher by itself waits forever for a rank that never came, or names no
# host. What does not start says why on its standard error; the event must be one line of JSON. Without hooks
# in the C library (see `worker.ONE_NODE`) the look at it takes 9 ms instead of 60. The pause lets the words
# get through a launcher that ends the job when the first process leaves.
_GUARD = r"""
if said=$(UCX_MEM_MMAP_HOOK_MODE=none UCX_VFS_ENABLE=n "$0" --version 2>&1 </dev/null)
then exec "$0" "$@"
fi
host=$(uname -n)
if [ ! -e "$0" ]; then
    said="the worker is missing on $host: there is no $0"
    advice="install tilewise on $host under the same path, or on a file system that all hosts share"
elif [ ! -x "$0" ]; then
    said="the worker may not be executed on $host: $0"
    advice="check its permissions, and those of its file system (noexec), on $host"
else
    said="the worker does not start on $host: $0: $said"
    advice="the same tilewise, MPI and system libraries on every host; tilewise doctor on $host"
fi
plain() { printf %s "$1" | tr '\n\t' '  ' | tr -d '\000-\037"\\'; }
printf '\036{"event": "error", "kind": "usage", "rank": -1, "message": "%s", "advice": "%s"}\n' \
    "$(plain "$said")" "$(plain "$advice")"
sleep 1
exit 2
"""


class LauncherKind:
    """Kind of launcher; each class below overrides what differs from this one."""

    name = "unknown"
    family = ""  # the MPI library that it belongs to; empty: any
    host_options = ""  # those by which a user places ranks
    known = True
    joined = False  # the ranks exist already, and ours is one of them
    alone = False  # the only rank is our child, and nobody has numbered it
    survivable = False  # it can let ranks live on without one that has died
    stays = False  # ranks are on this host unless it is told of others, in a way that we see

    def patience(self, ranks: int) -> float | None:
        """Return the seconds in which so many ranks have surely started; None: they may be queued."""
        return _START + ranks * _START_OF_RANK

    def options(self, family: str, threads: int, dealt: Sequence[str]) -> list[str]:
        """Return its options where it is our choice; ranks bind themselves."""
        return []

    def placement(self, dealt: Sequence[str], place: str, variables: Mapping[str, str]) -> list[str]:
        """Return the options that send rank i to host `dealt[i]`, with these environment variables."""
        counts = Counter(dealt)  # in the order of their first ranks
        listed = ["-hosts", ",".join(f"{host}:{count}" for host, count in counts.items())]
        if place != "node":
            return listed
        number = {host: index for index, host in enumerate(counts)}
        return [*listed, "-rankmap", ",".join(str(number[host]) for host in dealt)]

    def names_hosts(self, words: Sequence[str]) -> bool:
        """Return whether its command line, in `words`, places ranks."""
        options = self.host_options.split()
        return any(self._option(word) in options for word in words if word.startswith("-"))

    def _option(self, word: str) -> str:
        return word.lstrip("-").partition("=")[0]

    def crowding(self, oversubscribed: bool) -> list[str]:
        """Return the options by which it takes all ranks that were dealt, whatever slots it counts."""
        return []

    def prepare(self, variables: dict[str, str], family: str) -> None:
        """Add the environment variables that it, or an srun that it calls, reads."""

    def may_leave(self, placing: bool) -> bool:
        """Return whether ranks may be on other hosts, where we chose it and are `placing` them or not."""
        return True

    def awaited(self, start: Start) -> str:
        """Return what has yet to happen before the ranks are there, for a message."""
        return "MPI's start"


class Unknown(LauncherKind):
    """A program of the user's; we do not run it to find out more."""

    known = False

    def patience(self, ranks: int) -> float | None:
        return None

    def prepare(self, variables: dict[str, str], family: str) -> None:
        environment.for_open_mpi(variables)


class Alone(LauncherKind):
    """No launcher: the worker is our child, and the only rank."""

    name = "alone"
    alone = True


class Joined(LauncherKind):
    """Somebody else's launcher, which has started this process, too, as a rank of its job."""

    name = "joined"
    joined = True

    def awaited(self, start: Start) -> str:
        return f"MPI's start, for which all {start.ranks} ranks of that launcher must be there,"


class _Mpiexec(LauncherKind):
    """A launcher that comes with an MPI library, and starts a process of its own on each host."""

    def prepare(self, variables: dict[str, str], family: str) -> None:
        slurm.for_proxies(variables, os.environ)

    def awaited(self, start: Start) -> str:
        if "fork" in start.command:
            return "MPI's start"
        how = "each host, and MPI's start there,"
        if slurm.in_allocation(start.environment):
            how = "srun, by which it starts a process on each node,"
        return f"{NAMES[self.family]}'s launcher, and {how}"


class Hydra(_Mpiexec):
    """MPICH's mpiexec, and Intel MPI's."""

    name, family = "hydra", "mpich"
    host_options = "f hosts host hostfile machine machines machinefile ppn rankmap"
    stays = True

    def options(self, family: str, threads: int, dealt: Sequence[str]) -> list[str]:
        if dealt:
            return _FORK if _all_here(dealt) else []
        # Without fork, hydra may look for ssh or a batch system that one machine does not need.
        return [] if _in_batch() or "HYDRA_LAUNCHER" in os.environ else _FORK


class OpenMpi(_Mpiexec):
    """Open MPI's mpirun."""

    name, family = "openmpi", "openmpi"
    host_options = "host H hostfile machinefile default-hostfile map-by npernode N"
    survivable = True

    def options(self, family: str, threads: int, dealt: Sequence[str]) -> list[str]:
        return ["--bind-to", "none"]

    def placement(self, dealt: Sequence[str], place: str, variables: Mapping[str, str]) -> list[str]:
        listed = ",".join(f"{host}:{count}" for host, count in Counter(dealt).items())
        where = ["--host", listed, "--map-by", "node" if place == "node" else "slot"]
        # Unlike the others it passes on only variables of its own.
        names = [*environment.for_other_hosts(variables), worker.RUN, worker.FRONT]
        return [*where, *(word for name in names for word in ("-x", name))]

    def crowding(self, oversubscribed: bool) -> list[str]:
        return ["--oversubscribe"]

    def prepare(self, variables: dict[str, str], family: str) -> None:
        environment.for_open_mpi(variables)
        super().prepare(variables, family)

    def may_leave(self, placing: bool) -> bool:
        return placing or _in_batch()


class Srun(LauncherKind):
    """Slurm's srun, which starts ranks of any MPI library by an MPI type that the library understands."""

    name = "srun"
    host_options = "nodelist w nodefile F nodes N ntasks-per-node distribution m"

    def patience(self, ranks: int) -> float | None:
        return super().patience(ranks) if slurm.in_allocation(os.environ) else None

    def options(self, family: str, threads: int, dealt: Sequence[str]) -> list[str]:
        mpi = slurm.mpi_type("srun", family, os.environ)
        return [*([f"--mpi={mpi}"] if mpi else []), "--cpu-bind=none", f"--cpus-per-task={threads}"]

    def placement(self, dealt: Sequence[str], place: str, variables: Mapping[str, str]) -> list[str]:
        counts = Counter(dealt)
        each = set(counts.values())
        if len(each) > 1:  # srun would fill the first hosts, as far as there are processors
            return [f"--nodelist={','.join(dealt)}", "--distribution=arbitrary"]
        order = "cyclic" if place == "node" else "block"
        spread = [f"--nodes={len(counts)}", f"--ntasks-per-node={each.pop()}"]
        return [f"--nodelist={','.join(counts)}", *spread, f"--distribution={order}"]

    def _option(self, word: str) -> str:
        return super()._option(word) if word.startswith("--") else word[1:2]  # such as -N3

    def crowding(self, oversubscribed: bool) -> list[str]:
        return ["--overcommit"] if oversubscribed else []

    def prepare(self, variables: dict[str, str], family: str) -> None:
        slurm.for_steps(variables, family)

    def awaited(self, start: Start) -> str:
        return "srun, to start the ranks in a step of its own,"


UNKNOWN, ALONE, JOINED, HYDRA, OPEN_MPI, SRUN = Unknown(), Alone(), Joined(), Hydra(), OpenMpi(), Srun()
_PROGRAMS: dict[str, LauncherKind] = {
    **dict.fromkeys(("orterun", "prterun", "prte", "mpirun.openmpi", "mpiexec.openmpi"), OPEN_MPI),
    **dict.fromkeys(("mpiexec.hydra", "mpirun.hydra"), HYDRA),
    "srun": SRUN,
}
_VERSIONS = {"Open MPI|PRRTE|OpenRTE": OPEN_MPI, r"HYDRA|Intel\(R\) MPI": HYDRA}


@functools.cache
def kind_of(program: str) -> LauncherKind:
    """Return the kind of a launcher, by its name, else by the version that it prints."""
    name = os.path.basename(os.path.realpath(program))
    if name in _PROGRAMS:
        return _PROGRAMS[name]
    if not re.search("mpi|prun|prterun", name):  # whatever else it is, we do not run it to find out
        return UNKNOWN
    try:
        printed = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_PATIENCE, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    return next((kind for words, kind in _VERSIONS.items() if re.search(words, printed)), UNKNOWN)


def names_hosts(words: Sequence[str]) -> bool:
    """Return whether `words`, of a launcher of whatever kind, place ranks."""
    return any(kind.names_hosts(words) for kind in (HYDRA, OPEN_MPI, SRUN))


class Worker(msgspec.Struct, frozen=True):
    """The worker program and what `build.json` beside it says."""

    path: str
    build: dict[str, str]

    @property
    def mpi(self) -> str:
        """Origin of its MPI library: `wheel` (the mpich package of this Python) or `site`."""
        return self.build.get("mpi", "wheel")

    @property
    def family(self) -> str:
        """Its MPI library, `mpich`, `openmpi` or `unknown`: that of the launchers that it understands."""
        if self.mpi == "wheel":
            return "mpich"
        recorded = self.build.get("mpiexec", "")
        return (kind_of(recorded).family if recorded else "") or "unknown"


class Start(msgspec.Struct, frozen=True):
    """A command line and its environment.

    `patience` is how many seconds `ranks` may take to start; None: as long as they like, since a launcher
    such as srun may queue. `chosen` are the user's words for the launcher, `family` is the worker's MPI; for
    messages. `remote`: ranks may be on other hosts than this; `hosts`: on which, where that is known.
    `proxies`: children of the launcher live as long as the ranks that they have started. `survives`: ranks
    go on without one that has died. `kept` is what must be there until they end.
    """

    command: list[str]
    environment: dict[str, str]
    launcher: LauncherKind = UNKNOWN
    ranks: int = 1
    patience: float | None = None
    chosen: str = ""
    family: str = "unknown"
    remote: bool = False
    hosts: tuple[str, ...] = ()
    proxies: bool = False
    survives: bool = False
    kept: Any = None

    def guarded(self, program: str) -> Start:
        """Return this start with a shell around `program`, the worker, where ranks are on other hosts."""
        if not self.remote:
            return self
        at = self.command.index(program)
        command = [*self.command[:at], "/bin/sh", "-c", _GUARD, *self.command[at:]]
        return msgspec.structs.replace(self, command=command)

    def shown(self) -> list[str]:
        """Return the command for people, without that shell."""
        if _GUARD not in self.command:
            return self.command
        at = self.command.index(_GUARD)
        return [*self.command[: at - 2], *self.command[at + 1 :]]


def find_worker() -> Worker:
    """Return the worker; raises UsageError, saying where it was sought, when there is none."""
    path = worker.find()
    if path is None:
        raise UsageError(
            f"the worker program is missing, expected at {worker.candidates()[0]}",
            "tilewise doctor, or install tilewise again",
        )
    return Worker(path, worker.build_facts(path))


def mpiexec_path(build: Mapping[str, str]) -> str | None:
    """Return the launcher that belongs to the worker's MPI library, or None when it is not there.

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


def join_start(worker: Worker, variant: Variant, oversubscribed: bool, remote: bool) -> Start:
    """Return the start of our rank's own worker, in a job that somebody else's launcher started."""
    granted = allocation.granted(os.environ)
    return Start(
        [worker.path, "--expect", str(variant.ranks), "--joined"],
        environment.for_ranks(os.environ, variant.threads, oversubscribed, own_launcher=False),
        JOINED,
        ranks=variant.ranks,
        patience=JOINED.patience(variant.ranks),
        family=worker.family,
        remote=remote,
        hosts=tuple(node.name for node in granted.nodes) if granted else (),
    )


def foreign(joined: Join, worker: Worker) -> UsageError:
    """Return the error of ranks whose launcher the worker's MPI does not understand."""
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


def own_start(
    worker: Worker,
    variant: Variant,
    dealt: Sequence[str],
    chosen: str,
    oversubscribed: bool,
    place: str = "core",
    single: bool = False,
    survives: bool = False,
) -> Start:
    """Return the start of a job of our own: the worker alone for one rank, else under a launcher.

    `dealt` is the host of each rank; empty: this one, or wherever a launcher likes. A launcher that the user
    has `chosen` and that we know is told of the hosts too, unless its words name hosts already. `single`
    tells MPI that ranks have no threads, which spares some libraries locks. `survives` has Open MPI let
    ranks live without others.
    """
    variables = environment.for_ranks(os.environ, variant.threads, oversubscribed, own_launcher=True)
    if single:
        variables["TILEWISE_MPI_THREADS"] = "single"
    if not chosen and variant.ranks == 1 and (not dealt or _all_here(dealt)):
        if worker.mpi == "wheel":
            environment.for_one_node(variables)
        return Start([worker.path], variables, ALONE, patience=ALONE.patience(1), family=worker.family)
    if chosen:
        words, launcher = _chosen_launcher(worker, chosen)
        named = launcher.names_hosts(words)
        options, placing = [], bool(dealt) and launcher.known and not named
    else:
        words, launcher = _own_launcher(worker)
        named, options = False, launcher.options(worker.family, variant.threads, dealt)
        placing = bool(dealt) and options != _FORK
    here = options == _FORK
    launcher.prepare(variables, worker.family)
    if worker.mpi == "wheel" and here:
        environment.for_one_node(variables)
    where = launcher.placement(dealt, place, variables) if placing else []
    if placing or not chosen:
        options = [*options, *launcher.crowding(oversubscribed)]
    survives = survives and launcher.survivable
    if survives:
        options = ["--with-ft", "ulfm", *options]
    stays = launcher.stays and not (dealt or named or _in_batch() or "HYDRA_HOST_FILE" in os.environ)
    program = [worker.path, *(["--expect", str(variant.ranks)] if chosen else [])]
    return Start(
        [*words, *options, *where, "-n", str(variant.ranks), *program],
        variables,
        launcher,
        ranks=variant.ranks,
        patience=launcher.patience(variant.ranks),
        chosen=chosen,
        family=worker.family,
        remote=bool(chosen) or (not here and launcher.may_leave(placing)),
        hosts=(os.uname().nodename,) if stays else tuple(dealt) if placing else (),
        proxies=launcher is HYDRA and (not chosen or _is_wheels(worker, words[0])),
        survives=survives,
    )


def _all_here(dealt: Sequence[str]) -> bool:
    """Return whether all ranks are for this host, by its own name or by Slurm's."""
    return set(dealt) == {allocation.this_host(allocation.granted(os.environ))}


def _own_launcher(worker: Worker) -> tuple[list[str], LauncherKind]:
    """Return the launcher of the worker's MPI, and its kind."""
    mpiexec = mpiexec_path(worker.build)
    if mpiexec is None:
        wanted = (
            "the mpich package of this Python"
            if worker.mpi == "wheel"
            else worker.build.get("mpiexec", "mpiexec")
        )
        raise UsageError(f"mpiexec is missing; the worker needs that of {wanted}", "tilewise doctor, or -n 1")
    return [mpiexec], HYDRA if worker.mpi == "wheel" else kind_of(mpiexec)


def _chosen_launcher(worker: Worker, chosen: str) -> tuple[list[str], LauncherKind]:
    """Return the words of --launcher, and its kind; refuses what surely belongs to another MPI."""
    import shutil

    try:
        words = shlex.split(chosen)
    except ValueError as error:  # a quotation that does not end
        raise UsageError(f"--launcher {chosen!r}: {error}") from None
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise UsageError(f"--launcher {chosen!r}: there is no program {words[0] if words else ''!r}")
    launcher = HYDRA if _is_wheels(worker, words[0]) else kind_of(program)
    theirs, mine = launcher.family or worker.family, worker.family
    # A site's MPICH may be built to understand Open MPI's daemons, which speak PMIx; the wheel's is not.
    if theirs != mine and "unknown" not in (theirs, mine) and (worker.mpi == "wheel" or mine == "openmpi"):
        raise UsageError(
            f"--launcher {chosen!r} belongs to {NAMES[theirs]}, but the worker is built with {NAMES[mine]}",
            f"no --launcher, which takes {mpiexec_path(worker.build) or f'the mpiexec of {NAMES[mine]}'}",
        )
    return words, launcher


def _is_wheels(worker: Worker, program: str) -> bool:
    """Return whether `program` is the launcher of the package's own MPI."""
    import shutil

    ours = mpiexec_path(worker.build) if worker.mpi == "wheel" else None
    return ours is not None and os.path.realpath(shutil.which(program) or "") == os.path.realpath(ours)


def _in_batch() -> bool:
    """Return whether a batch system may have given us other hosts, which launchers find by themselves."""
    return any(key in os.environ for key in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"))
