"""Which cores are how far from each other, and where pairs of ranks go to talk over a given distance.

    socket 0                          socket 1
    ┌ cache ─────────┐ ┌ cache ─────┐ ┌ cache ──────
    │ core 0   core 1│ │core 2      │ │ core 4
    │ 0 · 8    1 · 9 │ │ 2 · 10     │ │ 4 · 12        0 · 8 sibling · 0–1 core · 0–2 cache · 0–4 socket

The kernel says all of this in /sys, cut down to what a container may use; hwloc reads it there as well, so
that asking hwloc would add a dependency and no knowledge.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from tilewise.base.errors import UsageError
from tilewise.machine import host

ROOT = "/sys/devices/system/cpu"
LEVELS = ("sibling", "core", "cache", "socket")


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """Core: its hardware threads that may be used here, and what it lies in.

    `cache` and `socket` are names of no further meaning, the same for cores that share the last cache and
    the socket.
    """

    cpus: tuple[int, ...]
    cache: int
    socket: int


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """The CPUs of ranks 2i and 2i + 1 in `pairs`; `oversubscribed`: ranks share what they should not."""

    pairs: list[tuple[int, int]]
    oversubscribed: bool = False


class Topology(msgspec.Struct, frozen=True, kw_only=True):
    """The cores that this process may use, sorted by socket, last cache and number.

    `whole` is false where this machine has more CPUs than that. `limit` counts whole CPUs that a container's
    time limit is worth.
    """

    cores: list[Core]
    whole: bool = True
    limit: int | None = None

    @property
    def cpus(self) -> list[int]:
        """All CPUs, first one of each core, then the second ones."""
        turns = itertools.zip_longest(*(core.cpus for core in self.cores))
        return [number for turn in turns for number in turn if number is not None]

    def missing(self, level: str) -> str:
        """Return why no two CPUs are that far from each other; empty where some are. Raises UsageError."""
        if level == "node":
            return "other nodes need --hosts"
        if level not in LEVELS:
            raise UsageError(f"no level '{level}': {', '.join(LEVELS)} or node")
        if next(self._core_pairs(level), None) is not None:
            return ""
        count = len(self.cores)
        has = "this machine has" if self.whole else "this process may use only"
        cores = f"its {count} cores" if self.whole else f"the {count} cores that this process may use"
        if level == "socket":
            return f"{has} one socket"
        if level == "sibling" and not self.whole:
            return "this process may not use two hardware threads of one core"
        if level == "sibling":
            return (
                f"none of {cores} has two hardware threads"
                if count > 1
                else "its core has one hardware thread"
            )
        if count == 1:
            return f"{has} one core"
        if level == "core":
            return f"no two of {cores} share a cache"
        together = "" if len({core.socket for core in self.cores}) == 1 else " of a socket"
        return f"all of {cores}{together} share their last cache"

    def pairs_at(self, level: str, count: int) -> Placement:
        """CPUs for `count` pairs of ranks, each pair at `level`.

        Every rank has a core of its own (at `sibling`: a hardware thread) as far as there are any; beyond,
        cores are shared, first by other hardware threads. Raises UsageError where the level is missing.
        """
        if why := self.missing(level):
            raise UsageError(f"no pairs at level '{level}': {why}")
        used: dict[Core, int] = {}
        pairs, shared = [], False
        for two in itertools.islice(self._core_pairs(level), count):
            placed = []
            for core in two:
                turn = used.get(core, 0)
                used[core] = turn + 1
                shared |= turn >= (len(core.cpus) if level == "sibling" else 1)
                placed.append(core.cpus[turn % len(core.cpus)])
            pairs.append((placed[0], placed[1]))
        over = self.limit is not None and 2 * count > self.limit
        return Placement(pairs=pairs, oversubscribed=shared or over)

    def farthest(self, cpus: Collection[int]) -> str:
        """The greatest distance among `cpus`, two or more of them."""
        cores = {core for core in self.cores if not set(core.cpus).isdisjoint(cpus)}
        if len({core.socket for core in cores}) > 1:
            return "socket"
        if len({core.cache for core in cores}) > 1:
            return "cache"
        return "core" if len(cores) > 1 else "sibling"

    def _core_pairs(self, level: str) -> Iterator[tuple[Core, Core]]:
        """The cores of one pair after the other, without end: all cores once before any is used again."""
        once = list(self._apart(level))
        if not once:
            return
        yield from once
        if level == "core":  # an odd core is left over in a group: the next round begins with it
            ring = next(group for group in self._groups("cache") if len(group) > 1)
            begin = len(ring) // 2
            if len(once) == begin and len(ring) % 2 == 1:
                for turn in itertools.count(begin):
                    yield ring[2 * turn % len(ring)], ring[(2 * turn + 1) % len(ring)]
        yield from itertools.cycle(once)

    def _apart(self, level: str) -> Iterator[tuple[Core, Core]]:
        """Pairs that have no core in common; of siblings as many as a core has threads for."""
        if level == "sibling":
            for turn in range(max((len(core.cpus) for core in self.cores), default=0) // 2):
                yield from ((core, core) for core in self.cores if len(core.cpus) // 2 > turn)
        elif level == "core":
            for group in self._groups("cache"):
                yield from zip(group[::2], group[1::2], strict=False)
        elif level == "cache":
            for socket in self._groups("socket"):
                yield from _across(_split(socket, "cache"))
        else:
            yield from _across(self._groups("socket"))

    def _groups(self, by: str) -> list[list[Core]]:
        return _split(self.cores, by)


def read(root: str = ROOT, affinity: Collection[int] | None = None, limit: int | None = None) -> Topology:
    """Read /sys about the CPUs in `affinity`; None: those that this process may use, and its time limit.

    CPUs that are offline do not count. Where nothing is said of siblings, caches or sockets, a CPU is a core
    of its own, and all are in one socket and share its last cache. Takes a millisecond for some ten CPUs.
    """
    if affinity is None:
        affinity, limit = host.allowed_cpus(), limit or host.quota()
    folder = Path(root)
    online = host.cpu_list(host.text_of(folder / "online")) or set(affinity)
    usable = set(affinity) & online
    threads: dict[int, list[int]] = {}
    for number in sorted(usable):
        threads.setdefault(_first_sibling(folder, number), []).append(number)
    cores = []
    for numbers in threads.values():
        socket = _number(host.text_of(folder / f"cpu{numbers[0]}" / "topology" / "physical_package_id"))
        cores.append(Core(cpus=tuple(numbers), cache=_last_cache(folder, numbers[0], socket), socket=socket))
    cores.sort(key=lambda core: (core.socket, core.cache, core.cpus))
    return Topology(cores=cores, whole=usable == online, limit=limit)


def _first_sibling(folder: Path, number: int) -> int:
    """The least of the hardware threads that share a core with this one; also one that may not be used."""
    for name in ("core_cpus_list", "thread_siblings_list"):
        if listed := host.cpu_list(host.text_of(folder / f"cpu{number}" / "topology" / name)):
            return min(listed)
    return number


def _last_cache(folder: Path, number: int, socket: int) -> int:
    """Names the highest cache that data go through by its least CPU; negative: nothing is said of caches."""
    best = (0, -1 - socket)
    for index in sorted((folder / f"cpu{number}" / "cache").glob("index[0-9]*")):
        shared = host.cpu_list(host.text_of(index / "shared_cpu_list"))
        if shared and host.text_of(index / "type") != "Instruction":
            best = max(best, (_number(host.text_of(index / "level")), min(shared)))
    return best[1]


def _split(cores: list[Core], by: str) -> list[list[Core]]:
    """The cores that have the same `cache` or `socket`, in the order of the first of each."""
    parts: dict[int, list[Core]] = {}
    for core in cores:
        parts.setdefault(core.cache if by == "cache" else core.socket, []).append(core)
    return list(parts.values())


def _across(groups: list[list[Core]]) -> Iterator[tuple[Core, Core]]:
    """Pairs of one core each from two groups, always from those that have most left."""
    left = [list(group) for group in groups]
    while True:
        order = sorted(range(len(left)), key=lambda place: -len(left[place]))[:2]
        if len(order) < 2 or not left[order[1]]:
            return
        low, high = sorted(order)
        yield left[low].pop(0), left[high].pop(0)


def _number(text: str) -> int:
    """A socket's number may be −1 where a virtual machine does not tell."""
    return int(text) if text.lstrip("-").isdigit() else 0
