"""The stated rule that `auto` follows, unless another way is predicted to be clearly faster.

Ranks and threads: a small product takes one rank and one thread. One node with one memory domain takes
`local`, one rank with a thread for each core; several domains or nodes take one rank a domain, or as many as
the hosts file has slots for or Slurm was asked for. With `-n` the cores are shared out, never more threads
than cores, nor than Slurm's `--cpus-per-task`. Algorithm: `local` on one rank, `summa` on more; `cannon` and
`replicated` on request. Exchange: `shared` on one host where /dev/shm has space for both operands, else
`overlap`, as also where ranks turn out to be on several. I/O: `positioned`.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import bytes_text, plural
from tilewise.machine.facts import Facts
from tilewise.planning import where
from tilewise.planning.choices import Choices
from tilewise.planning.names import DESCRIBED_ONCE, Algorithm
from tilewise.planning.task import Task
from tilewise.planning.where import Ground, Spread

SMALL = 2e7  # multiply-adds below which starting more ranks or threads costs more than it saves
SHARED = "shared:"  # opens the reason for an exchange that holds on one host only


def spread(task: Task[Any], work: float, *, all_cores: bool = False) -> Spread:
    """Number of ranks, threads of each, and their hosts, for `work` multiply-adds; reasons go to the task.

    `all_cores`: the flags are about ranks, so there is one for every core. Raises UsageError for counts that
    cannot be.
    """
    choices, facts, joined, why = task.options, task.facts, task.joined, task.why
    if joined is not None and choices.ranks not in (None, joined.size):
        raise UsageError(
            f"-n {choices.ranks} was asked for, but {joined.size} ranks exist already",
            "omit -n under mpiexec",
        )
    if facts.granted is not None:
        why.append(facts.granted.text())
        if not facts.memory_known:
            why.append(f"{bytes_text(facts.memory_available)} of memory per node are assumed")
    ground = where.ground(choices, facts, joined)
    each = facts.granted.cpus_per_task if facts.granted is not None else None
    ranks = (
        joined.size if joined else choices.ranks or _ranks(choices, facts, work, ground, each, why, all_cores)
    )
    bound = where.bound_alone(facts, joined)
    if choices.threads is not None or work < SMALL:
        placed = where.place(ground, ranks, choices, threads=choices.threads or 1, bound=bound)
        return msgspec.structs.replace(placed, work=work)
    if each is not None and joined is not None:
        why.append(f"{plural(each, 'thread')} per rank: --cpus-per-task")
        placed = where.place(ground, ranks, choices, threads=each, bound=bound)
        return msgspec.structs.replace(placed, work=work)
    placed = where.place(ground, ranks, choices, most=each, bound=bound)
    if each == placed.threads:
        why.append(f"{plural(each, 'thread')} per rank: --cpus-per-task")
    else:
        shared_out = f"{plural(placed.on_node, 'rank')} a node on {plural(min(ground.cores), 'core')}"
        why.append(f"{plural(placed.threads, 'thread')} per rank: {shared_out}")
    return msgspec.structs.replace(placed, work=work)


def exchange(
    task: Task[Any], chosen: Algorithm, shared_bytes: float, spread: Spread, what: str = "both operands"
) -> tuple[str, str]:
    """The exchange of the ranks, `none` on one; and that for ranks on several nodes: empty if the same.

    `shared_bytes` is what `shared` would put in /dev/shm: `what`. Infinity: `shared` is for who asks for it.
    """
    choices, facts, why = task.options, task.facts, task.why
    if choices.exchange is not None:
        if choices.exchange not in chosen.exchanges:
            known = (
                f"it takes {', '.join(chosen.exchanges)}"
                if chosen.exchanges
                else "it has one rank, so omit it"
            )
            raise UsageError(f"--exchange {choices.exchange} makes no sense with {chosen.name}: {known}")
        if choices.exchange == "shared" and spread.nodes > 1:
            raise UsageError(
                f"--exchange shared works within one node, not over {spread.nodes}", "--exchange overlap"
            )
        return choices.exchange, ""
    if not chosen.exchanges:
        return "none", ""
    if spread.nodes == 1 and shared_bytes <= facts.shared_left(spread.ranks):
        why.append(f"{SHARED} all ranks are on one node and /dev/shm has space for {what}")
        return "shared", "overlap"
    if shared_bytes == math.inf:
        reason = "the interior is computed while halos are exchanged"
    elif spread.nodes > 1:
        reason = "there are several nodes"
    else:
        lacks = "an unknown amount of space" if facts.remote else "too little space"
        reason = f"/dev/shm has {lacks} for shared"
    why.append(f"overlap: {reason}")
    return "overlap", ""


def _ranks(
    choices: Choices,
    facts: Facts,
    work: float,
    ground: Ground,
    each: int | None,
    why: list[str],
    all_cores: bool,
) -> int:
    """A rank count when the user gave none; `each`: the processors that Slurm was asked for a rank."""
    room = ground.room(choices.threads or each or 1)
    nodes, slots = ground.count, ground.slots
    if choices.grid is not None and choices.algorithm != "replicated":
        return max(1, choices.grid[0] * choices.grid[1])
    if choices.algorithm == "cannon" or (choices.algorithm is None and choices.exchange in DESCRIBED_ONCE):
        return math.isqrt(room) ** 2
    if choices.algorithm == "replicated":
        whole = choices.grid[0] * choices.grid[1] if choices.grid else 1
        return max(2, room // max(1, whole)) * max(1, whole)
    if choices.algorithm == "local":
        return 1
    if choices.algorithm == "summa" or choices.exchange is not None or all_cores:
        return room
    if work < SMALL:
        why.append("1 rank: the work is too small to share")
        return 1
    if nodes == 1 and facts.numa == 1 and not (slots and each):
        why.append("1 rank: this node has one memory domain")
        return 1
    if slots:
        said = "--hosts has slots for" if choices.hosts else "Slurm was asked for"
        why.append(f"{plural(slots, 'rank')}: {said} so many")
        return slots
    why.append(f"{nodes * facts.numa} ranks: one for each memory domain")
    return nodes * facts.numa
