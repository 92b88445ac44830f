"""Facts: what the plan needs to know about this node, gathered once and passed on as a value."""

from __future__ import annotations

import os

import msgspec

from tilewise.base import memory
from tilewise.machine import allocation, host
from tilewise.machine.allocation import Allocation, Node
from tilewise.machine.terms import Machine

# Memory to count on for each processor where Slurm says nothing and no node can be looked at.
_ASSUMED = 2 << 30


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """One node as it is now. Memory and shared-memory room in bytes.

    `cores` are physical cores this process may use, `cpus` logical processors; `numa` counts the memory
    domains among them. In a Slurm allocation, `granted`, they are what every node of it has; `remote`:
    this host is none of them, so that nothing here has been looked at. `memory_known`: it is no guess.
    """

    host: str
    cpu: str
    flags: frozenset[str]
    cores: int
    cpus: int
    numa: int
    memory_available: int
    shared_memory: int
    granted: Allocation | None = None
    remote: bool = False
    memory_known: bool = True

    def shared_left(self, ranks: int) -> int:
        """Bytes of shared memory for matrices, where MPI takes its own for so many ranks."""
        return max(0, self.shared_memory - ranks * memory.SHARED_OF_RANK)


def gather() -> Facts:
    """Gather the facts of this node, within a few milliseconds."""
    allowed = host.allowed_cpus()
    limit = host.quota()
    model, flags = host.model_and_flags()
    cores = host.physical_cores(allowed)
    return Facts(
        host=host.name(),
        cpu=model,
        flags=flags,
        cores=min(cores, limit) if limit else cores,
        cpus=min(len(allowed), limit) if limit else len(allowed),
        numa=len(host.numa_nodes(allowed)),
        memory_available=memory.available_memory(),
        shared_memory=memory.shared_memory_room(),
    )


def of_ranks() -> Facts:
    """Return facts of the nodes for ranks: this one, or what Slurm says of those that it grants."""
    return within(gather(), allocation.granted(os.environ))


def within(here: Facts, granted: Allocation | None) -> Facts:
    """`here` as far as `granted` allows, or, on a login host, what is known of the nodes without it."""
    if granted is None:
        return here
    if granted.here:
        cpus = min(here.cpus, granted.cpus or here.cpus)
        return msgspec.structs.replace(
            here,
            cpus=cpus,
            cores=min(here.cores, cpus),
            memory_available=min(here.memory_available, granted.memory or here.memory_available),
            granted=granted,
        )
    assumed = granted.memory or _ASSUMED * max(1, granted.cpus)
    return _remote(granted.nodes[0].name, granted, assumed, granted.memory is not None)


def remote_facts(here: Facts, host: str, nodes: tuple[Node, ...], said_by: str, memory: int = 0) -> Facts:
    """Return facts of other nodes, as if somebody had granted them; `memory` 0: nobody knows."""
    granted = Allocation(nodes=nodes, said_by=said_by)
    return _remote(host, granted, memory or here.memory_available, memory > 0)


def _remote(host: str, granted: Allocation, memory: int, memory_known: bool) -> Facts:
    cpus = max(1, granted.cpus)
    return Facts(
        host=host,
        cpu="",
        flags=frozenset(),
        cores=cpus,
        cpus=cpus,
        numa=1,
        memory_available=memory,
        shared_memory=0,
        granted=granted,
        remote=True,
        memory_known=memory_known,
    )


def facts_of(machine: Machine, here: Facts) -> Facts:
    """Facts of a node of `machine`."""
    nodes = tuple(Node(f"node-{index}", machine.cores) for index in range(machine.nodes))
    return remote_facts(here, machine.name, nodes, f"{machine.name} has", machine.memory)
