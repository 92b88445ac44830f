"""The tables of names: algorithms, exchanges, I/O strategies, and which of them go together.

The command line, the plan, its tests and the documentation all walk these; nothing else spells the names out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

# What an operation does differently says its `exchange_words`.
EXCHANGES = {
    "synchronous": "Ssend: returns once the receiver has begun to receive",
    "blocking": "Send and Recv",
    "nonblocking": "Isend and Irecv, then wait",
    "overlap": "computes while messages are in flight",
    "persistent": "requests created once, started for each message",
    "partitioned": "the same with MPI 4's partitioned messages (`MPI_Psend_init`, `MPI_Pready`); "
    "an older library is refused",
    "collective": "one collective call",
    "one_sided_fence": "Get between fences",
    "one_sided_pscw": "Get between post, start, complete and wait: only partners wait for each other",
    "one_sided_lock": "Get under a lock, without the target's help",
    "shared": "a window in shared memory, without messages; within one node",
}
# Their requests are made beforehand: only messages that come back can use them.
DESCRIBED_ONCE = ("persistent", "partitioned")


class Way(NamedTuple):
    """An I/O strategy: how a binary file is moved, and through which buffers."""

    words: str
    buffers: str = "none"


_LIBRARY, _BANDS, _STAGES = "the MPI library's", "bands of 8 MiB", "`cb_buffer_size`: 4 MiB"
IO = {
    "root": Way("rank 0 reads bands and sends each rank its own; in reverse to write", _BANDS),
    "root_collective": Way("the same with Scatterv and Igatherv (or Gatherv: `--hint gather=…`)", _BANDS),
    "per_rank": Way(
        "each rank reads and writes what it needs of each tile or chunk, on all threads; "
        "only for `.tiles` and `.zarr`",
        "4 MiB for each of at most 8 threads",
    ),
    "collective": Way("MPI-IO: a file view per rank, and one `read_all` or `write_all`", _LIBRARY),
    "split_collective": Way("the same in eight parts, each with begin and end", _LIBRARY),
    "independent": Way("MPI-IO: a file view per rank, and one `read` or `write`", _LIBRARY),
    "shared_pointer": Way(
        "MPI-IO: one file pointer for all ranks. In turns, each rank reads the next piece with "
        "`read_shared`, then the ranks exchange the data. Only reads",
        _STAGES,
    ),
    "ordered": Way(
        "the same with `read_ordered`, one collective call in the order of ranks. Only reads", _STAGES
    ),
    "positioned": Way("`pread` and `pwrite` of each run of numbers, on all threads"),
    "sieve": Way(
        "everything from the first to the last needed byte, in pieces; each rank keeps its own numbers. "
        "To write around gaps, a piece is locked, read, changed and written",
        "`ind_rd_buffer_size`, `ind_wr_buffer_size`: 512 KiB",
    ),
    "mapped": Way(
        "copies from and to a memory map; `multiply` on one rank computes with the pages themselves"
    ),
    "two_phase": Way(
        "each rank moves a contiguous panel in stages, and the ranks exchange the data", _STAGES
    ),
    "uncached": Way(
        "the same past the page cache (O_DIRECT), file and exchange at the same time; `multiply` on one rank "
        "writes C while it computes. Operands that stream past a tile of C: each rank reads its own pieces, "
        "many by one call",
        _STAGES,
    ),
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

    `summary` says what it does, in the table of the operation's page; `example` is its name with the flags
    that it needs.
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
