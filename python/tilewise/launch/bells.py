"""Hears at once of the ends that nobody tells: of ranks, and of what stands between a launcher and them.

    front ── mpiexec ─┬─ hydra_pmi_proxy ── ranks here
                      └─ ssh node2 hydra_pmi_proxy …  ── ranks on node2

A child of hydra's mpiexec lives as long as the ranks of its host. When a rank dies, hydra ends the others;
but now and then it only closes the connection to that rank's host, and all others wait for ever (MPICH
5.0.2). And where such a child dies before it has called back, mpiexec itself waits for ever.
"""

from __future__ import annotations

import _socket  # what is behind `socket`, whose import takes longer than all else that is imported here
import contextlib
import os
import selectors
import struct
import sys
import time

from tilewise.launch import processes
from tilewise.launch.events import RankPlace

PATIENCE = 4.0  # seconds from the end of a rank, or of a connection, to that of the job
_UNSTARTED = 1.0  # seconds that mpiexec may live on after a child of its own that has started no ranks
_CHILDLESS = 30.0  # seconds that it may take to have a child
_WATCHED = 256  # ranks on this host whose ends are watched one by one


class Bells:
    """What of a job has ended.

    `first_gone` is the rank here that ended first: None while all live, -1 when several had ended when we
    first looked. `lost` tells where something ended that the job cannot do without: a host, or empty.
    """

    def __init__(self, selector: selectors.BaseSelector, run: str, ranks: int) -> None:
        self.first_gone: int | None = None
        self.lost: str | None = None
        self._selector = selector
        self._ranks: dict[int, int] = {}
        self._held: dict[int, tuple[_socket.socket, int]] = {}  # by the rank with that pid
        self._pids: dict[int, int] = {}  # the rank of each
        self._ended: list[int] = []  # of those that held a line
        self._door = _door(run) if ranks > 1 else None
        if self._door is not None:
            selector.register(self._door, selectors.EVENT_READ)
        self._lines: dict[int, str] = {}
        self._seen: set[int] = set()
        self._begin = time.monotonic()
        self._lost_at = 0.0

    def close(self) -> None:
        """Gives the descriptors back."""
        for bell in (*self._ranks, *self._lines):
            os.close(bell)
        for held, _ in self._held.values():
            held.close()
        if self._door is not None:
            self._door.close()

    def __contains__(self, descriptor: int) -> bool:
        at_door = self._door is not None and descriptor == self._door.fileno()
        return at_door or any(descriptor in known for known in (self._ranks, self._lines, self._held))

    def watch(self, ranks: list[RankPlace], launcher: int) -> None:
        """Once the ranks are known: a launcher kills all when one dies, and may then name any of them."""
        here = os.uname().nodename
        local = [rank for rank in ranks if rank.host == here]
        self._pids = {rank.pid: rank.rank for rank in local}
        for pid in [pid for pid in self._ended if pid in self._pids][:1]:
            self._rank_gone(self._pids[pid])
        held = {pid for _, pid in self._held.values()}  # their ends are heard in the right sequence
        gone = []
        for rank in local if 1 < len(local) <= _WATCHED else ():
            if (bell := death_bell(rank.pid)) is not None:
                self._ranks[bell] = rank.rank
                self._selector.register(bell, selectors.EVENT_READ)
            if rank.pid not in held and processes.state(rank.pid) in ("", "Z", "X"):
                gone.append(rank.rank)
        if gone:
            self._rank_gone(gone[0] if len(gone) == 1 else -1)
        hosts = {rank.host for rank in ranks}
        for child in processes.children(launcher) if len(hosts) > 1 else ():
            # Of other launchers a child may end long before the ranks that it has started.
            words = _words(child)
            if any("hydra_" in word for word in words) and (bell := death_bell(child)) is not None:
                self._lines[bell] = next((word for word in words if word in hosts), "")
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
        """Of these descriptors, which come in the sequence in which their processes ended."""
        for bell in rung:
            if self._door is not None and bell == self._door.fileno():
                self._let_in(self._door)
                continue
            self._selector.unregister(bell)
            if bell in self._held:
                pid = self._held[bell][1]
                self._ended.append(pid)
                if pid in self._pids:
                    self._rank_gone(self._pids[pid])
            elif bell in self._ranks:
                self._rank_gone(self._ranks[bell])
            else:
                self._lose(self._lines[bell], PATIENCE)

    def left_alone(self) -> bool:
        """Whether something ended so long ago that nobody but us will end the rest."""
        return self.lost is not None and time.monotonic() > self._lost_at

    def _let_in(self, door: _socket.socket) -> None:
        """Ranks that hold a line: its end comes before the launcher hears anything, and kills the others."""
        with contextlib.suppress(OSError):
            while len(self._held) < _WATCHED:
                held = _socket.socket(fileno=door._accept()[0])  # type: ignore[attr-defined]
                pid, uid, _ = struct.unpack(
                    "3i", held.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
                )
                if uid != os.geteuid():
                    held.close()
                    continue
                self._held[held.fileno()] = held, pid
                self._selector.register(held.fileno(), selectors.EVENT_READ)
            self._selector.unregister(door)
            door.close()
            self._door = None

    def _rank_gone(self, rank: int) -> None:
        if self.first_gone is None:
            self.first_gone = rank
        self._lose(os.uname().nodename, PATIENCE)

    def _lose(self, host: str, patience: float) -> None:
        if self.lost is None:
            self.lost, self._lost_at = host, time.monotonic() + patience


def _door(run: str) -> _socket.socket | None:
    """Where ranks on this host connect to, by a name that is in no folder; None where that cannot be."""
    if sys.platform != "linux":
        return None
    door = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        door.bind(f"\0tilewise-{run}")
        door.listen(_WATCHED)
        door.setblocking(False)
    except OSError:
        door.close()
        return None
    return door


def death_bell(pid: int) -> int | None:
    """A descriptor that becomes readable when `pid` ends, so that no tick is waited for, or None."""
    if sys.platform == "linux" and hasattr(os, "pidfd_open"):
        try:
            return os.pidfd_open(pid)
        except OSError:
            return None
    return None


def _words(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read().split("\0")
    except OSError:
        return []
