"""Liveness of ranks: by their heartbeats, and by ends that nobody tells of.

rank ──every second──▶ front     where it is, and whether it has moved since the last beat

Time counts only while we listen: a front that was stopped itself, or a machine that slept, starts no alarm.
`cpp/tilewise/worker/heartbeat.hpp` says what counts as a move.

    front ── mpiexec ─┬─ hydra_pmi_proxy ── ranks here
                      └─ ssh node2 hydra_pmi_proxy …  ── ranks on node2

A child of hydra's mpiexec lives as long as the ranks of its host. When a rank dies, hydra ends the others;
but now and then it only closes the connection to that rank's host, and all others wait forever (MPICH
5.0.2). And where such a child dies before it has called back, mpiexec itself waits forever.

Design: docs/design/failures.md.
"""

from __future__ import annotations

import os
import selectors
import time

import msgspec

from tilewise.base import processes
from tilewise.base.errors import UsageError
from tilewise.base.units import parse_time
from tilewise.launch.connections import Connections, End
from tilewise.launch.events import Beat, RankPlace
from tilewise.launch.outcome import Hang
from tilewise.launch.worker import PHASE

SILENCE = 30.0  # seconds without a beat after which a rank hangs, unless the user says otherwise
STANDSTILL = 60.0  # seconds in which no rank moves until we say so, where the user has set no deadline
LEAST = 3.0  # seconds: ranks beat every second, and a busy host is late now and then
_PHASES = ("input", "compute", "exchange", "output", "verify")  # each begins with another letter
_RANK = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")  # as each launcher numbers them
_GAP = 0.5  # seconds between two looks that count; in the rest we did not listen
PATIENCE = 4.0  # seconds from the end of a rank here, or of hydra's connection, to that of the job
_ELSEWHERE = 2.0  # the same for a rank on another host
_UNSTARTED = 1.0  # seconds that mpiexec may live on after a child of its own that has started no ranks
_CHILDLESS = 30.0  # seconds that it may take to have a child
_WATCHED = 256  # ranks on this host whose ends are watched one by one


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
        self._only_warns = deadline is None
        self._warned = False
        self._clock = 0.0
        self._looked = time.monotonic()
        self._ranks: dict[int, _Rank] = {}

    def hear(self, beat: Beat) -> None:
        """Take in one beat of one rank."""
        now = time.time()
        one = self._ranks.get(beat.rank)
        if one is None:
            self._ranks[beat.rank] = _Rank(beat, self._clock, now, self._clock, now)
            return
        one.beat, one.heard, one.heard_at = beat, self._clock, now
        if beat.moved:
            one.moved, one.moved_at = self._clock, now
            self._warned = False

    @property
    def heard(self) -> set[int]:
        """PIDs on this host that have sent a heartbeat."""
        return {one.beat.pid for one in self._ranks.values() if _is_here(one.beat)}

    def forget(self, pid: int, host: str) -> None:
        """Drop a process that has died, where the others go on without it."""
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
        if not silent and (not still or self._warned):
            return None
        if any(_traced(one.beat) for one in self._ranks.values()):
            for one in self._ranks.values():  # somebody looks at it; whatever stands still waits for that
                one.heard = one.moved = self._clock
            return None
        return self._silent(silent) if silent else self._stands_still()

    def ends(self, hang: Hang) -> bool:
        """Return whether the job ends for that; else it is told once, until some rank moves again."""
        self._warned = True
        return hang.silent or not self._only_warns

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
    """Return whether a debugger holds that rank, as far as we see it."""
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


