"""Which messages are measured: sizes × ways × levels × pairs, collectives, and the table of all pairs.

level core, 2 pairs      ranks 0 1 2 3  on cores a b c d,  a–b and c–d being as far apart as the level says
level node, 2 pairs      ranks 0 1 2 3  on hosts x y x y
collectives, every pair  ranks 0 1 2 …  on one core after the other; between nodes on one host after the other
"""

from __future__ import annotations

from typing import Any

from tilewise.base.errors import UsageError
from tilewise.base.units import plural
from tilewise.lab.measurement.plans import stop_of
from tilewise.lab.measurement.request import COLLECTIVES, EXCHANGES, LEVELS, MeasureRequest
from tilewise.lab.measurement.result import ON_DEVICE, Launch, Level, PlannedPoint, refusal
from tilewise.launch.job import Point
from tilewise.machine.allocation import Allocation, read_hosts
from tilewise.machine.facts import Facts
from tilewise.machine.topology import Topology

_SIZES = [1 << power for power in range(23)]  # to 4 MiB
_COLLECTIVE_SIZES = (8, 1024, 65_536, 1 << 20)
_MATRIX_SIZES = (8, 1 << 20)
_MATRIX_RANKS = 16  # at most, unless asked
TWO_SIDED = ("blocking", "nonblocking")  # the others act on memory that MPI allocates on the host
_BRIEF = 0.05  # seconds of a point, where all kinds share the time


class Hosts:
    """The hosts that may be used besides this one: those of a hosts file, or of a Slurm allocation."""

    def __init__(self, request: MeasureRequest, granted: Allocation | None = None) -> None:
        if request.hosts:
            self.names = list(read_hosts(request.hosts))
        else:
            self.names = [node.name for node in granted.nodes] if granted is not None else []
        self.told = bool(request.launcher) and not self.names  # by the launcher's own words, if at all
        self._listed = bool(request.hosts)

    def missing(self) -> str:
        """Why there is no level `node`, else an empty string."""
        if self.told or len(self.names) > 1:
            return ""
        if not self.names:
            return "only this host is known; use --hosts FILE to name others"
        return f"{'--hosts names' if self._listed else 'Slurm grants'} one host, {self.names[0]}"

    def first(self, most: int | None = None) -> dict[str, int]:
        """So many of them, with a slot count that leaves ranks to be dealt in turn."""
        return dict.fromkeys(self.names[:most], 0)


def levels(request: MeasureRequest, topology: Topology, others: Hosts) -> list[Level]:
    """Every level, with the cores of its first pair or why this machine lacks it.

    Raises UsageError where only missing ones were asked for.
    """
    planned = []
    for name in LEVELS:
        if name == "node":
            planned.append(Level(name=name, missing=others.missing()))
        elif reason := topology.missing(name):
            planned.append(Level(name=name, missing=reason))
        else:
            placed = topology.pairs_at(name, 1)
            planned.append(Level(name=name, cpus=[cpu for pair in placed.pairs for cpu in pair]))
    wanted = request.levels
    # A launcher's hosts are only thought of when somebody asks.
    if others.told and not (wanted and "node" in wanted):
        planned[-1].missing = "the hosts of --launcher are unknown; --levels node tries them"
    if wanted and all(level.missing for level in planned if level.name in wanted):
        why: dict[str, list[str]] = {}
        for level in planned:
            if level.name in wanted:
                why.setdefault(level.missing, []).append(level.name)
        reasons = "; ".join(f"{', '.join(names)}: {text}" for text, names in why.items())
        raise UsageError(f"--levels {','.join(wanted)}: {reasons}")
    return planned


