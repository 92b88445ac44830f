"""Facts: what the plan needs to know about this node, gathered once and passed on as a value."""

from __future__ import annotations

import os

import msgspec

from tilewise.machine import cpu, memory


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """One node as it is now. Memory and shared-memory room in bytes.

    `cores` are physical cores this process may use, `cpus` logical processors; `numa` counts the memory
    domains among them.
    """

    host: str
    cpu: str
    flags: frozenset[str]
    cores: int
    cpus: int
    numa: int
    memory_available: int
    shared_memory: int


def gather() -> Facts:
    """Looks at this node; takes a few milliseconds."""
    allowed = cpu.allowed_cpus()
    limit = cpu.quota()
    model, flags = cpu.model_and_flags()
    cores = cpu.physical_cores(allowed)
    return Facts(
        host=os.uname().nodename,
        cpu=model,
        flags=flags,
        cores=min(cores, limit) if limit else cores,
        cpus=min(len(allowed), limit) if limit else len(allowed),
        numa=len(cpu.numa_nodes(allowed)),
        memory_available=memory.available_memory(),
        shared_memory=memory.shared_memory_room(),
    )
