"""Hears at once of the ends that nobody tells: of ranks, and of what stands between a launcher and them.

    front ── mpiexec ─┬─ hydra_pmi_proxy ── ranks here
                      └─ ssh node2 hydra_pmi_proxy …  ── ranks on node2

A child of hydra's mpiexec lives as long as the ranks of its host. When a rank dies, hydra ends the others;
but now and then it only closes the connection to that rank's host, and all others wait forever (MPICH
5.0.2). And where such a child dies before it has called back, mpiexec itself waits forever.
"""

from __future__ import annotations

import os
import selectors
import time

from tilewise.base import processes
from tilewise.launch.events import RankPlace
from tilewise.launch.lines import End, Lines

PATIENCE = 4.0  # seconds from the end of a rank here, or of hydra's connection, to that of the job
_ELSEWHERE = 2.0  # the same for a rank on another host
_UNSTARTED = 1.0  # seconds that mpiexec may live on after a child of its own that has started no ranks
_CHILDLESS = 30.0  # seconds that it may take to have a child
_WATCHED = 256  # ranks on this host whose ends are watched one by one


class RankPidfds:
    """What of a job has ended.

    `first_gone` is the rank that ended first: None while all live, -1 when several had ended when we first
    looked. `lost` tells where something ended that the job cannot do without: a host, or empty. `silent` are
    hosts that do not answer any more.
    """

    def __init__(self, selector: selectors.BaseSelector, lines: Lines) -> None:
        self.first_gone: int | None = None
        self.lost: str | None = None
        self.silent: list[str] = []
        self._selector = selector
        self._ranks: dict[int, int] = {}
        self._lines = lines
        self._known: dict[tuple[str, int], int] = {}  # the rank of each host's pids
        self._ended: list[End] = []  # of those that held a line
        self.gone: list[tuple[str, int]] = []  # host and process of each rank that has died, until taken
        self._children: dict[int, str] = {}
        self._seen: set[int] = set()
        self._begin = time.monotonic()
        self._lost_at = 0.0

    def close(self) -> None:
        """Gives the descriptors back."""
        for bell in (*self._ranks, *self._children):
            os.close(bell)

    def __contains__(self, descriptor: int) -> bool:
        return any(descriptor in known for known in (self._ranks, self._children, self._lines))

    def watch(self, ranks: list[RankPlace], launcher: int) -> None:
        """Once the ranks are known: a launcher kills all when one dies, and may then name any of them."""
        here = os.uname().nodename
        local = [rank for rank in ranks if rank.host == here]
        self._known = {(rank.host, rank.pid): rank.rank for rank in ranks}
        for end in [end for end in self._ended if (end.host, end.pid) in self._known][:1]:
            self._line_gone(end)
        held = self._lines.here()  # their ends are heard in the right sequence
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
        here, closed = os.uname().nodename, self._lines.closed()
        for bell in closed + [each for each in rung if each not in closed]:
            if bell in self._lines:
                if (end := self._lines.hear(bell, closed=bell in closed)) is not None:
                    self._ended.append(end)
                    self._line_gone(end)
                elif self._lines.over:  # what they had to say is late, or the launcher has lost it
                    self._lose("", PATIENCE)
            elif bell in self._ranks:
                self._selector.unregister(bell)
                self._rank_gone(self._ranks[bell], here, PATIENCE)
            elif bell in self._children:  # else a caller whose line was ended meanwhile
                self._selector.unregister(bell)
                self._lose(self._children[bell], PATIENCE)
        self._lines.forget_strangers()

    @property
    def first_host(self) -> str:
        """Where the first rank ended that held a line; empty while all live."""
        return self._ended[0].host if self._ended else ""

    def left_alone(self) -> bool:
        """Whether something ended so long ago that nobody but us will end the rest."""
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
