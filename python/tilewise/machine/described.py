"""Machines that are not here: read from a file that somebody wrote, and planned for as if granted."""

from __future__ import annotations

import msgspec

from tilewise.base.errors import UsageError, clean
from tilewise.base.undecodable import UNDECODABLE
from tilewise.machine.allocation import Allocation, Node
from tilewise.machine.facts import Facts
from tilewise.machine.terms import Machine, checked

_FLAG = "--machine"


def read_machine(path: str) -> Machine:
    """The machine that the JSON file at `path` describes, as `tilewise.machine.terms` has it; UsageError."""
    try:
        with open(path, "rb") as file:
            machine = msgspec.json.decode(file.read(), type=_Written)
    except OSError as error:
        raise UsageError(f"{_FLAG} {path}: cannot be read: {error.strerror}") from None
    except UNDECODABLE as error:
        raise UsageError(
            f"{_FLAG} {path}: does not describe a machine: {error}", "docs/how-to/plan-for-another-machine.md"
        ) from None
    if wrong := checked(machine):
        raise UsageError(f"{_FLAG} {path}: {wrong}")
    given = {
        name: msgspec.structs.replace(term, source="given" if term.source == "assumed" else term.source)
        for name, term in machine.terms.items()
    }
    name = " ".join(clean(machine.name or path).split())
    return msgspec.structs.replace(machine, name=name, terms=given, habits={})


class _Written(Machine, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine in whose description a word that means nothing is a mistake."""


def facts_elsewhere(here: Facts, host: str, nodes: tuple[Node, ...], said_by: str, memory: int = 0) -> Facts:
    """Facts of nodes that are not here, as if somebody had granted them; `memory` 0: nobody knows."""
    cores = min(node.cpus for node in nodes)
    return msgspec.structs.replace(
        here,
        host=host,
        cpu="",
        flags=frozenset(),
        cores=cores,
        cpus=cores,
        numa=1,
        memory_available=memory or here.memory_available,
        shared_memory=0,
        granted=Allocation(nodes=nodes, said_by=said_by),
        elsewhere=True,
        memory_known=memory > 0,
    )


def facts_of(machine: Machine, here: Facts) -> Facts:
    """Facts of a node of `machine`."""
    nodes = tuple(Node(f"node-{index}", machine.cores) for index in range(machine.nodes))
    return facts_elsewhere(here, machine.name, nodes, f"{machine.name} has", machine.memory)
