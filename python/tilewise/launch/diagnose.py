"""Says in one message why a run failed: what the ranks reported, or which of them died and how."""

from __future__ import annotations

import re
import signal

from tilewise.errors import RunError, TilewiseError, UsageError, VerificationError
from tilewise.launch.events import Failed
from tilewise.launch.supervise import Outcome

_HYDRA_PID = re.compile(r"PID (\d+) RUNNING AT (\S+)")
_HYDRA_CODE = re.compile(r"EXIT CODE: (\d+)|(?:KILLED BY SIGNAL|EXIT STRING): .*?(\d+)")
_OPEN_MPI = re.compile(r"process rank (\d+) with PID (\d+) on node (\S+) exited on signal (\d+)")
_OPEN_MPI_5 = re.compile(r"process rank (\d+) .*?exited on\s+signal (\d+)")
_SRUN = re.compile(
    r"task (\d+): .*?(Killed|Terminated|Segmentation fault|Aborted|Exited with exit code (\d+))"
)
_ADVICE: dict[int, str] = {
    signal.SIGKILL: "look for 'out of memory' in the kernel's log; fewer ranks or a --memory cap need less",
    signal.SIGBUS: "a disk or /dev/shm may be full, or an input may have shrunk while it was read",
    signal.SIGSEGV: "run again with -v and report this",
    signal.SIGABRT: "run again with -v to see what the ranks printed",
}

_KINDS: dict[str, type[TilewiseError]] = {
    "usage": UsageError,
    "memory": UsageError,
    "verification": VerificationError,
}


def error_of(outcome: Outcome, timeout: float | None) -> TilewiseError | None:
    """The error that `outcome` means, or None when the run did what it was told and ended well."""
    if outcome.failed is not None:
        return _reported(outcome.failed)
    if outcome.timed_out:
        return RunError(f"the job took longer than --timeout {timeout:g} seconds and was ended")
    if outcome.hung:
        return RunError(
            "the job was done but its ranks did not end within 30 s, so that its result is not trusted"
        )
    if outcome.lost is not None:
        return _lost(outcome, outcome.lost)
    if outcome.returncode != 0:
        return _died(outcome)
    if outcome.record is None:
        return RunError("the ranks ended without a result", "run again with -v to see what they printed")
    return None


def _reported(failed: Failed) -> TilewiseError:
    kind = _KINDS.get(failed.kind, RunError)
    where = f"rank {failed.rank}: " if failed.rank > 0 and "rank" not in failed.message else ""
    return kind(where + failed.message)


def _lost(outcome: Outcome, host: str) -> RunError:
    seen = outcome.first_gone
    who = _rank(outcome, seen) if seen is not None and seen >= 0 else f"a rank on {host or 'another host'}"
    return RunError(
        f"{who} ended before the job was done, and the launcher did not end the others",
        "look for 'out of memory' in that host's kernel log, or run again with -v",
    )


def _died(outcome: Outcome) -> RunError:
    who, number = _victim(outcome)
    done = " after its result was made" if outcome.record is not None else ""
    if number is not None:
        name = _signal_name(number)
        return RunError(f"{who} was killed by {name}{done}", _ADVICE.get(number, ""))
    advice = "run again with -v to see what the ranks printed" if outcome.chatter else ""
    return RunError(f"{who} ended with exit code {outcome.returncode}{done}", advice)


def _victim(outcome: Outcome) -> tuple[str, int | None]:
    """Who died, and of which signal: from the launcher's banner, else from the child's own exit."""
    text = "\n".join(outcome.chatter)
    if match := _OPEN_MPI.search(text):
        return _rank(outcome, int(match[1])), int(match[4])
    if match := _OPEN_MPI_5.search(text):
        return _rank(outcome, int(match[1])), int(match[2])
    if match := _HYDRA_PID.search(text):
        code = _HYDRA_CODE.search(text, match.end())
        number = int(code[1] or code[2]) if code else 0
        who = _rank_of(outcome, int(match[1]), match[2])
        seen = outcome.first_gone
        # Which host it was is true, but of its ranks it may name any that it killed itself.
        if seen is not None and seen >= 0 and _host(outcome, seen) == match[2]:
            who = _rank(outcome, seen)
        return who, number if 0 < number < 32 else None
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
            return f"rank {rank.rank} (pid {pid} on {rank.host})"
    return f"a rank (pid {pid} on {host})"


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
