"""What is said of a product."""

from __future__ import annotations

from typing import ClassVar

from tilewise.launch.record import Record
from tilewise.operations.show import Lines, Show
from tilewise.planning.plan import Plan

SYMMETRIC = ("symmetric", "half computed, half copied")


class ShowMultiply(Show):
    """Words for people."""

    methods: ClassVar[dict[str, str]] = {
        "fast": "Freivalds' check",
        "freivalds": "Freivalds' check",
        "serial": "a plain product on one rank",
    }

    def result(self, record: Record) -> Lines:
        return [SYMMETRIC] if record.result.get("symmetric") is True else []

    def planned(self, plan: Plan) -> Lines:
        return [*super().planned(plan), *([SYMMETRIC] if plan.job.symmetric else [])]
