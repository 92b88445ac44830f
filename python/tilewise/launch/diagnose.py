"""Diagnosis of a failed run in one message: what the ranks reported, or which of them died and how.

Design: docs/design/failures.md.
"""

from __future__ import annotations

import os
import re
import signal

from tilewise.base.errors import (
    BY_ERRNO,
    RunError,
    StartError,
    Stopped,
    TilewiseError,
    UsageError,
    VerificationError,
)
from tilewise.base.units import listing, plural
from tilewise.launch import causes, constants, join, slurm
from tilewise.launch.events import Failed, Survived
from tilewise.launch.launcher import NAMES, Start
from tilewise.launch.outcome import STOPPED, Outcome

_HYDRA_PID = re.compile(r"PID (\d+) RUNNING AT (\S+)")
_HYDRA_CODE = re.compile(r"EXIT CODE: (\d+)")
_HYDRA_SIGNAL = re.compile(r"KILLED BY SIGNAL: (\d+)|EXIT STRING: .*\(signal (\d+)\)")
_OPEN_MPI = re.compile(r"process rank (\d+) with PID (\d+) on node (\S+) exited on signal (\d+)")
_OPEN_MPI_5 = re.compile(r"process rank (\d+) .*?exited on\s+signal (\d+)")
_SRUN = re.compile(
    r"task (\d+): .*?(Killed|Terminated|Segmentation fault|Aborted|Exited with exit code (\d+))"
)
_AGAIN = "run again with -v"
_LONGER = "a longer --timeout; tilewise plan … predicts how long the job takes"
_MEMORY = "fewer ranks, or a --memory cap; a larger limit of the container or batch job, where it has one"
# What to do next, by the kind of error that a rank reports, and by the signal that killed one.
_OF_KIND = {
    "memory": "fewer ranks, or a smaller --memory cap",
    "io": "check that the file is complete and its disk healthy, then run again",
    "mpi": causes.START,
    "launcher": "tilewise doctor, or another --launcher",
    "internal": "run again with -v, and report this with what it prints",
}
_OF_SIGNAL: dict[int, str] = {
    signal.SIGKILL: "find out what killed it: an operator, a batch system, or the kernel (its log then says "
    "'out of memory'; fewer ranks or a --memory cap need less)",
    signal.SIGTERM: "find out what ended it: a batch system's limit, or an operator",
    signal.SIGINT: "find out what interrupted that rank alone; to end a job, interrupt tilewise",
    signal.SIGXCPU: "ulimit -t unlimited, or fewer repetitions: its limit of processor time was reached",
    signal.SIGBUS: "a disk or /dev/shm may be full (see df), or an input may have shrunk while it was read",
    signal.SIGSEGV: "run again with -v and report this; where ulimit -s is small, a larger one",
    signal.SIGABRT: "run again with -v to see what the ranks printed",
    signal.SIGFPE: "run again with -v and report this",
    signal.SIGILL: "TILEWISE_KERNELS=baseline, where that host's processor is older; else report this",
}
_EXITS: dict[str, type[TilewiseError]] = {
    "usage": UsageError,
    "memory": UsageError,
    "launcher": UsageError,
    "verification": VerificationError,
    "stopped": Stopped,
}


def error_of(outcome: Outcome, timeout: float | None, start: Start | None = None) -> TilewiseError | None:
    """The error that `outcome` of `start` means, or None when the run did what it was told and ended well."""
    error = _what_happened(outcome, timeout, start)
    reported = outcome.failed is not None and outcome.failed.kind != "mpi"
    if isinstance(error, RunError) and start is not None and start.remote and not reported:
        error.message += _where(outcome, error.message)
    return error


def advice_of_failure(kind: str, number: int) -> str:
    """Return what to try after a failure of that kind, with the system's reason, or 0."""
    return BY_ERRNO.get(number) or _OF_KIND.get(kind, "")


def advice_of_signal(number: int) -> str:
    """Return what to try after a rank was killed by that signal."""
    return _OF_SIGNAL.get(number, _AGAIN)


def survived(event: Survived) -> str:
    """Return a warning that ranks have died, and how many go on."""
    who = listing([f"rank {rank}" for rank in event.lost])
    goes = "continues" if event.ranks == 1 else "continue"
    return f"{who} died; {plural(event.ranks, 'rank')} {goes} with what is done"


def _where(outcome: Outcome, message: str) -> str:
    """The host that a message about several hosts has yet to name."""
    if down := slurm.down_nodes(os.environ):
        return f"; Slurm has given up {listing(down)}"
    if slurm.lost_a_node(os.environ):
        return "; Slurm has ended the job because a node failed"
    first = outcome.first_host
    named = re.search(rf"\b{re.escape(first)}\b", message) is not None
    return "" if named else f"; the first rank to end was on {first}"


