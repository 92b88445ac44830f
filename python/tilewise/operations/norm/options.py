"""What `tilewise norm` may be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tilewise.base.errors import UsageError
from tilewise.files.target import Target
from tilewise.machine.facts import Facts
from tilewise.operations.operation import OfOneInput
from tilewise.planning.choices import NO_PROOFS

if TYPE_CHECKING:
    from tilewise.launch.join import Join
    from tilewise.operations.operation import Inputs
    from tilewise.planning.plan import Plan


class Norm(OfOneInput, frozen=True, kw_only=True):
    """The Frobenius, 1, ∞ and max norms of a matrix: one pass over its file, and nothing is written.

    Examples:
        tilewise norm A.npy
            Prints the norms.
        tilewise norm A.npy --json -
            Prints the record, which has them too, as JSON.
    """

    writes: ClassVar[bool] = False
    limits: ClassVar[str] = "it only reads, and every rank works on its own, band after band"
    proofs: ClassVar[tuple[str, ...]] = NO_PROOFS

    output: str = ""

    def check(self) -> None:
        super().check()
        read, write = self.io
        if write is not None and read != write:
            raise UsageError(f"--io {read}:{write} makes no sense with norm: {self.limits}", f"--io {read}")

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        from tilewise.operations.norm.variants import plan_norm

        return plan_norm(inputs[0], self, facts, joined)
