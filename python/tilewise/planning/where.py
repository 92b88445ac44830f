"""The places of ranks: the hosts that there are, how ranks are dealt to them, and each host's load.

The hosts are those of ranks that exist, else the hosts file's, else the Slurm allocation's, else this one. A
launcher of the user's that says where ranks go, or that nobody told of hosts, puts them where it likes: such
a plan is not `sure`, and counts as if all were on this host.

`misplaced` compares these places with those where the ranks turned out to be.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import listing, plural
from tilewise.launch import launcher
from tilewise.launch.events import RankPlace
from tilewise.launch.join import Join
from tilewise.machine.allocation import Allocation, Node, deal, read_hosts
from tilewise.machine.facts import Facts
from tilewise.planning.choices import Choices


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts for ranks, of which `count` have no names where a launcher knows them alone.

    `cores` and `cpus` of each host. `sure`: ranks will be on these hosts.
    """

    nodes: tuple[Node, ...] = ()
    count: int = 1
    cores: tuple[int, ...]
    cpus: tuple[int, ...]
    sure: bool = True

    @property
    def slots(self) -> int:
        """Ranks that were said to go to the hosts together; 0 where that was not said."""
        return sum(node.slots for node in self.nodes)

    def room(self, threads: int) -> int:
        """Ranks of so many threads that there are slots, or else cores for."""
        return self.slots or sum(max(1, cores // threads) for cores in self.cores)

    def deal(self, ranks: int, threads: int, place: str) -> tuple[str, ...]:
        """The host of each rank, in turn: while there are slots, or else processors left, then to all."""
        slots = {node.name: node.slots for node in self.nodes}
        if not self.slots or ranks > self.slots:
            slots |= {node.name: max(1, node.cpus // threads) for node in self.nodes if node.cpus}
        return tuple(deal(slots, ranks, place)) if slots else ()


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How many ranks there are, with how many threads each, and where.

    `hosts`: of each rank; empty on this host, and where a launcher decides. `nodes` hosts have ranks, and
    `on_node` is the most on one. `crowded`: why ranks must take turns, `beyond`: where there are more than
    slots; else empty. `sure`: ranks will be there, as far as the plan can say. They do `work` multiply-adds.
    """

    ranks: int
    threads: int
    nodes: int
    on_node: int
    hosts: tuple[str, ...] = ()
    crowded: str = ""
    beyond: str = ""
    sure: bool = True
    work: float = 0.0


def ground(choices: Choices, facts: Facts, joined: Join | None = None) -> Ground:
    """The hosts that ranks can go to. Raises UsageError for hosts that are not to be had."""
    if joined is not None:
        count = joined.nodes
        return _alike((), count, facts, sure=joined.local > 0)
    granted = facts.granted
    if choices.hosts:
        listed = tuple(Node(name, 0, slots) for name, slots in read_hosts(choices.hosts).items())
        if granted is None:
            return _alike(listed, len(listed), facts)
        return _granted(_among(listed, granted, choices.hosts), facts)
    if choices.launcher and (granted is None or launcher.names_hosts(choices.launcher.split())):
        return _alike((), 1, facts, sure=False)
    return _granted(granted.nodes, facts) if granted is not None else _alike((), 1, facts)


def place(
    ground: Ground,
    ranks: int,
    choices: Choices,
    *,
    threads: int | None = None,
    most: int | None = None,
    bound: bool = False,
) -> Spread:
    """`ranks` ranks dealt out, of `threads` each, or of as many as there are cores for, `most` at most.

    `bound`: a launcher has given each rank processors of its own, so that ours say nothing of the others.
    """
    dealt = ground.deal(ranks, threads or most or 1, choices.place)
    counts = Counter(dealt)
    if dealt:
        loads = [
            (counts[node.name], node, cores, cpus)
            for node, cores, cpus in zip(ground.nodes, ground.cores, ground.cpus, strict=True)
            if counts[node.name]
        ]
    else:
        loads = [(-(-ranks // ground.count), Node(""), ground.cores[0], ground.cpus[0])]
    if threads is None:
        free = min(cores if bound else cores // count for count, _, cores, _ in loads)
        threads = max(1, min(free, most or free))
    crowded = beyond = ""
    worst = max(loads, key=lambda load: load[0] / load[3])
    if not bound and worst[0] * threads > worst[3]:
        whose = f" of {worst[1].name}" if worst[1].name else ""
        work = f"{plural(worst[0], 'rank')} × {plural(threads, 'thread')}"
        crowded = f"{work} on {plural(worst[3], 'processor')}{whose}"
    over = [(count, node) for count, node, _, _ in loads if choices.hosts and 0 < node.slots < count]
    if over:
        count, node = over[0]
        beyond = f"{plural(count, 'rank')} on {node.name}, which has {plural(node.slots, 'slot')} in --hosts"
    return Spread(
        ranks=ranks,
        threads=threads,
        nodes=len(counts) or min(ground.count, ranks),
        on_node=max(count for count, *_ in loads),
        hosts=dealt,
        crowded=crowded,
        beyond=beyond,
        sure=ground.sure,
    )


def bound_alone(facts: Facts, joined: Join | None) -> bool:
    """True if a launcher has bound this rank: its processors are not the node's, and the worker will know."""
    if joined is None:
        return False
    granted = facts.granted
    mine = granted.find(granted.here) if granted is not None and granted.here else None
    return facts.cpus < (mine.cpus if mine is not None and mine.cpus else os.cpu_count() or 1)


def _alike(nodes: tuple[Node, ...], count: int, facts: Facts, sure: bool = True) -> Ground:
    """Hosts like the one that `facts` are of."""
    return Ground(
        nodes=nodes, count=count, cores=(facts.cores,) * count, cpus=(facts.cpus,) * count, sure=sure
    )


def _granted(nodes: tuple[Node, ...], facts: Facts) -> Ground:
    """Nodes of an allocation, with as many processors to a core as there are where we have looked."""
    cpus = tuple(node.cpus or facts.cpus for node in nodes)
    cores = tuple(max(1, count * facts.cores // facts.cpus) for count in cpus)
    if len(nodes) == 1 and not facts.remote:  # what we see ourselves may be less
        cpus, cores = (min(cpus[0], facts.cpus),), (min(cores[0], facts.cores),)
    return Ground(nodes=nodes, count=len(nodes), cores=cores, cpus=cpus)


def _among(listed: tuple[Node, ...], granted: Allocation, path: str) -> tuple[Node, ...]:
    """Nodes of the allocation that a hosts file lists, in Slurm's order, which no launcher there leaves."""
    slots: dict[str, int] = {}
    for each in listed:
        node = granted.find(each.name)
        if node is None:
            names = ", ".join(node.name for node in granted.nodes[:4])
            more = ", …" if len(granted.nodes) > 4 else ""
            raise UsageError(
                f"--hosts {path}: Slurm has not granted {each.name}, only {names}{more}",
                "omit --hosts to use what is granted",
            )
        slots[node.name] = slots.get(node.name, 0) + each.slots
    return tuple(
        msgspec.structs.replace(node, slots=slots[node.name]) for node in granted.nodes if node.name in slots
    )


_SHOWN = 4  # hosts that are named


def misplaced(spread: Spread, ranks: Sequence[RankPlace]) -> str:
    """Say what is wrong with the places of ranks; empty where nothing is.

    Who shares a host with whom is what counts: a host may have other names than the plan knows.
    """
    if not spread.sure or not ranks:
        return ""
    used = Counter(rank.host for rank in ranks)
    if not spread.hosts:
        host, most = used.most_common(1)[0]
        few = most <= spread.on_node
        return (
            "" if few else f"{plural(most, 'rank')} are on {host}, but at most {spread.on_node} were planned"
        )
    pairs = {(spread.hosts[rank.rank], rank.host) for rank in ranks if rank.rank < len(spread.hosts)}
    meant = Counter(spread.hosts)
    if len(pairs) == len(meant) == len(used):
        return ""
    seen = counted([rank.host for rank in ranks])
    return f"ranks are not where they were planned: {seen}, instead of {counted(spread.hosts)}"


def counted(hosts: Sequence[str]) -> str:
    """How many ranks each host has: `2 on n1, 1 on n2 and 1 on n3`; of many hosts the first."""
    words = [f"{count} on {host}" for host, count in Counter(hosts).items()]
    return listing(words) if len(words) <= _SHOWN else ", ".join([*words[:_SHOWN], "…"])
