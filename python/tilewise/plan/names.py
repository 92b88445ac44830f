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
    "collective": "Bcast; for a transposition Alltoallv, for a stencil a neighbourhood's Alltoallw",
    "one_sided_fence": "Get between fences",
    "one_sided_pscw": "Get between post, start, complete and wait: only partners wait for each other",
    "one_sided_lock": "Get under a lock, without the other side; for a decomposition Put and a notice",
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
OVERFLOW = ("refuse", "wrap")
ROOT_WRITES = {
    "rows": "a call for each row of each block",
    "view": "a file view for each block",
    "whole": "put in order in memory, then in one piece",
}

_PIECES = (
    "synchronous",
    "blocking",
    "nonblocking",
    "overlap",
    "collective",
    "one_sided_fence",
    "one_sided_pscw",
    "one_sided_lock",
    "shared",
)
_PANELS = tuple(name for name in _PIECES if name != "one_sided_pscw")
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


def _any_count(ranks: int) -> bool:
    return ranks >= 1


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
        Algorithm("summa", "panels travel along rows and columns", _PANELS, _any_count, "any rank count"),
        Algorithm(
            "replicated",
            "2.5-D: copies of the grid share the sum",
            _PANELS,
            lambda n: n >= 2,
            "2 ranks or more",
        ),
    )
}

TRANSPOSE = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm(
            "gather", "rank 0 collects turned blocks and writes", _PIECES, _any_count, "any rank count"
        ),
        Algorithm("swap", "ranks exchange turned blocks and write", _PIECES, _any_count, "any rank count"),
        Algorithm("reread", "one view is read, another written", (), _any_count, "any rank count"),
        Algorithm("staged", "tiles stream through bounded memory", (), _any_count, "any rank count"),
    )
}

STENCIL = {
    "sweeps": Algorithm(
        "sweeps",
        "every number becomes a weighted sum of its neighbours",
        tuple(EXCHANGES),
        _any_count,
        "any rank count",
    )
}

SVD = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm(
            "jacobi",
            "one-sided block Jacobi: column blocks travel round a ring",
            ("blocking", "nonblocking", "overlap", "one_sided_lock"),
            _any_count,
            "any rank count",
        ),
        Algorithm(
            "randomized",
            "the largest K out of a few passes over the file",
            (),
            _any_count,
            "any rank count",
        ),
        Algorithm("local", "LAPACK's gesdd on one rank", (), lambda n: n == 1, "1 rank only"),
    )
}
STARTS = {
    "eigen": "from the eigenvectors of AᵀA where the matrix allows that, else as qr",
    "qr": "from a QR with pivoted columns and an LQ of its triangle",
}
INNERS = {
    "blocks": "each pair of column blocks at once, by matrix products",
    "rotations": "column by column, rotation by rotation",
}

DECOMPOSITIONS = {
    "rows": "each rank has whole rows",
    "columns": "each rank has whole columns",
    "grid": "each rank has a rectangle",
}
BOUNDARIES = {
    "zero": "outside is 0",
    "fixed": "edge cells keep their value",
    "periodic": "the other side",
    "reflect": "mirrored about the edge: d c b a | a b c d",
}
_MESSAGES = ("synchronous", "blocking", "nonblocking", "overlap")
# How a halo gets into messages, and the exchanges that can do it so.
HALOS = {
    "packed": tuple(EXCHANGES),
    "datatype": (*_MESSAGES, "persistent", "collective"),
    "elementwise": _MESSAGES,
}

ALGORITHMS = {"multiply": MULTIPLY, "transpose": TRANSPOSE, "stencil": STENCIL, "svd": SVD}


def exchanges_of(command: str) -> list[str]:
    """Every exchange that some algorithm of `command` can use, in the order of the table."""
    used = {name for algorithm in ALGORITHMS[command].values() for name in algorithm.exchanges}
    return [name for name in EXCHANGES if name in used]
