"""`tilewise generate -o A --shape MxN`: a matrix made by rule, the same on any number of ranks."""

from __future__ import annotations

from typing import Annotated

from tilewise.cli import jobs
from tilewise.cli.declare import HOW, WHAT, Parameter, order_of_storage
from tilewise.cli.options import JobOptions, check_order, choices_of
from tilewise.cli.parse import parse
from tilewise.errors import UsageError
from tilewise.files.generated import KINDS, generated
from tilewise.launch.join import Join
from tilewise.units import parse_shape


def request(
    *,
    output: Annotated[str, Parameter(name=["--output", "-o"], group=WHAT, help="Where the matrix goes.")],
    shape: Annotated[str, Parameter(name="--shape", group=WHAT, help="MxN: rows and columns.")],
    dtype: Annotated[
        str, Parameter(name="--dtype", group=WHAT, help="float64 (if not said), float32, int32, …")
    ] = "float64",
    kind: Annotated[str, Parameter(name="--kind", group=WHAT, help=f"{', '.join(KINDS)}.")] = "random",
    order: Annotated[str | None, order_of_storage()] = None,
    seed: Annotated[int, Parameter(name="--seed", group=WHAT, help="Another seed makes other numbers.")] = 0,
    options: Annotated[JobOptions, Parameter(name="*", group=HOW)] = JobOptions(),  # noqa: B008 - a frozen value
) -> jobs.Request:
    """Make a matrix; every rank makes its own block, and the numbers do not depend on how many there are."""
    from tilewise.files.dtypes import parse_dtype
    from tilewise.files.region import Region
    from tilewise.files.target import Target
    from tilewise.machine.facts import Facts
    from tilewise.plan.convert import Wanted, plan_convert
    from tilewise.plan.plan import Plan

    choices = choices_of(options)
    check_order(order)
    if not 0 <= seed < 2**63:
        raise UsageError(f"--seed {seed} makes no sense; it must be a whole number from 0 to 2^63-1")
    extents = parse_shape(shape, "--shape")
    region = generated(kind, extents, parse_dtype(dtype, "--dtype"), seed, f"{kind}:{shape}:{dtype}:{seed}")

    def plan(regions: list[Region], target: Target, facts: Facts, joined: Join | None) -> Plan:
        return plan_convert(regions[0], target, Wanted(order=order), choices, facts, joined, "generate")

    return jobs.Request(output=output, options=options, choices=choices, inspect=lambda: [region], plan=plan)


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    return jobs.main("generate", lambda: parse("generate", request, words), joined)
