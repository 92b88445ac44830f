"""Finds ranks on this host that a signal stopped before they could say anything."""

from __future__ import annotations

import os

from tilewise.base import processes
from tilewise.launch.events import Beat

_RANK = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")  # as each launcher numbers them


def stopped(mark: str, alone: int, heard: set[int]) -> list[Beat]:
    """What each would have said, of the ranks in whose environment `mark` stands and that `heard` lacks.

    `alone` is the only rank, which no launcher has started and numbered, or 0.
    Reads the state of every process of this host, and the environment of those that are stopped.
    """
    name, _, value = mark.partition("=")
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not entry.isdigit() or int(entry) in heard or processes.state(int(entry)) != "T":
            continue
        environment = processes.environment(int(entry))
        numbers = [environment[each] for each in _RANK if environment.get(each, "").isdigit()]
        if environment.get(name) == value and (numbers or int(entry) == alone):
            rank = int(numbers[0]) if numbers else 0
            found.append(Beat(rank=rank, host=os.uname().nodename, pid=int(entry)))
    return found
