"""The tables of names: algorithms, exchanges, I/O strategies, and which of them go together.

The command line, the plan, its tests and the documentation all walk these; nothing else spells the names out.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

EXCHANGES = {
    "synchronous": "Ssend: returns once the receiver has begun to receive",
    "blocking": "Send and Recv",
    "nonblocking": "Isend and Irecv, then wait",
    "overlap": "computes while messages are in flight",
    "persistent": "requests created once, started for each message",
    "partitioned": "persistent, with each part sent as soon as it is ready; needs MPI 4",
    "collective": "Bcast; Alltoallv to transpose; a neighbourhood Alltoallw for a stencil",
    "one_sided_fence": "Get between fences",
    "one_sided_pscw": "Get between post, start, complete and wait: only partners wait for each other",
    "one_sided_lock": "Get under a lock, without the target's help; for svd a Put and a notice",
    "shared": "a window in shared memory, within one node",
}
# Their requests are made beforehand: only messages that come back can use them.
DESCRIBED_ONCE = ("persistent", "partitioned")

IO = {
    "root": "rank 0 reads or writes, and sends or receives",
    "root_collective": "rank 0 reads or writes, Scatterv and Igatherv",
    "per_rank": "a folder of tiles, one file per rank",
    "collective": "MPI-IO file views, all ranks together",
    "split_collective": "collective in two halves, with computation in between",
    "independent": "MPI-IO file views, each rank on its own",
    "shared_pointer": "MPI-IO, one file pointer for all ranks, in turns; only reads",
    "ordered": "the same by collective calls, in the order of ranks; only reads",
    "positioned": "every rank reads and writes its own segments",
    "sieve": "all from the first to the last needed byte, through a buffer",
    "mapped": "mmap; on one rank without a copy",
    "two_phase": "contiguous panels, then an exchange between ranks",
    "uncached": "O_DIRECT, past the page cache; on one rank it overlaps with computation",
}

ONLY_READ = ("shared_pointer", "ordered")
BOTH_WAYS = tuple(name for name in IO if name not in ONLY_READ)
ONE_FILE = tuple(name for name in IO if name != "per_rank")  # what takes a matrix that is one file

MPI_IO = ("collective", "split_collective", "independent", "shared_pointer", "ordered")

KERNELS = ("fast", "tiles", "blas", "plain", "strassen")
REMAINDERS = ("spread", "last")
PLACES = ("core", "socket", "node")
VERIFY = ("auto", "off", "fast", "serial")


class Algorithm(msgspec.Struct, frozen=True):
    """An algorithm, the exchanges it can use (none on one rank) and the rank counts it takes.

    `example` is its name with flags that it needs.
    """

    name: str
    summary: str
    exchanges: tuple[str, ...]
    takes: Callable[[int], bool]
    takes_text: str
    example: str = ""


def any_count(ranks: int) -> bool:
    """True if there is any rank at all."""
    return ranks >= 1


def table(*algorithms: Algorithm) -> dict[str, Algorithm]:
    """The algorithms of an operation by their names."""
    return {algorithm.name: algorithm for algorithm in algorithms}


def described(names: dict[str, str]) -> str:
    """`name: what it is; name: …`, for a help page."""
    return "; ".join(f"{name}: {text}" for name, text in names.items())
