"""Says in one message why a run failed: what the ranks reported, or which of them died and how."""

from __future__ import annotations

import os
import re
import resource
import signal

from tilewise.errors import RunError, TilewiseError, UsageError, VerificationError
from tilewise.launch import advice
from tilewise.launch.events import Failed
from tilewise.launch.supervise import Outcome
from tilewise.units import bytes_text, listing, plural

_HYDRA_PID = re.compile(r"PID (\d+) RUNNING AT (\S+)")
_HYDRA_CODE = re.compile(r"EXIT CODE: (\d+)")
_HYDRA_SIGNAL = re.compile(r"KILLED BY SIGNAL: (\d+)|EXIT STRING: .*\(signal (\d+)\)")
_OPEN_MPI = re.compile(r"process rank (\d+) with PID (\d+) on node (\S+) exited on signal (\d+)")
_OPEN_MPI_5 = re.compile(r"process rank (\d+) .*?exited on\s+signal (\d+)")
_SRUN = re.compile(
    r"task (\d+): .*?(Killed|Terminated|Segmentation fault|Aborted|Exited with exit code (\d+))"
)
_NO_MPI = re.compile(r"Abort\(\d+\) on node (\d+).*?: Fatal error in (?:internal|PMPI|MPI)_Init")
_EXITS: dict[str, type[TilewiseError]] = {
    "usage": UsageError,
    "memory": UsageError,
    "verification": VerificationError,
}
_SHARED = "/dev/shm"
_SHARED_OF_RANK = 6 << 20  # bytes that MPICH and UCX want there at the start, for each rank


def error_of(outcome: Outcome, timeout: float | None) -> TilewiseError | None:
    """The error that `outcome` means, or None when the run did what it was told and ended well."""
    if outcome.failed is not None:
        return _reported(outcome, outcome.failed)
    if outcome.timed_out:
        return _timed_out(outcome, timeout)
    if outcome.unstarted is not None:
        return RunError(
            f"not all ranks had started after {outcome.unstarted:g} s; MPI's start was waited for",
            "run again with -v to see what the launcher prints, and tilewise doctor",
        )
    if outcome.signalled is not None and outcome.lost is None:  # else it was we who ended that rank
        told = outcome.signalled
        return _killed(outcome, _rank(outcome, told.rank), told.number, told.phase)
    if outcome.hung:
        return RunError(
            "the job was done but its ranks did not end in time, so that its result is not trusted",
            "run again; with -v to see what the ranks print, where it happens again",
        )
    if outcome.lost is not None:
        return _lost(outcome, outcome.lost)
    if outcome.returncode != 0:
        return _died(outcome)
    if outcome.record is None:
        return RunError("the ranks ended without a result", "run again with -v to see what they printed")
    return None


def _reported(outcome: Outcome, failed: Failed) -> TilewiseError:
    kind = _EXITS.get(failed.kind, RunError)
    message = re.sub(rf"^rank {failed.rank}: ", "", failed.message)
    if failed.rank >= 0 and not re.search(rf"\brank {failed.rank}\b", message):
        host = _host(outcome, failed.rank)
        if kind is not UsageError or failed.rank > 0:
            message = f"rank {failed.rank}{f' on {host}' if host else ''}: {message}"
    return kind(message, advice.of_failure(failed.kind, failed.errno))


def _timed_out(outcome: Outcome, timeout: float | None) -> RunError:
    begun = f"the job took longer than --timeout {timeout:g} seconds and was ended"
    if outcome.started is None:
        return RunError(f"{begun} while its ranks were starting", "run again with -v, and tilewise doctor")
    stopped = [rank for rank, state in outcome.states.items() if state in ("T", "t")]
    waiting = [r for r, state in outcome.states.items() if state == "D" and r not in outcome.where]
    mute = [r for r in outcome.states if r not in {*outcome.where, *stopped, *waiting}]
    found = [
        f"{listing([_rank(outcome, rank) for rank in ranks])} {what}"
        for ranks, what in (
            (stopped, "was stopped by a signal or a debugger"),
            (waiting, "waited for a disk or a file server"),
            (mute, "did not answer"),
        )
        if ranks
    ]
    phases: dict[str, list[int]] = {}
    for rank, phase in sorted(outcome.where.items()):
        phases.setdefault(phase or "start", []).append(rank)
    if len(phases) == 1 and not found:
        return RunError(f"{begun}, in {next(iter(phases))}", advice.LONGER)
    for phase, ranks in sorted(phases.items(), key=lambda each: len(each[1])):
        who = _rank(outcome, ranks[0]) if len(ranks) == 1 else plural(len(ranks), "rank")
        found.append(f"{who} in {phase}")
    if not found and outcome.phase:
        return RunError(f"{begun}, in {outcome.phase}", advice.LONGER)
    where = f": {'; '.join(found)}" if found else ""
    return RunError(begun + where, advice.STOPPED if stopped else advice.LONGER)


def _lost(outcome: Outcome, host: str) -> RunError:
    if outcome.started is None:
        return RunError(
            "the launcher's own process for this host ended before it had started the ranks, and mpiexec "
            "waited on",
            "run again; tilewise doctor, and -v to see what mpiexec prints, where it happens again",
        )
    seen = outcome.first_gone
    who = _rank(outcome, seen) if seen is not None and seen >= 0 else f"a rank on {host or 'another host'}"
    return RunError(
        f"{who} ended before the job was done, and the launcher did not end the others",
        "look for 'out of memory' in that host's kernel log, or run again with -v",
    )


