"""What is said of a conversion."""

from __future__ import annotations

from typing import ClassVar

from tilewise.base.units import shape_text
from tilewise.launch.record import RecordVariant
from tilewise.operations.show import Lines, Show, reads_and_writes
from tilewise.planning.plan import Plan


class ShowConvert(Show):
    """Words for people."""

    methods: ClassVar[dict[str, str]] = {"read_back": "checksums of the file, read back"}

    def variant(self, variant: RecordVariant) -> list[str]:
        return []

    def planned(self, plan: Plan) -> Lines:
        variant = plan.job.variant
        return [("grid", shape_text(*variant.grid)), ("io", reads_and_writes(variant.read, variant.write))]
