"""Reasons why ranks did not start: known by what a launcher prints, its last lines, or what is short here."""

from __future__ import annotations

import _socket  # what is behind `socket`, whose import takes longer
import os
import re
import resource
from collections.abc import Sequence
from typing import NamedTuple

from tilewise.base.errors import RunError, TilewiseError, UsageError
from tilewise.base.memory import SHARED_OF_RANK
from tilewise.base.units import bytes_text, plural
from tilewise.launch import slurm
from tilewise.launch.launcher import NAMES, Start
from tilewise.launch.outcome import Outcome

START = "run again with -v to see what MPI printed, and tilewise doctor"


class _Cause(NamedTuple):
    """A cause, told by `seen` in the output; in `message` and `advice` `{0}` is its first group.

    `wrong`: the request is, not the run. `address`: the first group is one, and a name says more.

    Advice may use `{mpi}`, the worker's MPI, `{type}`, the MPI type that it wants of srun, and `{ranks}`.
    """

    seen: str
    message: str
    advice: str
    wrong: bool = False
    address: bool = False


_PMI2 = "srun --mpi={type} -n {ranks} …"
_SSH = "ssh {0} true, by hand, until it works without a prompt; or a batch system's allocation"
# The first that fits is taken: special ones come first.
_CAUSES = (
    # MPI and the batch system do not speak the same language.
    _Cause(
        r"PMI_SIZE and PMIX_NAMESPACE",
        "MPICH's launcher was itself started as a rank of PMIx, so ranks find two launchers",
        "SLURM_MPI_TYPE=none where that launcher runs",
    ),
    _Cause(
        r"unsupported PMI version PMIx",
        "the batch system speaks PMIx to the ranks (MPI type pmix), which {mpi} does not support",
        _PMI2,
        wrong=True,
    ),
    _Cause(
        r"not built with SLURM's PMI support|OPAL ERROR: Unreachable in file .*_client\.c",
        "{mpi} does not support srun's MPI type",
        _PMI2,
        wrong=True,
    ),
    _Cause(
        r"can ?not load PMIx library",
        "Slurm lacks the PMIx library that its MPI type pmix loads, libpmix.so",
        "an administrator installs it on every node (libpmix-dev); until then --launcher mpiexec",
    ),
    _Cause(
        r"Invalid MPI type '([^']*)'|cannot find mpi plugin for mpi/(\S+)",
        "this Slurm has no MPI type {0}",
        "one of those that srun --mpi=list names; {mpi} needs {type}",
        wrong=True,
    ),
    # Slurm does not start a step.
    _Cause(
        r"Unable to confirm allocation for job (\d+): (.*)",
        "Slurm does not know allocation {0}, named in the environment (SLURM_JOB_ID): {1}",
        "unset SLURM_JOB_ID SLURM_JOBID, or a new salloc: that one has ended",
        wrong=True,
    ),
    _Cause(
        r"Unable to create step for job (\d+): (.*)",
        "Slurm cannot start a step in allocation {0}: {1}",
        "scontrol show job {0} shows what it has; fewer ranks or threads, or other options of --launcher",
    ),
    _Cause(
        r"step creation (?:temporarily|still) disabled, retrying(?: \((.*)\))?",
        "Slurm delays the step: {0}; another step of the same allocation holds its resources",
        "wait for that one (squeue --steps), or SLURM_OVERLAP=1 to share processors with it",
    ),
    _Cause(
        r"Unable to allocate resources: (.*)|error: (.*queued and waiting.*)",
        "Slurm gives no allocation: {0}",
        "other options of --launcher; sinfo shows nodes and partitions",
        wrong=True,
    ),
    _Cause(
        r"Could not establish a configuration source|Unable to process configuration file",
        "no Slurm here: srun finds no configuration",
        "no --launcher, or from a host of the cluster",
        wrong=True,
    ),
    _Cause(
        r"Unable to contact slurm controller|Unable to establish controller machine",
        "Slurm's controller does not answer",
        "scontrol ping; ask an administrator if it stays so",
    ),
    _Cause(
        r"Node failure on (\S+)|Error: Node (\S+) failure|Task launch for \S+ failed on node (\S+): ?.*",
        "node {0} failed, or Slurm cannot start anything there",
        "sinfo -R shows why; an allocation without it (salloc --exclude={0} …)",
    ),
    # Other hosts are reached by ssh.
    _Cause(
        r"execvp error on file (ssh|rsh)\b|plm_rsh_agent: (ssh)\b",
        "there is no {0} here, which {mpi}'s launcher needs to reach other hosts",
        "install it, or name another: HYDRA_LAUNCHER_EXEC for MPICH, OMPI_MCA_plm_rsh_agent for Open MPI",
    ),
    _Cause(
        r"Could not resolve hostname (\S+?):|unable to get host address for (\S+)",
        "no host is called {0}",
        "a name that getent hosts {0} finds, in --hosts",
        wrong=True,
    ),
    _Cause(
        r"connect to host (\S+) port \d+: (.*)",
        "ssh cannot reach {0}: {1}",
        _SSH,
    ),
    _Cause(
        r"The authenticity of host '(\S+)|(?:ECDSA|RSA|ED25519) host key for (\S+) has changed|"
        r"Host key verification failed",
        "ssh does not know the key of host {0}",
        "ssh {0} once by hand, or ssh-keyscan {0} >> ~/.ssh/known_hosts",
    ),
    _Cause(
        r"(?:(?:\S+@)?(\S+): )?Permission denied \((?:publickey|password|keyboard)",
        "ssh is not allowed to log in to host {0}",
        "a key that needs no password: ssh-keygen, then ssh-copy-id",
    ),
    _Cause(
        r"unable to connect from (\S+) to (\S+) \((.*)\)",
        "{0} cannot connect to {1}: {2}",
        "a network that both hosts share: mpiexec -iface NAME as --launcher, and no firewall between them",
    ),
    # MPI itself reaches no rank that had started there.
    _Cause(
        r"connect\(fd=\d+, dest_addr=([\d.]+|\[?[\da-f:]+\]?):\d+\) failed: (.*)",
        "a rank on {0} ended, or is not reached from here: {1}",
        "run again; tilewise doctor on that host if it happens again",
        address=True,
    ),
    # Open MPI's own reasons.
    _Cause(
        r"not enough slots available",
        "Open MPI has fewer slots than {ranks} ranks want",
        "fewer ranks, or --launcher with mpiexec --oversubscribe",
        wrong=True,
    ),
    _Cause(
        r"attempt to run as root|detected an attempt to run.*as root",
        "Open MPI does not run as root",
        "another user, or OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        wrong=True,
    ),
    _Cause(
        r"unable to reliably start one or more daemons",
        "Open MPI cannot start its daemons on the other hosts",
        "the same Open MPI there, and ssh to them without a prompt",
    ),
    # Programs, and where they are started.
    _Cause(
        r"@(\S+)\] .*unable to change wdir to (\S+) \((.*)\)",
        "the job was started in {1}, which {0} cannot enter: {2}",
        "cd to a folder that all hosts share, and start it there",
        wrong=True,
    ),
    _Cause(
        r"execve\(\): (\S+): (.*)|execvp error on file (\S+) \((.*)\)",
        "{0} cannot be started: {1}",
        "install it under the same path on every host",
    ),
)
# What launchers print around their reasons, and what says nothing to whoever does not develop them.
_NOISE = re.compile(
    r"^\W*$|^=|^\[(?:mpiexec|proxy)\S*\] (?:HYD|main|ui_cmd_cb|control_cb|send_hdr|launch_)|BAD TERMINATION|"
    r"YOUR APPLICATION TERMINATED|CLEANING UP REMAINING|YOU CAN IGNORE|Exited with exit code|"
    r"srun: (?:Warning: can't run|cluster configuration lacks|Job step aborted|Terminating)|"
    r"srun: error: .*: tasks? [\d,-]+: |slurmstepd.*STEP .* (?:ON|CANCELLED)|"
    r"MPII?R?_?\w*\(\d+\)\.*: *$|Abort\(\d+\) on node|Local abort before MPI_INIT"
)
_WAITS = re.compile(r"(?:srun|salloc): .*(?:queued and waiting|step creation \w+ disabled|Waiting for)")
_NO_MPI = re.compile(r"Abort\(\d+\) on node (\d+).*?: Fatal error in (?:internal|PMPI|MPI)_Init")
_SHARED = "/dev/shm"
_LINES, _WIDTH = 3, 160  # of a launcher's last words


