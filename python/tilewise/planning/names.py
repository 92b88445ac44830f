"""The tables of names: algorithms, exchanges, I/O strategies, and which of them go together.

The command line, the plan, its tests and the documentation all walk these; nothing else spells the names out.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

EXCHANGES = {
    "synchronous": "Ssend: returns when the other side has begun to receive",
    "blocking": "Send and Recv",
    "nonblocking": "Isend and Irecv, then wait",
    "overlap": "computes while the messages fly",
    "persistent": "requests made once, started for every message",
    "partitioned": "the same, each message on its way as soon as it is ready; needs MPI 4",
    "collective": "Bcast; for a transposition Alltoallv, for a stencil a neighbourhood's Alltoallw",
    "one_sided_fence": "Get between fences",
    "one_sided_pscw": "Get between post, start, complete and wait: only partners wait for each other",
    "one_sided_lock": "Get under a lock, without the other side; for a decomposition Put and a notice",
    "shared": "a window in shared memory, within one node",
}
# Their requests are made beforehand: only messages that come back can use them.
DESCRIBED_ONCE = ("persistent", "partitioned")

IO = {
    "root": "rank 0 reads or writes, and sends or receives",
    "root_collective": "rank 0 reads or writes, Scatterv and Igatherv",
    "per_rank": "a folder of tiles, a file for each rank",
    "collective": "MPI-IO file views, all ranks together",
    "split_collective": "the same in two halves, with work between",
    "independent": "MPI-IO file views, each rank for itself",
    "positioned": "every rank reads and writes its own segments",
    "sieve": "from the first to the last wanted byte through a buffer",
    "mapped": "mmap: on one rank even without a copy",
    "two_phase": "contiguous panels, then an exchange of our own",
    "uncached": "O_DIRECT, past the page cache; on one rank while still computing",
}

ONE_FILE = tuple(name for name in IO if name != "per_rank")  # what takes a matrix that is one file

KERNELS = ("fast", "blas", "plain")
REMAINDERS = ("spread", "last")
PLACES = ("core", "socket", "node")
VERIFY = ("auto", "off", "fast", "serial")


class Algorithm(msgspec.Struct, frozen=True):
    """One algorithm: the exchanges it can use (none on one rank) and the rank counts it takes."""

    name: str
    summary: str
    exchanges: tuple[str, ...]
    takes: Callable[[int], bool]
    takes_text: str


def any_count(ranks: int) -> bool:
    """Whether there is any rank at all."""
    return ranks >= 1


def table(*algorithms: Algorithm) -> dict[str, Algorithm]:
    """The algorithms of an operation by their names."""
    return {algorithm.name: algorithm for algorithm in algorithms}


def described(names: dict[str, str]) -> str:
    """`name: what it is; name: …`, for a help page."""
    return "; ".join(f"{name}: {text}" for name, text in names.items())
