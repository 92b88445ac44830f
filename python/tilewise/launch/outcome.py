"""Outcome of a run, for whoever judges it; and ranks that hang, in words."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from tilewise.base.errors import RunError
from tilewise.base.units import listing, plural
from tilewise.launch.events import Beat, Done, Failed, RankPlace, Signalled, Started

_NAMED = 3  # ranks that a message names one by one
STOPPED = "find out what stopped it, such as a debugger or a batch system, and run again"
_SILENT = "is that host frozen, or out of memory? A debugger there wants --deadline off"
_FILE = "does its disk or file server answer? A longer --deadline, where it is only slow"
_STUCK = "run again with --deadline off, and gdb -p PID -ex bt where it hangs; report it if it happens again"
# What a silent rank does, by the kernel's letter.
_STATES = {"T": "was stopped by a signal", "D": "waited for a disk or a file server"}


class Hang(msgspec.Struct):
    """Ranks that hang, by their last beats. `silent`: they beat no more; else no rank has moved.

    `since` is when that began, in seconds of the epoch, `seconds` how long ago we have listened since then;
    `states` are the kernel's letters for those on this host that are silent. `others` move, or may.
    """

    silent: bool
    ranks: list[Beat]
    others: list[Beat]
    since: float
    seconds: float
    states: dict[int, str] = {}

    def error(self) -> RunError:
        """Return the error of a job that was ended for it."""
        if self.silent:
            stopped = "T" in self.states.values()
            return RunError(f"{self._silent()}; all ranks were ended", STOPPED if stopped else _SILENT)
        in_file = any("/" in beat.waits for beat in self.ranks)
        return RunError(f"{self._still()}; all ranks were ended", _FILE if in_file else _STUCK)

    def standstill(self) -> str:
        """Return a warning that the job does not get on, in one line with what to do."""
        return f"{self._still()}; --deadline TIME ends such a job, Ctrl-C this one"

    def _silent(self) -> str:
        def done(beat: Beat) -> str:
            state = self.states.get(beat.rank, "")
            return f"{_STATES.get(state, 'did not answer, last')} in {beat.phase or 'start'}"

        return f"{_together(self.ranks, done)}, {self._since()}"

    def _still(self) -> str:
        """Name the ranks that others wait for, or all, where each waits for another."""
        others = plural(len(self.others), "rank")
        rest = f"; {others} {'waits' if len(self.others) == 1 else 'wait'} for that" if self.others else ""
        return f"no rank made progress {self._since()}: {_together(self.ranks, _position)}{rest}"

    def _since(self) -> str:
        return f"for {self.seconds:.0f} s, since {time.strftime('%H:%M:%S', time.localtime(self.since))}"


def _together(beats: list[Beat], done: Callable[[Beat], str]) -> str:
    """Say who does what: those together that do the same, the fewest first."""
    groups: dict[str, list[Beat]] = {}
    for beat in beats:
        groups.setdefault(done(beat), []).append(beat)
    fewest = sorted(groups.items(), key=lambda group: len(group[1]))
    return ", ".join(f"{_names(group)} {what}" for what, group in fewest)


def _names(beats: list[Beat]) -> str:
    names = [f"rank {beat.rank} (pid {beat.pid} on {beat.host})" for beat in beats]
    return listing(names) if len(beats) <= _NAMED else f"{plural(len(beats), 'rank')}, such as {names[0]},"


def _position(beat: Beat) -> str:
    """Return its phase and call; of system calls inside MPI only those on a file: between looks it sleeps."""
    waits = beat.waits if not beat.call or "/" in beat.waits else ""
    calls = ", ".join(part for part in (beat.call, waits) if part)
    return f"in {beat.phase or 'start'}" + (f" ({calls})" if calls else "")


class Outcome(msgspec.Struct):
    """Everything that was seen of a run. `returncode` is the child's, negative for a signal."""

    ranks: int = 1
    started: Started | None = None
    record: Done | None = None
    failed: Failed | None = None
    signalled: Signalled | None = None  # of the first rank that said that a signal ends it
    returncode: int = 0
    chatter: list[str] = []
    phase: str = ""  # the last that rank 0 told of
    timed_out: bool = False
    unstarted: float | None = None  # the seconds in which not all ranks had started
    where: dict[int, str] = {}  # the phase of each rank that said so when the job took too long
    states: dict[int, str] = {}  # and what each rank on this host did then: the kernel's letter
    hung: bool = False
    hang: Hang | None = None  # for which we have ended it
    stopped: list[int] = []  # processes between us and the ranks that were stopped when we ended it
    first_gone: int | None = None  # the rank that ended before all others, -1: one of several
    lost: str | None = None  # where (empty: not known) something ended and the launcher let the others wait
    first_host: str = ""  # where the first rank ended that had a connection; also before all have started
    over: bool = False  # all ranks have ended
    outlived: bool = False  # well, and the launcher lived on
    silent: list[str] = []  # hosts that do not answer any more
    called: list[str] = []  # other hosts of which a rank has called
    memory_kills: int = 0  # processes that the kernel of this host killed meanwhile for want of memory
    wall: float = 0.0

    @property
    def places(self) -> list[RankPlace]:
        """Ranks that have started."""
        return self.started.ranks if self.started is not None else []

    @property
    def first_rank(self) -> int | None:
        """The rank that ended before all others; None where that is not known."""
        return self.first_gone if self.first_gone is not None and self.first_gone >= 0 else None

    def rank_name(self, number: int) -> str:
        """Return `rank 3 (pid 77 on node2)`, or less where that is not known."""
        for rank in self.places:
            if rank.rank == number:
                return f"rank {number} (pid {rank.pid} on {rank.host})"
        return f"rank {number}"

    def host_of(self, number: int) -> str:
        """Return the host of that rank; empty where it is not known."""
        return next((rank.host for rank in self.places if rank.rank == number), "")
