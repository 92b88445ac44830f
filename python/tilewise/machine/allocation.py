"""Nodes that ranks may go to: of a hosts file, or of a Slurm allocation with their processors and memory.

All that Slurm grants stands in variables, so no program is asked: `SLURM_JOB_NODELIST=n[1-3]`,
`SLURM_JOB_CPUS_PER_NODE=2(x2),4`. The front may run on a host that is none of these nodes: `salloc` leaves
its user on the login host.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from itertools import cycle

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import bytes_text, plural

_COUNTS = re.compile(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_MOST = 1 << 20  # nodes; more are a variable that was not Slurm's
# A launcher must not take a host for an option, or for two; nor may a terminal be moved by one.
_HOST = re.compile(r"[^\W_][\w.-]*")
_COUNT = re.compile(r"[0-9]{0,9}")


class Node(msgspec.Struct, frozen=True):
    """A host that ranks may go to: its processors, and the ranks that were said to go there; 0: not said."""

    name: str
    cpus: int = 0
    slots: int = 0


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """`here` is the node that this process is on, empty on a host that is none of them.

    `memory`: bytes on the node with least; None, as `cpus_per_task`: Slurm does not say. `said_by`: who has
    the nodes or grants them, as a sentence begins.
    """

    nodes: tuple[Node, ...]
    here: str = ""
    cpus_per_task: int | None = None
    memory: int | None = None
    said_by: str = "Slurm grants"

    @property
    def cpus(self) -> int:
        """Processors of the node with fewest; 0: not said."""
        return min(node.cpus for node in self.nodes)

    def text(self) -> str:
        """`Slurm grants 2 processors on each of 3 nodes`."""
        fewest, most = self.cpus, max(node.cpus for node in self.nodes)
        cpus = plural(most, "processor") if fewest == most else f"{fewest} to {most} processors"
        where = f"each of {len(self.nodes)} nodes" if len(self.nodes) > 1 else self.nodes[0].name
        memory = f"; {bytes_text(self.memory)} of memory" if self.memory is not None else ""
        both = f"{cpus} on {where}" if most else where
        return f"{self.said_by} {both}{memory}{' on a node' if memory and len(self.nodes) > 1 else ''}"

    def find(self, host: str) -> Node | None:
        """The node of that name, with or without its domain."""
        return next((node for node in self.nodes if same_host(node.name, host)), None)


def same_host(one: str, other: str) -> bool:
    """Return whether two names are one host's: a name without a domain fits any."""
    if "." in one and "." in other:
        return one == other
    return one.partition(".")[0] == other.partition(".")[0]


def this_host(granted: Allocation | None) -> str:
    """The name of this host, as Slurm calls it where it is one of its nodes."""
    return (granted.here if granted is not None else "") or os.uname().nodename


def granted(environment: Mapping[str, str], host: str | None = None) -> Allocation | None:
    """The allocation that `environment` tells of, or None. `host` is this one's name."""
    names = expand(environment.get("SLURM_JOB_NODELIST") or environment.get("SLURM_NODELIST", ""))
    if not names:
        return None
    cpus = _counts(environment.get("SLURM_JOB_CPUS_PER_NODE", ""), len(names))
    # Without -n or --ntasks-per-node the tasks are Slurm's own guess; within a step they are the step's.
    stated = "SLURM_NTASKS" in environment and "SLURM_STEP_TASKS_PER_NODE" not in environment
    slots = _counts(environment.get("SLURM_TASKS_PER_NODE", "") if stated else "", len(names))
    nodes = tuple(map(Node, names, cpus, slots))
    allocation = Allocation(nodes=nodes, cpus_per_task=_number(environment, "SLURM_CPUS_PER_TASK"))
    here = allocation.find(environment.get("SLURMD_NODENAME", "")) or allocation.find(
        host or os.uname().nodename
    )
    return msgspec.structs.replace(
        allocation, here=here.name if here else "", memory=_memory(environment, allocation.cpus)
    )


