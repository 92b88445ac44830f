"""Options of `tilewise transpose`, and its algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from tilewise.base.declare import HOW, Flag
from tilewise.files.target import Target
from tilewise.machine.facts import Facts
from tilewise.operations.operation import HEADER, ORDER, OfOneInput
from tilewise.planning.names import EXCHANGES, Algorithm, any_count, table

if TYPE_CHECKING:
    from tilewise.launch.join import Join
    from tilewise.operations.operation import Inputs
    from tilewise.planning.plan import Plan

_PIECES = tuple(name for name in EXCHANGES if name != "persistent")
ALGORITHMS = table(
    Algorithm(
        "gather",
        "ranks read and transpose blocks; rank 0 collects all of them and writes alone",
        _PIECES,
        any_count,
        "any rank count",
    ),
    Algorithm(
        "swap",
        "ranks read and transpose blocks, exchange them, and each writes a block of the result",
        _PIECES,
        any_count,
        "any rank count",
    ),
    Algorithm(
        "reread",
        "each rank reads the part of the input whose transpose it writes; nothing is exchanged",
        (),
        any_count,
        "any rank count",
    ),
    Algorithm(
        "staged",
        "pieces stream through a bounded amount of memory; nothing is exchanged",
        (),
        any_count,
        "any rank count",
    ),
)
ROOT_WRITES = {
    "rows": "one call per row of each block",
    "view": "one file view per block",
    "whole": "ordered in memory, then written in one piece",
}


class Transpose(OfOneInput, frozen=True, kw_only=True):
    """Transpose a matrix from file to file, however large; --memory limits the memory.

    Examples:
        tilewise transpose A.npy -o AT.npy
            The plan chooses an algorithm by the sizes of matrix and memory.
        tilewise transpose A.npy -o AT.npy --memory 512MiB
            A matrix larger than memory: its tiles pass through at most 512 MiB.
    """

    algorithms: ClassVar[dict[str, Algorithm]] = ALGORITHMS
    exchange_words: ClassVar[dict[str, str]] = {
        "synchronous": "Ssend, in turns: in turn k rank r sends to r + k and receives from r − k",
        "blocking": "Send, in the same turns",
        "nonblocking": "Isend and Irecv all at once, then wait",
        "overlap": "each piece is sent as soon as it is transposed, while the next is transposed, and put in "
        "place when it arrives",
        "partitioned": "messages described once (`MPI_Psend_init`). Each piece leaves as soon as it is "
        "transposed (`MPI_Pready`); needs MPI 4",
        "collective": "Alltoallv",
        "one_sided_fence": "pieces stay in the windows of their ranks; Get between fences",
        "one_sided_lock": "Rget under a lock; each piece is used as soon as it is there",
        "shared": "pieces are read directly from the memory of other ranks; within one node",
    }
    blind: ClassVar[bool] = True
    keeps: ClassVar[bool] = True

    order: Annotated[str | None, ORDER] = None
    header: Annotated[bool, HEADER] = False
    root_write: Annotated[
        str | None,
        Flag(
            f"how rank 0 writes: {', '.join(ROOT_WRITES)}.",
            HOW,
            only=("gather",),
            choices=("auto", *ROOT_WRITES),
        ),
    ] = None
    tiles: Annotated[
        str,
        Flag(
            "staged: idle ranks take the next tile (queue), or each rank has its own tiles (fixed).",
            HOW,
            choices=("queue", "fixed"),
        ),
    ] = "queue"

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        from tilewise.operations.transpose.plan import plan_transpose
        from tilewise.planning.task import Task

        return plan_transpose(Task(self, inputs, target, facts, joined))
