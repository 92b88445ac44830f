"""Plans of decompositions on machines that are made up."""

from __future__ import annotations

from typing import Any

from machines import GIB, facts
from tilewise.files.region import Source
from tilewise.operations.svd import variants as planning
from tilewise.operations.svd.options import Svd
from tilewise.planning.plan import Plan


def planned(
    shape: tuple[int, int] = (3000, 2000),
    dtype: str = "float64",
    cores: int = 8,
    available: int = 64 * GIB,
    **options: Any,
) -> Plan:
    source = Source(
        path="",
        name="A",
        rows=shape[0],
        columns=shape[1],
        dtype=dtype,
        generator="random",
        format="generated",
    )
    told = Svd(a="A", output="svd", **options)
    told.check()
    machine = facts(cores=cores, cpus=cores, memory_available=available)
    plan = planning.plan_svd(source, told, machine)
    return plan.required(lambda: told.what_fits(plan, None))
