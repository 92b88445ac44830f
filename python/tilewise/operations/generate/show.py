"""What is said of a matrix that was made by rule."""

from __future__ import annotations

from tilewise.base.units import shape_text
from tilewise.launch.record import RecordVariant
from tilewise.operations.show import Lines, Show
from tilewise.planning.plan import Plan


class ShowGenerate(Show):
    """Words for people: nothing is read."""

    def variant(self, variant: RecordVariant) -> list[str]:
        return []

    def io(self, variant: RecordVariant) -> str:
        return variant.io.partition(":")[2]

    def planned(self, plan: Plan) -> Lines:
        return [("grid", shape_text(*plan.job.variant.grid)), ("io", plan.job.variant.write)]