def launches(
    request: MeasureRequest,
    facts: Facts,
    topology: Topology,
    others: Hosts,
    there: list[Level],
    no_gpu: str = "",
) -> list[Launch]:
    """One launch for each level and number of pairs, one for collectives, one for the table of pairs.

    Where --buffer leaves memory of the host out, only messages between pairs are left. `no_gpu` says why
    there is no graphics processor.
    """
    wanted = [level.name for level in there if not level.missing and level.name in (request.levels or LEVELS)]
    planned = [
        _pairs(request, facts, topology, others, level, pairs, no_gpu)
        for level in wanted
        for pairs in _pair_counts(request, facts, level)
    ]
    counts = request.ranks if request.ranks and request.kinds == ("ping",) else None
    if counts and min(counts) < 2:
        raise UsageError(f"--ranks {min(counts)}: collectives and the table of pairs need 2 ranks or more")
    if "malloc" not in (request.buffers or ["malloc"]):
        return planned
    within, between = any(level != "node" for level in wanted), "node" in wanted
    every = topology.cpus or [0]
    on_cores = [every[rank % len(every)] for rank in range(max(counts or [facts.cores, 2]))]
    on_hosts: dict[str, Any] = {"hosts": others.first(), "place": "node"}
    for ranks in sorted(counts or {max(2, facts.cores)}) if within else ():
        cpus = on_cores[:ranks]  # their level is the greatest distance among them
        crowded = ranks > facts.cpus
        planned.append(_collectives(request, topology.farthest(cpus), ranks, crowded, {"cpus": cpus}))
    for ranks in sorted(counts or {max(2, len(others.names))}) if between else ():
        crowded = -(-ranks // max(1, len(others.names))) > facts.cpus
        planned.append(_collectives(request, "node", ranks, crowded, on_hosts))
    if not request.no_matrix and within:
        ranks = max(counts or [min(max(2, facts.cores), _MATRIX_RANKS)])
        crowded = ranks > facts.cpus
        planned.append(_matrix(request, "every pair", ranks, cpus=on_cores[:ranks], oversubscribed=crowded))
    if not request.no_matrix and between and len(others.names) > 1:
        names = list(dict.fromkeys(others.names))[:_MATRIX_RANKS]
        at = {**on_hosts, "names": names, "level": "node"}
        planned.append(_matrix(request, "every pair of hosts", len(names), **at))
    return [launch for launch in planned if launch.asks]


def _pair_counts(request: MeasureRequest, facts: Facts, level: str) -> list[int]:
    """One pair, and as many as there are cores for."""
    if request.pairs:
        return sorted(request.pairs)
    return sorted({1, max(1, facts.cores // 2)}) if level != "node" else [1, max(2, facts.cores)]


def _pairs(
    request: MeasureRequest,
    facts: Facts,
    topology: Topology,
    others: Hosts,
    level: str,
    pairs: int,
    no_gpu: str,
) -> Launch:
    ranks = 2 * pairs
    talking = [(2 * pair, 2 * pair + 1) for pair in range(pairs)]
    sizes = request.bytes if request.bytes and request.kinds == ("ping",) else _SIZES
    asks = [
        PlannedPoint(
            point=Point(
                kind="ping",
                name=name,
                pattern=pattern,
                bytes=size,
                pairs=talking,
                buffer="" if buffer == "malloc" else buffer,
                gpus=request.gpus or 0 if buffer != "malloc" else 0,
            ),
            level=level,
            ranks=ranks,
            skipped=refusal(buffer, no_gpu),
        )
        for buffer in request.buffers or ["malloc"]
        for name, pattern in _ways(request, buffer)
        for size in sizes
    ]
    if level == "node":
        where: dict[str, Any] = {"hosts": others.first(2), "place": "node"}
        crowded = pairs > facts.cpus
    else:
        placed = topology.pairs_at(level, pairs)
        where, crowded = {"cpus": [cpu for pair in placed.pairs for cpu in pair]}, placed.oversubscribed
    return Launch(
        what=f"messages, {level}, {plural(pairs, 'pair')}",
        kind="ping",
        ranks=ranks,
        level=level,
        oversubscribed=crowded,
        stop=stop_of(request, _BRIEF if request.brief else 0.15, most=100),
        asks=asks,
        **where,
    )


def _ways(request: MeasureRequest, buffer: str) -> list[tuple[str, str]]:
    """Exchanges and patterns: to and fro by each; a stream, if not said, only without blocking."""
    names = request.exchanges or [name for name in EXCHANGES if buffer not in ON_DEVICE or name in TWO_SIDED]
    if request.patterns:
        return [(name, pattern) for name in names for pattern in request.patterns]
    streams = ["nonblocking"] if "nonblocking" in names else names[:1]
    return [*((name, "roundtrip") for name in names), *((name, "stream") for name in streams)]


def _collectives(
    request: MeasureRequest, level: str, ranks: int, crowded: bool, where: dict[str, Any]
) -> Launch:
    """Each collective on `ranks`, by the library's call and by a plain loop of messages."""
    names = COLLECTIVES if request.collectives is None else request.collectives
    sizes = request.bytes if request.bytes and request.kinds == ("ping",) else _COLLECTIVE_SIZES
    asks = [
        PlannedPoint(
            point=Point(kind="collective", name=name, pattern=pattern, bytes=size), level=level, ranks=ranks
        )
        for name in names
        for pattern in ("library", "loop")
        for size in sizes
    ]
    return Launch(
        what=f"collectives, {level}, {ranks} ranks",
        kind="collective",
        ranks=ranks,
        level=level,
        oversubscribed=crowded,
        stop=stop_of(request, _BRIEF if request.brief else 0.1, most=100),
        asks=asks,
        **where,
    )


def _matrix(request: MeasureRequest, what: str, ranks: int, **where: Any) -> Launch:
    """Every two ranks in turn, while the others wait."""
    asks = [
        PlannedPoint(
            point=Point(kind="ping", name="blocking", pattern="roundtrip", bytes=size, pairs=[(low, high)]),
            ranks=ranks,
            role="matrix",
        )
        for size in _MATRIX_SIZES
        for high in range(ranks)
        for low in range(high)
    ]
    stop = stop_of(request, 0.05, most=50)
    return Launch(what=what, kind="matrix", ranks=ranks, stop=stop, asks=asks, **where)