def _died(outcome: Outcome) -> RunError:
    text = "\n".join(outcome.chatter)
    if outcome.started is None and (match := _NO_MPI.search(text)):
        reason = text[match.end() :].partition("Abort(")[0].rstrip().rpartition("\n")[2]
        why = re.sub(r"^\S+\(\d+\)[.: ]*", "", reason)
        return _no_start(outcome, f"MPI could not be started on rank {match[1]}: {why}")
    who, number = _victim(outcome, text)
    if number is not None:
        return _killed(outcome, who, number, "")
    done = " after its result was made" if outcome.record is not None else ""
    message = f"{who} ended with exit code {outcome.returncode}{done}"
    if outcome.started is None:
        return _no_start(outcome, message)
    return RunError(message, "run again with -v to see what the ranks printed")


def _killed(outcome: Outcome, who: str, number: int, phase: str) -> RunError:
    done = " after its result was made" if outcome.record is not None else f" in {phase}" if phase else ""
    message = f"{who} was killed by {_signal_name(number)}{done}"
    if outcome.started is None and number in (signal.SIGBUS, signal.SIGSEGV, signal.SIGABRT):
        return _no_start(outcome, message)
    if number == signal.SIGKILL and outcome.memory_kills > 0:
        count = outcome.memory_kills
        return RunError(
            f"{message}; for want of memory the kernel of this host killed "
            f"{'a process' if count == 1 else f'{count} processes'} meanwhile",
            advice.MEMORY,
        )
    return RunError(message, advice.of_signal(number))


def _no_start(outcome: Outcome, message: str) -> RunError:
    """MPI's start failed: on one host that is nearly always for want of memory of some kind."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        return RunError(
            f"{message}; it may have {bytes_text(limit)} of addresses (ulimit -v)", "ulimit -v unlimited"
        )
    try:
        found = os.statvfs(_SHARED)
    except OSError:
        return RunError(message, advice.START)
    free = found.f_bavail * found.f_frsize
    if free >= _SHARED_OF_RANK * max(outcome.ranks, 2):
        return RunError(message, advice.START)
    return RunError(
        f"{message}; {_SHARED} has {bytes_text(free)} free, and MPI wants about "
        f"{bytes_text(_SHARED_OF_RANK)} of it for each of {plural(outcome.ranks, 'rank')}",
        f"a larger one (mount -o remount,size=1G {_SHARED}; docker run --shm-size=1g), or fewer ranks",
    )


def _victim(outcome: Outcome, text: str) -> tuple[str, int | None]:
    """Who died, and of which signal: from the launcher's banner, else from the child's own exit."""
    if match := _OPEN_MPI.search(text):
        return _rank(outcome, int(match[1])), int(match[4])
    if match := _OPEN_MPI_5.search(text):
        return _rank(outcome, int(match[1])), int(match[2])
    if match := _HYDRA_PID.search(text):
        who = _rank_of(outcome, int(match[1]), match[2])
        seen = outcome.first_gone
        # Which host it was is true, but of its ranks it may name any that it killed itself.
        if seen is not None and _host(outcome, max(seen, 0)) == match[2]:
            who = _rank(outcome, seen) if seen >= 0 else f"a rank on {match[2]}"
        return who, _hydra_signal(text, match.end())
    if match := _SRUN.search(text):
        numbers = {"Killed": 9, "Terminated": 15, "Segmentation fault": 11, "Aborted": 6}
        return _rank(outcome, int(match[1])), numbers.get(match[2])
    ranks = outcome.started.ranks if outcome.started else []
    alone = (
        f"rank 0 (pid {ranks[0].pid} on {ranks[0].host})"
        if len(ranks) == 1
        else "the job's launcher or a rank"
    )
    if outcome.returncode < 0:
        return alone, -outcome.returncode
    # Launchers and shells pass a signal on as 128 + its number.
    return alone, outcome.returncode - 128 if 128 < outcome.returncode < 160 else None


def _hydra_signal(text: str, begin: int) -> int | None:
    """Its banner has a signal's number where an exit code stands, too; what follows tells them apart."""
    if match := _HYDRA_SIGNAL.search(text, begin):
        return int(match[1] or match[2])
    code = _HYDRA_CODE.search(text, begin)
    return int(code[1]) if code and int(code[1]) in (signal.SIGKILL, signal.SIGTERM) else None


def _rank(outcome: Outcome, number: int) -> str:
    for rank in outcome.started.ranks if outcome.started else []:
        if rank.rank == number:
            return f"rank {number} (pid {rank.pid} on {rank.host})"
    return f"rank {number}"


def _host(outcome: Outcome, number: int) -> str:
    ranks = outcome.started.ranks if outcome.started else []
    return next((rank.host for rank in ranks if rank.rank == number), "")


def _rank_of(outcome: Outcome, pid: int, host: str) -> str:
    for rank in outcome.started.ranks if outcome.started else []:
        if rank.pid == pid:
            return f"rank {rank.rank} (pid {pid} on {host})"
    return f"a rank (pid {pid} on {host})"


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
