"""Hears by the beats of all ranks whether one hangs, and whether the job still gets on.

rank ──every second──▶ front     where it is, and whether it has moved since the last beat

Time counts only while we listen: a front that was stopped itself, or a machine that slept, starts no alarm.
`cpp/tilewise/worker/heartbeat.hpp` says what counts as a move.
"""

from __future__ import annotations

import os
import time

import msgspec

from tilewise.base import processes
from tilewise.base.errors import UsageError
from tilewise.base.units import parse_time
from tilewise.launch.events import Beat
from tilewise.launch.outcome import Hang
from tilewise.launch.worker import PHASE

SILENCE = 30.0  # seconds without a beat after which a rank hangs, unless the user says otherwise
STANDSTILL = 60.0  # seconds in which no rank moves until we say so, where the user has set no deadline
LEAST = 3.0  # seconds: ranks beat every second, and a busy host is late now and then
_PHASES = ("input", "compute", "exchange", "output", "verify")  # each begins with another letter
_RANK = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")  # as each launcher numbers them
_GAP = 0.5  # seconds between two looks that count; in the rest we did not listen


class _Rank(msgspec.Struct):
    beat: Beat
    heard: float  # by the clock that runs while we listen
    heard_at: float
    moved: float
    moved_at: float


class Beats:
    """Judges by what it hears. `deadline` are seconds; 0 ends no job, None only one with a silent rank."""

    def __init__(self, deadline: float | None) -> None:
        self._silence = SILENCE if deadline is None else deadline
        self._standstill = STANDSTILL if deadline is None else deadline
        self._only_told = deadline is None
        self._told = False
        self._clock = 0.0
        self._looked = time.monotonic()
        self._ranks: dict[int, _Rank] = {}

    def hear(self, beat: Beat) -> None:
        """One beat of one rank."""
        now = time.time()
        one = self._ranks.get(beat.rank)
        if one is None:
            self._ranks[beat.rank] = _Rank(beat, self._clock, now, self._clock, now)
            return
        one.beat, one.heard, one.heard_at = beat, self._clock, now
        if beat.moved:
            one.moved, one.moved_at = self._clock, now
            self._told = False

    @property
    def heard(self) -> set[int]:
        """PIDs on this host that have sent a heartbeat."""
        return {one.beat.pid for one in self._ranks.values() if _is_here(one.beat)}

    def forget(self, pid: int, host: str) -> None:
        """That process has died, and the others go on without it."""
        self._ranks = {
            rank: one for rank, one in self._ranks.items() if (one.beat.pid, one.beat.host) != (pid, host)
        }

    def look(self) -> Hang | None:
        """The ranks that have been silent for too long, or all, where none has moved; to be asked often."""
        now = time.monotonic()
        self._clock += min(now - self._looked, _GAP)
        self._looked = now
        if not self._silence or not self._ranks:
            return None
        silent = [one for one in self._ranks.values() if self._clock - one.heard > self._silence]
        still = self._clock - max(one.moved for one in self._ranks.values()) > self._standstill
        if not silent and (not still or self._told):
            return None
        if any(_traced(one.beat) for one in self._ranks.values()):
            for one in self._ranks.values():  # somebody looks at it; whatever stands still waits for that
                one.heard = one.moved = self._clock
            return None
        return self._silent(silent) if silent else self._stands_still()

    def ends(self, hang: Hang) -> bool:
        """Whether the job is to be ended for that; else it is told once, until some rank moves again."""
        self._told = True
        return hang.silent or not self._only_told

    def _silent(self, silent: list[_Rank]) -> Hang:
        first = min(silent, key=lambda one: one.heard)
        ranks = sorted((_seen(one.beat) for one in silent), key=lambda beat: beat.rank)
        return Hang(
            silent=True,
            ranks=ranks,
            others=[one.beat for one in self._ranks.values() if one not in silent],
            since=first.heard_at,
            seconds=self._clock - first.heard,
            states={beat.rank: processes.state(beat.pid) for beat in ranks if _is_here(beat)},
        )

    def _stands_still(self) -> Hang:
        last = max(self._ranks.values(), key=lambda one: one.moved)
        beats = sorted((one.beat for one in self._ranks.values()), key=lambda beat: beat.rank)
        # Those that do not wait for others inside MPI, or wait for a file there, are what others wait for.
        causes = [beat for beat in beats if not beat.call or "/" in beat.waits]
        return Hang(
            silent=False,
            ranks=causes or beats,
            others=[beat for beat in beats if beat not in causes] if causes else [],
            since=last.moved_at,
            seconds=self._clock - last.moved,
        )


def parse_deadline(text: str, flag: str = "--deadline") -> float:
    """The seconds of a word such as `30s`, 0 of `off`; UsageError for what makes no sense."""
    if text.strip() in ("off", "0"):
        return 0.0
    seconds = parse_time(text, flag)
    if seconds < LEAST:
        raise UsageError(
            f"{flag} {text} is too short: ranks are heard once a second", f"{flag} {LEAST:g}s, or off"
        )
    return seconds


def _seen(beat: Beat) -> Beat:
    """The beat with the phase that the rank is in by now, where we see it."""
    phase = shown_phase(beat.pid) if _is_here(beat) else None
    return beat if phase is None else msgspec.structs.replace(beat, phase=phase, call="", waits="")


def _is_here(beat: Beat) -> bool:
    return beat.host == os.uname().nodename


def _traced(beat: Beat) -> bool:
    """Whether a debugger holds that rank, as far as we see it."""
    return _is_here(beat) and processes.is_traced(beat.pid)


def shown_phase(pid: int) -> str | None:
    """Return the phase of rank `pid` of this host, empty outside of a job; None where it cannot be seen.

    It is one letter of the rank's environment, as the kernel shows that in /proc; the worker changes it in
    place, so that it can be seen when the rank is stopped, and says nothing.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return None
    begin = f"{PHASE}=".encode()
    letter = next((word[len(begin) :].decode() for word in words if word.startswith(begin)), None)
    if letter is None:
        return None
    return next((phase for phase in _PHASES if phase[0] == letter), "")


def stopped_ranks(mark: str, alone: int, heard: set[int]) -> list[Beat]:
    """Return a beat of each stopped rank of this host with `mark` in its environment that `heard` lacks.

    `alone` is the only rank, which no launcher has started and numbered, or 0.
    Reads the state of every process of this host, and the environment of those that are stopped.
    """
    name, _, value = mark.partition("=")
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not entry.isdigit() or int(entry) in heard or processes.state(int(entry)) != "T":
            continue
        environment = processes.environment(int(entry))
        numbers = [environment[each] for each in _RANK if environment.get(each, "").isdigit()]
        if environment.get(name) == value and (numbers or int(entry) == alone):
            rank = int(numbers[0]) if numbers else 0
            found.append(Beat(rank=rank, host=os.uname().nodename, pid=int(entry)))
    return found
