"""Options of `tilewise multiply`, and its algorithms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from tilewise.base.declare import HOW, Flag
from tilewise.base.errors import UsageError
from tilewise.files.formats import MATRIX
from tilewise.files.region import Source
from tilewise.files.slices import NoStackError
from tilewise.files.target import Target
from tilewise.machine.facts import Facts
from tilewise.operations.operation import OfOneInput
from tilewise.planning.names import DESCRIBED_ONCE, EXCHANGES, KERNELS, Algorithm, any_count, table

if TYPE_CHECKING:
    from tilewise.launch.join import Join
    from tilewise.operations.operation import Inputs
    from tilewise.planning.plan import Plan

OVERFLOW = ("refuse", "wrap")
_PANELS = tuple(name for name in EXCHANGES if name not in (*DESCRIBED_ONCE, "one_sided_pscw"))
_SHIFTS = tuple(name for name in EXCHANGES if name not in ("collective", "one_sided_pscw"))
ALGORITHMS = table(
    Algorithm(
        "local",
        "computes the whole product on one rank, with all its threads",
        (),
        lambda n: n == 1,
        "1 rank only",
    ),
    Algorithm(
        "cannon",
        "shifts blocks of A along the rows of a square torus of ranks, blocks of B along its columns",
        _SHIFTS,
        lambda n: math.isqrt(n) ** 2 == n,
        "square rank counts (1, 4, 9, 16, …)",
    ),
    Algorithm(
        "summa",
        "broadcasts panels of A along the rows of the grid, panels of B along its columns",
        _PANELS,
        any_count,
        "any rank count",
    ),
    Algorithm(
        "replicated",
        "2.5-D: several layers of a grid share the sum over K and add their parts; it receives less data and "
        "needs more memory",
        _PANELS,
        lambda n: n >= 2,
        "2 ranks or more",
    ),
)


class Multiply(OfOneInput, frozen=True, kw_only=True):
    """Multiply two matrices from file to file. The product is verified before it is published.

    `overflow` says what becomes of integers beyond 64 bits, `tolerance` how large an error Strassen's product
    may have.

    Examples:
        tilewise multiply A.npy B.npy -o C.npy
            Let the plan choose ranks, threads and algorithm.
        tilewise multiply A.npy B.npy -o C.npy -n 4 --algorithm summa --exchange overlap
            Compute on four ranks while the next panels are in transit.
        tilewise multiply A.npy A.npy -o G.npy --transpose-a --json record.json
            Compute the transpose of A times A, and write the record of the run.
    """

    algorithms: ClassVar[dict[str, Algorithm]] = ALGORITHMS
    exchange_words: ClassVar[dict[str, str]] = {
        "overlap": "the next panel is in flight while the product is computed in slices",
        "collective": "Bcast",
        "shared": "a window in shared memory, without copies; within one node",
    }
    blind: ClassVar[bool] = True
    weighs: ClassVar[tuple[str, ...]] = ("ranks", "algorithm")
    keeps: ClassVar[bool] = True
    kernels: ClassVar[tuple[str, ...]] = KERNELS
    operands: ClassVar[tuple[str, ...]] = ("a", "b")

    a: Annotated[
        str,
        Flag("The left matrix: a path, or random:4096x4096:float64[:seed].", value=MATRIX, place=True),
    ]
    b: Annotated[str, Flag("The right matrix.", value=MATRIX, place=True)]
    transpose_a: Annotated[bool, Flag("Use the transpose of A.", common=True)] = False
    transpose_b: Annotated[bool, Flag("Use the transpose of B.", common=True)] = False
    overflow: Annotated[
        str, Flag("If an integer product may exceed 64 bits: refuse, or wrap modulo 2^64.", choices=OVERFLOW)
    ] = "refuse"
    tolerance: Annotated[
        float | None,
        Flag(
            "Allowed error of an element, relative to A's longest row times B's longest column. It "
            "permits Strassen's product if its error bound is smaller.",
            HOW,
            above=0,
            below=1,
            default="full precision",
        ),
    ] = None

    def inspect(self) -> Inputs:
        operands = ((self.a, self.transpose_a), (self.b, self.transpose_b))
        found = [self.input(name) for name, _ in operands]
        if self.each and not any(each.stack for each in found):
            raise UsageError(
                f"--each makes no sense: neither {self.a} nor {self.b} is a stack", "omit --each"
            )
        turns = (turned for _, turned in operands)
        return [
            msgspec.structs.replace(each, transposed=turned)
            for each, turned in zip(found, turns, strict=True)
        ]

    def input(self, name: str, planes: tuple[int, ...] = (1,)) -> Source:
        """A stack, or a single matrix, which is multiplied with every slice of the other operand."""
        try:
            return super().input(name, planes)
        except NoStackError:
            return msgspec.structs.replace(self, each=(), slices="auto").input(name, planes)

    def what_fits(self, refused: Plan, joined: Join | None) -> str:
        from tilewise.operations.multiply.plan import what_fits

        return what_fits(self, refused)

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        from tilewise.operations.multiply.plan import plan_multiply
        from tilewise.planning.task import Task

        return plan_multiply(Task(self, inputs, target, facts, joined))