def known(chatter: Sequence[str], start: Start | None) -> TilewiseError | None:
    """The error that these lines mean, if it is one of those known by name."""
    text = "\n".join(chatter)
    fields = {
        "mpi": NAMES.get(start.family, "the worker's MPI") if start else "the worker's MPI",
        "type": slurm.SPOKEN.get(start.family if start else "", ("pmi2 or pmix",))[0],
        "ranks": str(start.ranks) if start else "N",
    }
    for cause in _CAUSES:
        if match := re.search(cause.seen, text):
            groups = [group for group in match.groups() if group is not None] or ["HOST"]
            groups += ["?"] * 3
            if cause.address:
                groups[0] = _named(groups[0])
            kind = UsageError if cause.wrong else RunError
            return kind(cause.message.format(*groups, **fields), cause.advice.format(*groups, **fields))
    return None


def _named(address: str) -> str:
    """The address with its host's name before it, where it has one."""
    try:
        return f"{_socket.gethostbyaddr(address.strip('[]'))[0]} ({address})"
    except OSError:
        return address


def last_words(chatter: Sequence[str]) -> str:
    """The last lines that say something, in one; empty where there are none."""
    words: list[str] = []
    for line in chatter:
        short = " ".join(line.split())
        if short not in words and not _NOISE.search(short):
            words.append(short if len(short) <= _WIDTH else f"{short[:_WIDTH]}…")
    return " / ".join(words[-_LINES:])


