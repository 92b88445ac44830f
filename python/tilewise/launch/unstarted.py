"""Says why ranks did not start: a known cause, what MPI or the launcher printed, or what is short here."""

from __future__ import annotations

import os
import re
import resource

from tilewise.base.errors import RunError, TilewiseError, UsageError
from tilewise.base.memory import SHARED_OF_RANK
from tilewise.base.units import bytes_text, plural
from tilewise.launch import advice, causes
from tilewise.launch.launcher import NAMES, Start
from tilewise.launch.outcome import Outcome

_NO_MPI = re.compile(r"Abort\(\d+\) on node (\d+).*?: Fatal error in (?:internal|PMPI|MPI)_Init")
_SHARED = "/dev/shm"


def too_late(outcome: Outcome, begun: str, start: Start | None) -> RunError:
    """Of ranks that had not all started when there was no more time, which `begun` tells."""
    known = causes.known(outcome.chatter, start)
    if known is not None:
        return RunError(f"{begun}: {known.message}", known.advice)
    return RunError(
        f"{begun}; {_awaited(start)} was waited for{_words(outcome)}",
        "run again with -v to see what the launcher prints, and tilewise doctor",
    )


def _awaited(start: Start | None) -> str:
    """Who has yet to do something for the ranks to be there."""
    return "MPI's start" if start is None else start.launcher.awaited(start)


def died(outcome: Outcome, message: str, start: Start | None) -> TilewiseError:
    """Of a launcher that ended with `message` before the ranks had started, by an exit code."""
    known = causes.known(outcome.chatter, start)
    if known is not None:
        return known
    text = "\n".join(outcome.chatter)
    if match := _NO_MPI.search(text):
        reason = text[match.end() :].partition("Abort(")[0].rstrip().rpartition("\n")[2]
        why = re.sub(r"^\S+\(\d+\)[.: ]*", "", reason)
        return short_of(outcome, f"MPI could not start on rank {match[1]}: {why}")
    if start is not None and start.chosen and not start.launcher.known:
        return nothing(outcome, start)
    return short_of(outcome, message + _words(outcome))


def nothing(outcome: Outcome, start: Start) -> UsageError:
    """Of a launcher of the user's that was none, whatever its exit code."""
    mine = NAMES.get(start.family, "the worker's MPI")
    return UsageError(
        f"--launcher {start.chosen!r} started no ranks, and ended with exit code {outcome.returncode}"
        f"{_words(outcome)}",
        f"no --launcher, or one that starts ranks of {mine} with -n COUNT PROGRAM, as mpiexec and srun do",
    )


def lost(outcome: Outcome, start: Start | None) -> TilewiseError:
    """Of a launcher that waits for a process of its own, or for a rank on another host, which has gone."""
    if outcome.first_host:
        return causes.known(outcome.chatter, start) or RunError(
            f"a rank on {outcome.first_host} ended before all ranks had started{_words(outcome)}",
            f"run again; tilewise doctor on {outcome.first_host} if it happens again",
        )
    return causes.known(outcome.chatter, start) or RunError(
        "the launcher's own process for this host ended before it had started the ranks, and mpiexec "
        f"waited on{_words(outcome)}",
        "run again; tilewise doctor, and -v to see what mpiexec prints, if it happens again",
    )


def _words(outcome: Outcome) -> str:
    said = causes.last_words(outcome.chatter)
    return f"; the launcher's last output: {said}" if said else ""


def short_of(outcome: Outcome, message: str) -> RunError:
    """MPI's start failed: on one host that is nearly always for want of memory of some kind."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        return RunError(
            f"{message}; its address space is limited to {bytes_text(limit)} (ulimit -v)",
            "ulimit -v unlimited",
        )
    try:
        room = os.statvfs(_SHARED)
    except OSError:
        return RunError(message, advice.START)
    free = room.f_bavail * room.f_frsize
    if free >= SHARED_OF_RANK * max(outcome.ranks, 2):
        return RunError(message, advice.START)
    return RunError(
        f"{message}; {_SHARED} has {bytes_text(free)} free, and MPI needs about "
        f"{bytes_text(SHARED_OF_RANK)} of it for each of {plural(outcome.ranks, 'rank')}",
        f"a larger one (mount -o remount,size=1G {_SHARED}; docker run --shm-size=1g), or fewer ranks",
    )
