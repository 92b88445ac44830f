"""`tilewise convert A -o B`: the same matrix in another format, type or order of storage."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tilewise.cli import jobs
from tilewise.cli.declare import HOW, WHAT, Parameter, order_of_storage
from tilewise.cli.options import JobOptions, check_order, choices_of
from tilewise.cli.parse import parse
from tilewise.errors import UsageError
from tilewise.launch.join import Join


def request(
    a: Annotated[str, Parameter(name="A", group=WHAT, help="The matrix: a path, FILE:MEMBER, or random:…")],
    b: Annotated[str | None, Parameter(name="B", group=WHAT, help="Where it goes, instead of -o B.")] = None,
    /,
    *,
    output: Annotated[
        str | None, Parameter(name=["--output", "-o"], group=WHAT, help="Where it goes; its ending says how.")
    ] = None,
    dtype: Annotated[
        str | None, Parameter(name="--dtype", group=WHAT, help="The type to convert to: float32, int16, …")
    ] = None,
    order: Annotated[str | None, order_of_storage()] = None,
    header: Annotated[
        bool, Parameter(name="--header", group=WHAT, help="Begin a text with the line: rows columns.")
    ] = False,
    options: Annotated[JobOptions, Parameter(name="*", group=HOW)] = JobOptions(),  # noqa: B008 - a frozen value
) -> jobs.Request:
    """Write a matrix in another format, type or order; the format follows from the name's ending."""
    from tilewise import files
    from tilewise.files.dtypes import is_integer, parse_dtype
    from tilewise.files.region import Region
    from tilewise.files.target import Target
    from tilewise.machine.facts import Facts
    from tilewise.plan.convert import Wanted, plan_convert
    from tilewise.plan.plan import Plan

    if (b is None) == (output is None):
        what = "got two outputs" if b is not None else "wants an output"
        raise UsageError(f"convert {what}", "tilewise convert A.txt -o A.npy")
    choices = choices_of(options)
    check_order(order)
    wanted = Wanted(
        dtype=parse_dtype(dtype, "--dtype") if dtype is not None else None, order=order, header=header
    )
    goal = output if output is not None else b
    assert goal is not None

    def plan(regions: list[Region], target: Target, facts: Facts, joined: Join | None) -> Plan:
        made = plan_convert(regions[0], target, wanted, choices, facts, joined)
        # The source as planned: of a text, wide integers are read as such.
        source = made.job.inputs[0]
        if is_integer(source.dtype) or not is_integer(made.dtype):
            return made
        cut = f"float→integer cuts fractions off: {source.name} is {source.dtype}, {goal} gets {made.dtype}"
        return msgspec.structs.replace(made, warnings=[cut, *made.warnings])

    return jobs.Request(
        output=goal, options=options, choices=choices, inspect=lambda: [files.inspect(a)], plan=plan
    )


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    return jobs.main("convert", lambda: parse("convert", request, words), joined)
