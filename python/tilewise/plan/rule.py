"""The stated rule that `auto` follows until a plan that predicts takes its place.

Ranks and threads: a small product takes one rank and one thread. One node with one memory domain takes
`local`, one rank with a thread for each core; several domains or nodes take one rank a domain. With `-n` the
cores are shared out, never more threads than cores. Algorithm: `local` on one rank, `summa` on more; `cannon`
and `replicated` on request. Exchange: `shared` on one host where /dev/shm has room for both operands, else
`overlap`. I/O: `positioned`.
"""

from __future__ import annotations

import math
import os

from tilewise.errors import UsageError
from tilewise.launch.hosts import read_hosts
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.plan.choices import Choices
from tilewise.plan.names import MULTIPLY, Algorithm
from tilewise.units import listing, plural

SMALL = 2e7  # multiply-adds below which starting more ranks or threads costs more than it saves
LARGEST_RANKS = 2**20


def nodes_used(choices: Choices, joined: Join | None = None) -> tuple[int, int]:
    """Hosts and slots (0: not said) that a job spreads over.

    Those of the ranks that exist, else the hosts file's, else a Slurm allocation's, else this one.
    """
    if joined is not None:
        return joined.nodes, joined.size
    if choices.hosts:
        slots = read_hosts(choices.hosts)
        return len(slots), sum(slots.values())
    allocated = os.environ.get("SLURM_JOB_NUM_NODES") or os.environ.get("SLURM_NNODES", "1")
    nodes = int(allocated) if allocated.isdigit() and int(allocated) > 0 else 1
    return nodes, 0


def spread(
    choices: Choices,
    facts: Facts,
    work: float,
    why: list[str],
    *,
    joined: Join | None = None,
    all_cores: bool = False,
) -> tuple[int, int, int]:
    """How many ranks, threads on each, and nodes, for `work` multiply-adds; adds its reasons to `why`.

    `all_cores`: what was asked for is about ranks, so there is one for every core. `joined` tells of ranks
    that exist already. Raises UsageError for counts that cannot be.
    """
    _positive("-n", choices.ranks, LARGEST_RANKS)
    _positive("-t", choices.threads, 4096)
    if joined is not None and choices.ranks not in (None, joined.size):
        raise UsageError(
            f"-n {choices.ranks} was asked for, but {joined.size} ranks exist already",
            "leave -n away under mpiexec",
        )
    nodes, slots = nodes_used(choices, joined)
    ranks = (
        joined.size if joined else choices.ranks or _ranks(choices, facts, work, nodes, slots, why, all_cores)
    )
    if choices.threads is not None:
        return ranks, choices.threads, nodes
    if work < SMALL:
        return ranks, 1, nodes
    on_node = -(-ranks // nodes)
    threads = max(1, facts.cores // on_node)
    shared_out = f"{plural(on_node, 'rank')} a node on {plural(facts.cores, 'core')}"
    why.append(f"{plural(threads, 'thread')} a rank: {shared_out}")
    return ranks, threads, nodes


def algorithm(choices: Choices, ranks: int, why: list[str]) -> Algorithm:
    """The algorithm for `ranks` ranks; UsageError, saying what would do, when the user's does not fit."""
    if choices.algorithm is not None:
        chosen = MULTIPLY[choices.algorithm]
    elif choices.exchange == "persistent":
        chosen = MULTIPLY["cannon"]
        why.append("cannon: only its messages repeat, as persistent requests want")
    elif ranks == 1 and choices.exchange is None and choices.grid in (None, (1, 1)):
        chosen = MULTIPLY["local"]
        why.append("local: there is one rank")
    else:
        chosen = MULTIPLY["summa"]
        why.append("summa: it works on any grid")
    if not chosen.takes(ranks):
        fitting = [name for name, other in MULTIPLY.items() if other.takes(ranks)]
        raise UsageError(
            f"{chosen.name} works on {chosen.takes_text}, not on {ranks}",
            f"{_near(chosen, ranks)}--algorithm {listing(fitting, 'or')}",
        )
    return chosen


def exchange(
    choices: Choices,
    chosen: Algorithm,
    shared_bytes: float,
    facts: Facts,
    nodes: int,
    why: list[str],
    what: str = "both operands",
) -> str:
    """How ranks exchange; `none` on one rank.

    `shared_bytes` is what `shared` would put in /dev/shm: `what`. Infinity: `shared` is for who asks for it.
    """
    if choices.exchange is not None:
        if choices.exchange not in chosen.exchanges:
            known = (
                f"it takes {', '.join(chosen.exchanges)}"
                if chosen.exchanges
                else "it has one rank, so leave it away"
            )
            raise UsageError(f"--exchange {choices.exchange} makes no sense with {chosen.name}: {known}")
        if choices.exchange == "shared" and nodes > 1:
            raise UsageError(
                f"--exchange shared works within one node, not over {nodes}", "--exchange overlap"
            )
        return choices.exchange
    if not chosen.exchanges:
        return "none"
    if nodes == 1 and shared_bytes <= facts.shared_memory:
        why.append(f"shared: all ranks are on one node and /dev/shm has room for {what}")
        return "shared"
    if shared_bytes == math.inf:
        reason = "halos are computed beside their exchange"
    else:
        reason = "there are several nodes" if nodes > 1 else "/dev/shm has too little room for shared"
    why.append(f"overlap: {reason}")
    return "overlap"


def _ranks(
    choices: Choices, facts: Facts, work: float, nodes: int, slots: int, why: list[str], all_cores: bool
) -> int:
    """A rank count when the user gave none."""
    room = slots or nodes * max(1, facts.cores // (choices.threads or 1))
    if choices.grid is not None and choices.algorithm != "replicated":
        return max(1, choices.grid[0] * choices.grid[1])
    if choices.algorithm == "cannon" or (choices.algorithm is None and choices.exchange == "persistent"):
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
    if nodes == 1 and facts.numa == 1:
        why.append("1 rank: this node has one memory domain")
        return 1
    if slots:
        return slots
    why.append(f"{nodes * facts.numa} ranks: one for each memory domain")
    return nodes * facts.numa


def _near(chosen: Algorithm, ranks: int) -> str:
    if chosen.name == "cannon":
        return f"-n {math.isqrt(ranks) ** 2} or -n {(math.isqrt(ranks) + 1) ** 2}, or "
    return ""


def _positive(flag: str, value: int | None, largest: int) -> None:
    if value is not None and not 1 <= value <= largest:
        raise UsageError(f"{flag} {value} makes no sense; it must be a whole number from 1 to {largest}")