def expand(text: str) -> list[str]:
    """The names in a list such as `n[1-3,07],login`; none where it is not to be understood."""
    hosts: list[str] = []
    for word in re.findall(r"(?:[^,\[\]]|\[[^\[\]]*\])+", text):
        names = [""]
        for plain, ranges in re.findall(r"([^\[\]]+)|\[([^\[\]]*)\]", word):
            ends = [plain] if plain else _numbers(ranges)
            if not ends or len(names) * len(ends) > _MOST:
                return []
            names = [name + end for name in names for end in ends]
        hosts += names
    return hosts


def _numbers(ranges: str) -> list[str]:
    """`8-10,007` as 8, 9, 10, 007."""
    numbers: list[str] = []
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            return []
        first, last = match[1], match[2] or match[1]
        if int(last) - int(first) >= _MOST:
            return []
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers


def _counts(text: str, nodes: int) -> list[int]:
    """`2(x3),4` as 2, 2, 2, 4; zeros where it does not tell of so many nodes."""
    counts: list[int] = []
    for part in text.split(","):
        match = _COUNTS.fullmatch(part)
        if match is None or len(counts) + int(match[2] or 1) > nodes:
            return [0] * nodes
        counts += [int(match[1])] * int(match[2] or 1)
    return counts if len(counts) == nodes else [0] * nodes


def _number(environment: Mapping[str, str], name: str) -> int | None:
    """A number above 0 (which Slurm takes for `all`), or None."""
    text = environment.get(name, "")
    return int(text) if re.fullmatch(r"[0-9]{1,15}", text) and int(text) > 0 else None


def _memory(environment: Mapping[str, str], cpus: int) -> int | None:
    whole = _number(environment, "SLURM_MEM_PER_NODE")
    each = _number(environment, "SLURM_MEM_PER_CPU")
    if whole is None and each is not None and cpus > 0:
        whole = each * cpus
    return None if whole is None else whole << 20


def read_hosts(path: str) -> dict[str, int]:
    """Return hosts and their slots (0: not said) out of `host`, `host:4` or `host slots=4` lines."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--hosts {path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    hosts: dict[str, int] = {}
    for line in lines:
        words = line.split("#")[0].split()
        if not words:
            continue
        host, _, count = words[0].partition(":")
        for word in words[1:]:
            if word.startswith("slots="):
                count = word[6:]
        if not _HOST.fullmatch(host) or not _COUNT.fullmatch(count):
            raise UsageError(
                f"--hosts {path}: {line.strip()[:99]!r} is not a host with a number of slots, such as node7:4"
            )
        hosts[host] = hosts.get(host, 0) + int(count or 0)
    if not hosts:
        raise UsageError(f"--hosts {path} names no host")
    return hosts


def deal(hosts: dict[str, int], ranks: int, place: str) -> list[str]:
    """Return the host of each rank, dealt in turn to hosts with slots left (not said: always), then to all.

    5 ranks on a:2 and b:2 are, by `place`, on
        core, socket   a a a b b      neighbouring ranks share a host
        node           a b a b a      neighbouring ranks are on different hosts
    Launchers read hosts files differently (hydra refuses `slots=`, and deals one rank a host in turn where no
    slots are said; `srun` knows none), and within a Slurm allocation deal by the tasks that it was asked for:
    so each is told how many ranks go where.
    """
    limit = sum(hosts.values()) if all(hosts.values()) else ranks
    counts = dict.fromkeys(hosts, 0)
    dealt: list[str] = []
    turn = cycle(hosts)
    while len(dealt) < ranks:
        host = next(turn)
        if len(dealt) >= limit or not hosts[host] or counts[host] < hosts[host]:
            counts[host] += 1
            dealt.append(host)
    return dealt if place == "node" else [host for host, count in counts.items() for _ in range(count)]
