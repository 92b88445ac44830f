"""Generation of a matrix by rule; it is planned as a conversion whose input takes no reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from tilewise.base.declare import Flag, Value
from tilewise.base.units import parse_shape, shape_text
from tilewise.files.dtypes import ALL, parse_dtype
from tilewise.files.generated import KINDS, generated
from tilewise.files.target import Target
from tilewise.launch.record import RecordVariant
from tilewise.machine.facts import Facts
from tilewise.operations.convert import cost_of, plan_convert
from tilewise.operations.operation import BAND_AFTER_BAND, HEADER, ORDER, Operation
from tilewise.operations.show import Lines, Show
from tilewise.planning.choices import NO_PROOFS, SEED_MAX
from tilewise.planning.plan import Plan
from tilewise.planning.task import Task

if TYPE_CHECKING:
    from tilewise.launch.join import Join
    from tilewise.operations.operation import Inputs


__all__ = ["Generate", "ShowGenerate", "cost_of"]


class Generate(Operation, frozen=True, kw_only=True):
    """Generate a matrix. Every rank generates its own block; the result is the same on any number of ranks.

    Examples:
        tilewise generate -o A.npy --shape 4096x4096
            Random numbers from 0 to 1.
        tilewise generate -o A.h5:/noise --shape 1000x20 --dtype float32 --kind normal --seed 7
            Normally distributed numbers in a dataset of an HDF5 file.
    """

    limits: ClassVar[str] = BAND_AFTER_BAND
    proofs: ClassVar[tuple[str, ...]] = NO_PROOFS

    shape: Annotated[
        tuple[int, int],
        Flag("Shape: ROWSxCOLUMNS.", value=Value("MxN"), parse=parse_shape, common=True),
    ]
    dtype: Annotated[
        str,
        Flag(
            "Data type: float32, int32, …", value=Value("TYPE"), choices=ALL, parse=parse_dtype, common=True
        ),
    ] = "float64"
    kind: Annotated[str, Flag("Contents of the matrix.", choices=tuple(KINDS), common=True)] = "random"
    order: Annotated[str | None, ORDER] = None
    header: Annotated[bool, HEADER] = False
    seed: Annotated[int, Flag("Seed of the random numbers.", least=0, most=SEED_MAX)] = 0

    def inspect(self) -> Inputs:
        rows, columns = self.shape
        name = f"{self.kind}:{rows}x{columns}:{self.dtype}:{self.seed}"
        return [generated(self.kind, self.shape, self.dtype, self.seed, name)]

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        return plan_convert(Task(self, inputs, target, facts, joined))


class ShowGenerate(Show):
    """Words for people: nothing is read."""

    def variant(self, variant: RecordVariant) -> list[str]:
        return []

    def io(self, variant: RecordVariant) -> str:
        return variant.io.partition(":")[2]

    def planned(self, plan: Plan) -> Lines:
        return [("grid", shape_text(*plan.job.variant.grid)), ("io", plan.job.variant.write)]
