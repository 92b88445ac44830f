"""The tables of names: algorithms, exchanges, I/O strategies, and which of them go together.

The command line, the plan, its tests and the documentation all walk these; nothing else spells the names out.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

EXCHANGES = {
    "synchronous": "Ssend: returns when the other side has begun to receive",
    "blocking": "Send and Recv",
    "nonblocking": "Isend and Irecv, then wait",
    "overlap": "computes while the messages fly",
    "persistent": "requests made once, started for every message",
    "collective": "Bcast",
    "one_sided_fence": "Get between fences",
    "one_sided_lock": "Get under a lock, without the other side",
    "shared": "a window in shared memory, within one node",
}

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

_PANELS = (
    "synchronous",
    "blocking",
    "nonblocking",
    "overlap",
    "collective",
    "one_sided_fence",
    "one_sided_lock",
    "shared",
)
_SHIFTS = (
    "synchronous",
    "blocking",
    "nonblocking",
    "overlap",
    "persistent",
    "one_sided_fence",
    "one_sided_lock",
    "shared",
)


class Algorithm(msgspec.Struct, frozen=True):
    """One algorithm: the exchanges it can use (none on one rank) and the rank counts it takes."""

    name: str
    summary: str
    exchanges: tuple[str, ...]
    takes: Callable[[int], bool]
    takes_text: str


def _is_square(ranks: int) -> bool:
    return math.isqrt(ranks) ** 2 == ranks


MULTIPLY = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("local", "the whole product on one rank", (), lambda n: n == 1, "1 rank only"),
        Algorithm(
            "cannon",
            "blocks shift round a square torus",
            _SHIFTS,
            _is_square,
            "square rank counts (1, 4, 9, 16, …)",
        ),
        Algorithm(
            "summa", "panels travel along rows and columns", _PANELS, lambda n: n >= 1, "any rank count"
        ),
        Algorithm(
            "replicated",
            "2.5-D: copies of the grid share the sum",
            _PANELS,
            lambda n: n >= 2,
            "2 ranks or more",
        ),
    )
}
