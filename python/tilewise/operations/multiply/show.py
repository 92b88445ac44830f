"""Words about a product."""

from __future__ import annotations

from typing import ClassVar

from tilewise.base.units import plural, rate_text
from tilewise.launch.record import Record
from tilewise.operations.show import Lines, Show, number
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
        """How half of C was computed, or how often Strassen's product halved, its bound and its worth."""
        if record.result.get("symmetric") is True:
            return [SYMMETRIC]
        told = record.result.get("strassen")
        if not isinstance(told, dict):
            return []
        levels = int(number(told.get("levels")))
        if levels == 0:
            return [("strassen", "not used: on blocks of this size a plain product is faster")]
        words = [plural(levels, "level"), f"error at most {number(told.get('bound')):.1e} of the longest"]
        if (seconds := record.seconds.compute.max) > 0:
            rate = rate_text(number(told.get("plain_flops")) / seconds, "FLOP/s")
            words.append(f"as fast as a plain product at {rate}")
        return [("strassen", ", ".join(words))]

    def planned(self, plan: Plan) -> Lines:
        return [*super().planned(plan), *([SYMMETRIC] if plan.job.symmetric else [])]