def is_waiting(line: str) -> bool:
    """Return whether a batch system says by this line that it lets us wait."""
    return _WAITS.match(line) is not None


def too_late(outcome: Outcome, begun: str, start: Start | None) -> RunError:
    """Return the error of ranks that had not all started in time, which `begun` tells."""
    if (cause := known(outcome.chatter, start)) is not None:
        return RunError(f"{begun}: {cause.message}", cause.advice)
    awaited = "MPI's start" if start is None else start.launcher.awaited(start)
    return RunError(
        f"{begun}; {awaited} was waited for{_words(outcome)}",
        "run again with -v to see what the launcher prints, and tilewise doctor",
    )


def launcher_ended(outcome: Outcome, message: str, start: Start | None) -> TilewiseError:
    """Return the error of a launcher that ended by an exit code, with `message`, before ranks had started."""
    if (cause := known(outcome.chatter, start)) is not None:
        return cause
    text = "\n".join(outcome.chatter)
    if match := _NO_MPI.search(text):
        reason = text[match.end() :].partition("Abort(")[0].rstrip().rpartition("\n")[2]
        why = re.sub(r"^\S+\(\d+\)[.: ]*", "", reason)
        return short_of(outcome, f"MPI could not start on rank {match[1]}: {why}")
    if start is not None and start.chosen and not start.launcher.known:
        return no_launcher(outcome, start)
    return short_of(outcome, message + _words(outcome))


def no_launcher(outcome: Outcome, start: Start) -> UsageError:
    """Return the error of a --launcher that was none, whatever its exit code."""
    mine = NAMES.get(start.family, "the worker's MPI")
    return UsageError(
        f"--launcher {start.chosen!r} started no ranks, and ended with exit code {outcome.returncode}"
        f"{_words(outcome)}",
        f"no --launcher, or one that starts ranks of {mine} with -n COUNT PROGRAM, as mpiexec and srun do",
    )


def lost_at_start(outcome: Outcome, start: Start | None) -> TilewiseError:
    """Return the error of a launcher that waits for a process of its own, or a remote rank, that has gone."""
    if outcome.first_host:
        return known(outcome.chatter, start) or RunError(
            f"a rank on {outcome.first_host} ended before all ranks had started{_words(outcome)}",
            f"run again; tilewise doctor on {outcome.first_host} if it happens again",
        )
    return known(outcome.chatter, start) or RunError(
        "the launcher's own process for this host ended before it had started the ranks, and mpiexec "
        f"waited on{_words(outcome)}",
        "run again; tilewise doctor, and -v to see what mpiexec prints, if it happens again",
    )


def _words(outcome: Outcome) -> str:
    words = last_words(outcome.chatter)
    return f"; the launcher's last output: {words}" if words else ""


def short_of(outcome: Outcome, message: str) -> RunError:
    """MPI's start failed: on one host that is nearly always for want of memory of some kind."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        return RunError(
            f"{message}; its address space is limited to {bytes_text(limit)} (ulimit -v)",
            "ulimit -v unlimited",
        )
    try:
        status = os.statvfs(_SHARED)
    except OSError:
        return RunError(message, START)
    free = status.f_bavail * status.f_frsize
    if free >= SHARED_OF_RANK * max(outcome.ranks, 2):
        return RunError(message, START)
    return RunError(
        f"{message}; {_SHARED} has {bytes_text(free)} free, and MPI needs about "
        f"{bytes_text(SHARED_OF_RANK)} of it for each of {plural(outcome.ranks, 'rank')}",
        f"a larger one (mount -o remount,size=1G {_SHARED}; docker run --shm-size=1g), or fewer ranks",
    )
