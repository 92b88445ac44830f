"""Machines that plans are made for: 8 cores with much memory, or what a test says."""

from __future__ import annotations

import msgspec
from tilewise.machine.facts import Facts

GIB = 1 << 30


def facts(**changes: object) -> Facts:
    base = Facts(
        host="here",
        cpu="some",
        flags=frozenset({"avx2"}),
        cores=8,
        cpus=8,
        numa=1,
        memory_available=64 * GIB,
        shared_memory=32 * GIB,
    )
    return msgspec.structs.replace(base, **changes)


FACTS = Facts(
    host="h",
    cpu="c",
    flags=frozenset(),
    cores=2,
    cpus=2,
    numa=1,
    memory_available=4 * GIB,
    shared_memory=GIB,
)