def _what_happened(outcome: Outcome, timeout: float | None, start: Start | None) -> TilewiseError | None:
    if outcome.silent and (outcome.failed is None or outcome.failed.kind == "mpi"):
        return _silent(outcome.silent)
    if outcome.failed is not None:
        return _reported(outcome, outcome.failed, start)
    ended = (outcome.hang, outcome.lost, outcome.unstarted)
    ours = outcome.ranks > 1 and any(cause is not None for cause in ended)
    if ours and outcome.stopped and not (outcome.hang is not None and "T" in outcome.hang.states.values()):
        return _launcher_stopped(outcome.stopped)
    if outcome.hang is not None:
        return outcome.hang.error()
    if outcome.timed_out:
        return _timed_out(outcome, timeout, start)
    if outcome.unstarted is not None:
        return causes.too_late(outcome, f"not all ranks had started after {outcome.unstarted:g} s", start)
    if outcome.signalled is not None and outcome.lost is None:  # else it was we who ended that rank
        signalled = outcome.signalled
        return _killed(outcome, outcome.rank_name(signalled.rank), signalled.number, signalled.phase, start)
    if outcome.hung:
        return RunError(
            "the job finished but its ranks did not end in time, so its result is discarded",
            "run again; with -v to see what the ranks print, if it happens again",
        )
    if outcome.lost is not None:
        return (
            causes.lost_at_start(outcome, start) if outcome.started is None else _lost(outcome, outcome.lost)
        )
    if outcome.returncode != 0:
        return _died(outcome, start)
    if outcome.record is None and outcome.started is None and start is not None and start.chosen:
        return causes.no_launcher(outcome, start)
    if outcome.record is None:
        return RunError("the ranks ended without a result", "run again with -v to see what they printed")
    return None


def _reported(outcome: Outcome, failed: Failed, start: Start | None) -> TilewiseError:
    kind = _EXITS.get(failed.kind, RunError)
    if kind is Stopped:
        return Stopped(failed.message)
    message = re.sub(rf"^rank {failed.rank}: ", "", failed.message)
    if failed.rank >= 0 and not re.search(rf"\brank {failed.rank}\b", message):
        host = outcome.host_of(failed.rank)
        if kind is not UsageError or failed.rank > 0:
            message = f"rank {failed.rank}{f' on {host}' if host else ''}: {message}"
    if failed.kind == "launcher" and start is not None:
        return kind(message, _our_launcher(start))
    return kind(message, failed.advice or advice_of_failure(failed.kind, failed.errno))


def _our_launcher(start: Start) -> str:
    """Return a command that starts ranks which the worker's MPI knows for its own."""
    slurm_type = slurm.SPOKEN.get(start.family, ("",))[0]
    if start.launcher.joined and slurm_type and join.in_step(start.environment):
        return f"srun --mpi={slurm_type} -n {start.ranks} tilewise …"
    mine = NAMES.get(start.family, "the worker's MPI")
    without = f"tilewise … -n {start.ranks} without another launcher"
    return f"{without}, or under that of {mine}; tilewise doctor shows which"


def _timed_out(outcome: Outcome, timeout: float | None, start: Start | None) -> RunError:
    begun = f"the job took longer than --timeout {timeout:g} seconds and was ended"
    if outcome.started is None:
        return causes.too_late(outcome, f"{begun} while its ranks were starting", start)
    stopped = [rank for rank, state in outcome.states.items() if state in ("T", "t")]
    waiting = [r for r, state in outcome.states.items() if state == "D" and r not in outcome.where]
    mute = [r for r in outcome.states if r not in {*outcome.where, *stopped, *waiting}]
    sentences = [
        f"{listing([outcome.rank_name(rank) for rank in ranks])} {what}"
        for ranks, what in (
            (stopped, "was stopped by a signal or a debugger"),
            (waiting, "waited for a disk or a file server"),
            (mute, "did not respond"),
        )
        if ranks
    ]
    phases: dict[str, list[int]] = {}
    for rank, phase in sorted(outcome.where.items()):
        phases.setdefault(phase or "start", []).append(rank)
    if len(phases) == 1 and not sentences:
        return RunError(f"{begun}, in {next(iter(phases))}", _LONGER)
    for phase, ranks in sorted(phases.items(), key=lambda each: len(each[1])):
        who = outcome.rank_name(ranks[0]) if len(ranks) == 1 else plural(len(ranks), "rank")
        sentences.append(f"{who} in {phase}")
    if not sentences and outcome.phase:
        return RunError(f"{begun}, in {outcome.phase}", _LONGER)
    where = f": {'; '.join(sentences)}" if sentences else ""
    return RunError(begun + where, STOPPED if stopped else _LONGER)


def _launcher_stopped(pids: list[int]) -> RunError:
    """Return the error of a job whose messages come through these stopped processes."""
    who = f"the launcher (pid {listing([str(pid) for pid in pids])})"
    return RunError(f"{who} was stopped by a signal; all ranks were ended", STOPPED)


