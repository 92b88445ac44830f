"""`tilewise svd A -o DIR`: singular values and vectors of a matrix file, as files of one folder."""

from __future__ import annotations

from typing import Annotated

from tilewise.cli import jobs
from tilewise.cli.declare import HOW, WHAT, Parameter
from tilewise.cli.options import JobOptions, choices_of
from tilewise.cli.parse import parse
from tilewise.launch.join import Join
from tilewise.plan.choices import one_of
from tilewise.plan.names import INNERS, STARTS
from tilewise.plan.svd_wanted import OVERSAMPLE, SWEEPS


def _known(table: dict[str, str]) -> str:
    return "; ".join(f"{name}: {text}" for name, text in table.items())


def request(
    a: Annotated[str, Parameter(name="A", group=WHAT, help="The matrix: a path, FILE:MEMBER, or random:…")],
    /,
    *,
    output: Annotated[
        str,
        Parameter(
            name=["--output", "-o"], group=WHAT, help="The folder that U.npy, s.npy and Vt.npy are made in."
        ),
    ],
    components: Annotated[
        int | None,
        Parameter(name="--components", group=WHAT, help="Only the K largest singular values; all."),
    ] = None,
    energy: Annotated[
        float | None,
        Parameter(
            name="--energy",
            group=WHAT,
            help="Only the fewest with this share of A's squares, such as 0.99; all.",
        ),
    ] = None,
    values_only: Annotated[
        bool, Parameter(name="--values-only", group=WHAT, help="Only s.npy, no vectors.")
    ] = False,
    scaled: Annotated[
        bool, Parameter(name="--scaled", group=WHAT, help="Also US.npy: U with each column times its value.")
    ] = False,
    max_sweeps: Annotated[
        int | None,
        Parameter(
            name="--max-sweeps", group=HOW, help=f"jacobi: sweeps after which it has failed; {SWEEPS}."
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        Parameter(
            name="--tolerance",
            group=HOW,
            help="jacobi: cosine below which columns are orthogonal; rounding. randomized: part of "
            "itself that each singular value may be off; 1e-6, float32: 1e-4.",
        ),
    ] = None,
    block_columns: Annotated[
        int | None,
        Parameter(
            name="--block-columns",
            group=HOW,
            help="jacobi: columns that travel together; two blocks a rank, more where memory is short.",
        ),
    ] = None,
    inner: Annotated[
        str | None, Parameter(name="--inner", group=HOW, help=f"jacobi: auto; {_known(INNERS)}.")
    ] = None,
    start: Annotated[
        str | None, Parameter(name="--start", group=HOW, help=f"jacobi: auto; {_known(STARTS)}.")
    ] = None,
    power: Annotated[
        int | None,
        Parameter(
            name="--power",
            group=HOW,
            help="randomized: just so many iterations, exact or not; as many as --tolerance takes.",
        ),
    ] = None,
    oversample: Annotated[
        int | None,
        Parameter(
            name="--oversample", group=HOW, help=f"randomized: vectors of a block beyond K; {OVERSAMPLE}."
        ),
    ] = None,
    seed: Annotated[
        int | None, Parameter(name="--seed", group=HOW, help="randomized: where its random numbers begin; 0.")
    ] = None,
    options: Annotated[JobOptions, Parameter(name="*", group=HOW)] = JobOptions(),  # noqa: B008 - a frozen value
) -> jobs.Request:
    """Singular values and vectors: A = U · diag(s) · Vt, each factor a file in a new folder."""
    from tilewise import files
    from tilewise.files.region import Region
    from tilewise.files.target import Target
    from tilewise.machine.facts import Facts
    from tilewise.plan.plan import Plan
    from tilewise.plan.svd import plan_svd
    from tilewise.plan.svd_wanted import Wanted

    choices = choices_of(options, "svd")
    wanted = Wanted(
        components=components,
        energy=energy,
        values_only=values_only,
        scaled=scaled,
        max_sweeps=max_sweeps,
        tolerance=tolerance,
        block_columns=block_columns,
        inner=one_of("--inner", inner, list(INNERS)),
        start=one_of("--start", start, list(STARTS)),
        power=power,
        oversample=oversample,
        seed=seed,
    )
    wanted.check(choices)

    def inspect() -> list[Region]:
        return [files.inspect(a)]

    def plan(regions: list[Region], target: Target, facts: Facts, joined: Join | None) -> Plan:
        return plan_svd(regions[0], target, wanted, choices, facts, joined)

    return jobs.Request(
        output=output, options=options, choices=choices, inspect=inspect, plan=plan, several=True
    )


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    return jobs.main("svd", lambda: parse("svd", request, words), joined)