class RankPidfds:
    """Ends of ranks and of what is between the launcher and them.

    `first_gone` is the rank that ended first: None while all live, -1 when several had ended when we first
    looked. `lost` tells where something ended that the job cannot do without: a host, or empty. `silent` are
    hosts that do not answer any more.
    """

    def __init__(self, selector: selectors.BaseSelector, connections: Connections) -> None:
        self.first_gone: int | None = None
        self.lost: str | None = None
        self.silent: list[str] = []
        self._selector = selector
        self._ranks: dict[int, int] = {}
        self._connections = connections
        self._known: dict[tuple[str, int], int] = {}  # the rank of each host's pids
        self._ended: list[End] = []  # of those that held a line
        self.gone: list[tuple[str, int]] = []  # host and process of each rank that has died, until taken
        self._children: dict[int, str] = {}
        self._seen: set[int] = set()
        self._begin = time.monotonic()
        self._lost_at = 0.0

    def close(self) -> None:
        """Close the descriptors."""
        for bell in (*self._ranks, *self._children):
            os.close(bell)

    def __contains__(self, descriptor: int) -> bool:
        return any(descriptor in known for known in (self._ranks, self._children, self._connections))

    def watch(self, ranks: list[RankPlace], launcher: int) -> None:
        """Watch the ranks, now known: a launcher kills all when one dies, and may then name any of them."""
        here = os.uname().nodename
        local = [rank for rank in ranks if rank.host == here]
        self._known = {(rank.host, rank.pid): rank.rank for rank in ranks}
        for end in [end for end in self._ended if (end.host, end.pid) in self._known][:1]:
            self._line_gone(end)
        held = self._connections.local_pids()  # their ends are heard in the right sequence
        gone = []
        for rank in local if 1 < len(local) <= _WATCHED else ():
            if (bell := processes.pidfd(rank.pid)) is not None:
                self._ranks[bell] = rank.rank
                self._selector.register(bell, selectors.EVENT_READ)
            if rank.pid not in held and processes.state(rank.pid) in ("", "Z", "X"):
                gone.append(rank.rank)
        if gone:
            self._rank_gone(gone[0] if len(gone) == 1 else -1, here, PATIENCE)
        hosts = {rank.host for rank in ranks}
        for child in processes.children(launcher) if len(hosts) > 1 else ():
            # Of other launchers a child may end long before the ranks that it has started.
            words = _words(child)
            if any("hydra_" in word for word in words) and (bell := processes.pidfd(child)) is not None:
                self._children[bell] = next((word for word in words if word in hosts), "")
                self._selector.register(bell, selectors.EVENT_READ)

    def watch_start(self, launcher: int) -> None:
        """While hydra starts the ranks: none of its children may end, and it must have one."""
        running = processes.children(launcher)
        alive = {child for child, runs in running.items() if runs}
        late = not self._seen and time.monotonic() > self._begin + _CHILDLESS
        if late or not running.keys() | self._seen <= alive or processes.has_buried(launcher):
            self._lose("", _UNSTARTED)
        self._seen |= alive

    def hear(self, rung: list[int]) -> None:
        """Reads what these descriptors have to say; of connections that were closed, the first one first.

        A rank that dies closes its own before the launcher hears of it and kills the others.
        """
        here, closed = os.uname().nodename, self._connections.closed()
        for bell in closed + [each for each in rung if each not in closed]:
            if bell in self._connections:
                if (end := self._connections.hear(bell, closed=bell in closed)) is not None:
                    self._ended.append(end)
                    self._line_gone(end)
                elif self._connections.over:  # what they had to say is late, or the launcher has lost it
                    self._lose("", PATIENCE)
            elif bell in self._ranks:
                self._selector.unregister(bell)
                self._rank_gone(self._ranks[bell], here, PATIENCE)
            elif bell in self._children:  # else a caller whose line was ended meanwhile
                self._selector.unregister(bell)
                self._lose(self._children[bell], PATIENCE)
        self._connections.drop_unidentified()

    @property
    def first_host(self) -> str:
        """Host of the first rank that ended its connection; empty while all live."""
        return self._ended[0].host if self._ended else ""

    def left_alone(self) -> bool:
        """Return whether something ended so long ago that nobody but us will end the rest."""
        return self.lost is not None and time.monotonic() > self._lost_at

    def _line_gone(self, end: End) -> None:
        self.gone.append((end.host, end.pid))
        if end.unreachable and end.host not in self.silent:
            self.silent.append(end.host)
        elsewhere = end.host != os.uname().nodename
        if (rank := self._known.get((end.host, end.pid))) is not None:
            self._rank_gone(rank, end.host, _ELSEWHERE if elsewhere else PATIENCE)
        elif elsewhere:  # it has ended before all ranks had started
            self._lose(end.host, _ELSEWHERE)

    def _rank_gone(self, rank: int, host: str, patience: float) -> None:
        if self.first_gone is None:
            self.first_gone = rank
        self._lose(host, patience)

    def _lose(self, host: str, patience: float) -> None:
        if self.lost is None:
            self.lost, self._lost_at = host, time.monotonic() + patience


def _words(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read().split("\0")
    except OSError:
        return []
