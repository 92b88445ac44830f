"""`tilewise transpose A -o B`: rows become columns."""

from __future__ import annotations

from typing import Annotated

from tilewise.cli import jobs
from tilewise.cli.declare import HOW, WHAT, Parameter, order_of_storage
from tilewise.cli.options import JobOptions, check_order, choices_of
from tilewise.cli.parse import parse
from tilewise.launch.join import Join
from tilewise.plan.choices import one_of
from tilewise.plan.names import ROOT_WRITES


def request(
    a: Annotated[str, Parameter(name="A", group=WHAT, help="The matrix: a path, FILE:MEMBER, or random:…")],
    /,
    *,
    output: Annotated[
        str,
        Parameter(name=["--output", "-o"], group=WHAT, help="Where the transpose goes; its ending says how."),
    ],
    order: Annotated[str | None, order_of_storage()] = None,
    header: Annotated[
        bool, Parameter(name="--header", group=WHAT, help="Begin a text with the line: rows columns.")
    ] = False,
    root_write: Annotated[
        str | None,
        Parameter(
            name="--root-write",
            group=HOW,
            help=f"With gather, how rank 0 writes: {', '.join(ROOT_WRITES)}.",
        ),
    ] = None,
    options: Annotated[JobOptions, Parameter(name="*", group=HOW)] = JobOptions(),  # noqa: B008 - a frozen value
) -> jobs.Request:
    """Transpose a matrix that lies in a file, however large: memory is bounded by --memory."""
    from tilewise import files
    from tilewise.files.region import Region
    from tilewise.files.target import Target
    from tilewise.machine.facts import Facts
    from tilewise.plan.plan import Plan
    from tilewise.plan.transpose import Wanted, plan_transpose

    choices = choices_of(options, "transpose")
    check_order(order)
    wanted = Wanted(
        order=order, header=header, root_write=one_of("--root-write", root_write, list(ROOT_WRITES))
    )

    def plan(regions: list[Region], target: Target, facts: Facts, joined: Join | None) -> Plan:
        return plan_transpose(regions[0], target, wanted, choices, facts, joined)

    return jobs.Request(
        output=output, options=options, choices=choices, inspect=lambda: [files.inspect(a)], plan=plan
    )


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    return jobs.main("transpose", lambda: parse("transpose", request, words), joined)