def _silent(hosts: list[str]) -> RunError:
    """The network to these hosts is cut, or they are down."""
    here, patience = os.uname().nodename, constants.seam().line_patience
    return RunError(
        f"{listing(hosts)} did not respond to {here} for {patience} s, so all ranks were ended",
        f"ping {hosts[0]} from {here}: is that host up, and the network between the two?",
    )


def _lost(outcome: Outcome, host: str) -> RunError:
    if outcome.over and outcome.first_gone is None:
        return RunError(
            "all ranks ended, and the launcher passed on no result",
            "run again; with -v to see what the launcher prints, if it happens again",
        )
    first = outcome.first_rank
    who = outcome.rank_name(first) if first is not None else f"a rank on {host or 'another host'}"
    if (number := _srun_signal("\n".join(outcome.chatter), first)) is not None:
        return _killed(outcome, who, number, "")
    return RunError(
        f"{who} ended before the job was done",
        "look for 'out of memory' in that host's kernel log, or run again with -v",
    )


def _died(outcome: Outcome, start: Start | None) -> TilewiseError:
    who, number = _victim(outcome, "\n".join(outcome.chatter))
    if number is not None:
        return _killed(outcome, who, number, "", start)
    done = " after its result was made" if outcome.record is not None else ""
    message = f"{who} ended with exit code {outcome.returncode}{done}"
    if outcome.started is None:
        return causes.launcher_ended(outcome, message, start)
    words = causes.last_words(outcome.chatter)
    printed = f"; last output: {words}" if words else ""
    return RunError(message + printed, "run again with -v to see what the ranks printed")


def _killed(outcome: Outcome, who: str, number: int, phase: str, start: Start | None = None) -> RunError:
    done = " after its result was made" if outcome.record is not None else f" in {phase}" if phase else ""
    message = f"{who} was killed by {_signal_name(number)}{done}"
    if outcome.started is None and number in (signal.SIGBUS, signal.SIGSEGV, signal.SIGABRT):
        short = causes.short_of(outcome, message)
        # On one host it is want of memory, and no chance.
        again = start is not None and start.remote and not start.launcher.joined
        return StartError(short.message, short.advice) if again else short
    if number == signal.SIGKILL and outcome.memory_kills > 0:
        count = outcome.memory_kills
        return RunError(
            f"{message}; the kernel of this host ran out of memory and killed "
            f"{'a process' if count == 1 else f'{count} processes'} meanwhile",
            _MEMORY,
        )
    return RunError(message, advice_of_signal(number))


def _victim(outcome: Outcome, text: str) -> tuple[str, int | None]:
    """Return who died, and of which signal: by the launcher's banner, else by the child's own exit."""
    if match := _OPEN_MPI.search(text):
        return outcome.rank_name(int(match[1])), int(match[4])
    if match := _OPEN_MPI_5.search(text):
        return outcome.rank_name(int(match[1])), int(match[2])
    if match := _HYDRA_PID.search(text):
        who = _rank_of(outcome, int(match[1]), match[2])
        first = outcome.first_rank
        # It may name any rank that it killed itself; which ended first we know of hosts with lines to us.
        if first is not None and match[2] in (outcome.host_of(first), *outcome.called):
            same = outcome.host_of(first) == match[2]
            return outcome.rank_name(first), _hydra_signal(text, match.end()) if same else None
        if outcome.first_gone is not None and outcome.host_of(0) == match[2]:
            who = f"a rank on {match[2]}"
        return who, _hydra_signal(text, match.end())
    if match := _SRUN.search(text):
        first = int(match[1]) if outcome.first_rank is None else outcome.first_rank
        return outcome.rank_name(first), _srun_signal(text, first)
    alone = outcome.rank_name(0) if len(outcome.places) == 1 else "the job's launcher or a rank"
    if outcome.returncode < 0:
        return alone, -outcome.returncode
    # Launchers and shells pass a signal on as 128 + its number.
    return alone, outcome.returncode - 128 if 128 < outcome.returncode < 160 else None


def _srun_signal(text: str, rank: int | None) -> int | None:
    """Return the signal of which this rank died, as srun says."""
    numbers = {"Killed": 9, "Terminated": 15, "Segmentation fault": 11, "Aborted": 6}
    matches = (match for match in _SRUN.finditer(text) if int(match[1]) == rank)
    return next((numbers.get(match[2]) for match in matches), None)


def _hydra_signal(text: str, begin: int) -> int | None:
    """Its banner has a signal's number where an exit code stands, too; what follows tells them apart."""
    if match := _HYDRA_SIGNAL.search(text, begin):
        return int(match[1] or match[2])
    code = _HYDRA_CODE.search(text, begin)
    return int(code[1]) if code and int(code[1]) in (signal.SIGKILL, signal.SIGTERM) else None


def _rank_of(outcome: Outcome, pid: int, host: str) -> str:
    rank = next((f"rank {rank.rank}" for rank in outcome.places if rank.pid == pid), "a rank")
    return f"{rank} (pid {pid} on {host})"


def _signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
