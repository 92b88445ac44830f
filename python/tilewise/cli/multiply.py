"""`tilewise multiply A B -o C`: the product of two matrix files."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tilewise.cli import jobs
from tilewise.cli.declare import HOW, WHAT, Parameter
from tilewise.cli.options import JobOptions, choices_of
from tilewise.cli.parse import parse
from tilewise.errors import UsageError
from tilewise.launch.join import Join
from tilewise.plan.names import OVERFLOW


def request(
    a: Annotated[
        str,
        Parameter(name="A", group=WHAT, help="The left matrix: a path, or random:4096x4096:float64[:seed]."),
    ],
    b: Annotated[str, Parameter(name="B", group=WHAT, help="The right matrix.")],
    /,
    *,
    output: Annotated[str, Parameter(name=["--output", "-o"], group=WHAT, help="Where the product goes.")],
    transpose_a: Annotated[
        bool, Parameter(name="--transpose-a", group=WHAT, help="Take the transpose of A.")
    ] = False,
    transpose_b: Annotated[
        bool, Parameter(name="--transpose-b", group=WHAT, help="Take the transpose of B.")
    ] = False,
    overflow: Annotated[
        str,
        Parameter(
            name="--overflow",
            group=WHAT,
            help="Integers that could leave 64 bits: refuse, or wrap modulo 2^64.",
        ),
    ] = "refuse",
    options: Annotated[JobOptions, Parameter(name="*", group=HOW)] = JobOptions(),  # noqa: B008 - a frozen value
) -> jobs.Request:
    """Multiply two matrices that lie in files; the product is verified before it gets its name."""
    from tilewise import files
    from tilewise.files.region import Region
    from tilewise.files.target import Target
    from tilewise.machine.facts import Facts
    from tilewise.plan.multiply import plan_multiply
    from tilewise.plan.plan import Plan

    choices = choices_of(options)
    if overflow not in OVERFLOW:
        raise UsageError(f"--overflow {overflow!r} is unknown; known are {', '.join(OVERFLOW)}")

    def inspect() -> list[Region]:
        regions = [files.inspect(a), files.inspect(b)]
        turned = (transpose_a, transpose_b)
        return [msgspec.structs.replace(r, transposed=t) for r, t in zip(regions, turned, strict=True)]

    def plan(regions: list[Region], target: Target, facts: Facts, joined: Join | None) -> Plan:
        return plan_multiply(regions[0], regions[1], choices, facts, joined, target, overflow)

    return jobs.Request(output=output, options=options, choices=choices, inspect=inspect, plan=plan)


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    return jobs.main("multiply", lambda: parse("multiply", request, words), joined)
