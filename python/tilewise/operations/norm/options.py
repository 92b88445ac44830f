"""What `tilewise norm` may be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tilewise.base.errors import UsageError
from tilewise.files.target import Target
from tilewise.machine.facts import Facts
from tilewise.operations.operation import OfOneInput

if TYPE_CHECKING:
    from tilewise.launch.join import Join
    from tilewise.operations.operation import Inputs
    from tilewise.planning.plan import Plan


class Norm(OfOneInput, frozen=True, kw_only=True):
    """The Frobenius, 1, ∞ and max norms of a matrix in one pass over its file; nothing is written.

    Examples:
        tilewise norm A.npy
            Prints the norms.
        tilewise norm A.npy --json -
            Prints the record, which has them too, as JSON.
    """

    writes: ClassVar[bool] = False

    output: str = ""

    def check(self) -> None:
        super().check()
        read, write = self.io
        cut = f"{self.grid[0]}x{self.grid[1]}" if self.grid else None
        for flag, value, unset in (
            ("--io", f"{read}:{write}", f"{read}:{read}"),
            ("--grid", cut, None),
            ("--remainder", self.remainder, "spread"),
            ("--sync", self.sync, False),
        ):
            if value != unset:
                said = flag if value is True else f"{flag} {value}"
                raise UsageError(f"{said} makes no sense with norm: it only reads, band after band")

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        from tilewise.operations.norm.variants import plan_norm

        return plan_norm(inputs[0], self, facts, joined)
