"""`tilewise stencil A -o B --steps N`: every number becomes a weighted sum of its neighbours, N times."""

from __future__ import annotations

from typing import Annotated

from tilewise.cli import jobs
from tilewise.cli.declare import HOW, WHAT, Parameter, order_of_storage
from tilewise.cli.options import JobOptions, check_order, choices_of
from tilewise.cli.parse import parse
from tilewise.errors import UsageError
from tilewise.launch.join import Join
from tilewise.plan.choices import one_of
from tilewise.plan.names import BOUNDARIES, DECOMPOSITIONS, HALOS


def request(
    a: Annotated[str, Parameter(name="A", group=WHAT, help="The matrix: a path, FILE:MEMBER, or random:…")],
    /,
    *,
    output: Annotated[
        str,
        Parameter(
            name=["--output", "-o"], group=WHAT, help="Where the last state goes; its ending says how."
        ),
    ],
    steps: Annotated[int, Parameter(name="--steps", group=WHAT, help="Sweeps over the whole matrix.")],
    weights: Annotated[
        str,
        Parameter(
            name="--weights",
            group=WHAT,
            help="star5 (0.6, each neighbour 0.1), star5:CENTRE,NEIGHBOUR, star9, box3, or a square matrix "
            "file with an odd side up to 9.",
        ),
    ] = "star5",
    boundary: Annotated[
        str,
        Parameter(
            name="--boundary",
            group=WHAT,
            help=f"What lies outside: {'; '.join(f'{name}: {text}' for name, text in BOUNDARIES.items())}.",
        ),
    ] = "zero",
    until_change: Annotated[
        float | None,
        Parameter(
            name="--until-change",
            group=WHAT,
            help="End when no number changes by X or more in a sweep; exit code 3 if one is NaN or infinite.",
        ),
    ] = None,
    check_every: Annotated[
        int | None,
        Parameter(name="--check-every", group=WHAT, help="Sweeps between two looks at the change; 16."),
    ] = None,
    snapshot_every: Annotated[
        int | None,
        Parameter(
            name="--snapshot-every",
            group=WHAT,
            help="Also keep the state behind every N sweeps, as B-000100.npy beside B.npy.",
        ),
    ] = None,
    order: Annotated[str | None, order_of_storage()] = None,
    header: Annotated[
        bool, Parameter(name="--header", group=WHAT, help="Begin a text with the line: rows columns.")
    ] = False,
    decomposition: Annotated[
        str | None,
        Parameter(
            name="--decomposition",
            group=HOW,
            help=f"auto; {'; '.join(f'{name}: {text}' for name, text in DECOMPOSITIONS.items())}.",
        ),
    ] = None,
    depth: Annotated[
        int | None,
        Parameter(name="--depth", group=HOW, help="Sweeps for each exchange, and for each pass over memory."),
    ] = None,
    halo: Annotated[
        str | None,
        Parameter(
            name="--halo",
            group=HOW,
            help="packed: copied into one message; datatype: MPI does that; elementwise: a message a number.",
        ),
    ] = None,
    options: Annotated[JobOptions, Parameter(name="*", group=HOW)] = JobOptions(),  # noqa: B008 - a frozen value
) -> jobs.Request:
    """Smooth, diffuse or filter a matrix, or each colour of a picture, by sweeps of weighted sums."""
    from tilewise import files
    from tilewise.files.region import Region
    from tilewise.files.target import Target
    from tilewise.machine.facts import Facts
    from tilewise.plan.plan import Plan
    from tilewise.plan.stencil import Wanted, plan_stencil
    from tilewise.plan.weights import parse_weights

    choices = choices_of(options, "stencil")
    check_order(order)
    if boundary not in BOUNDARIES:
        raise UsageError(f"--boundary {boundary!r} is unknown; known are {', '.join(BOUNDARIES)}")
    wanted = Wanted(
        steps=steps,
        weights=parse_weights(weights),
        boundary=boundary,
        decomposition=one_of("--decomposition", decomposition, list(DECOMPOSITIONS)),
        depth=depth,
        halo=one_of("--halo", halo, list(HALOS)),
        snapshot_every=snapshot_every,
        until_change=until_change,
        check_every=check_every,
        order=order,
        header=header,
    )
    wanted.check()

    def inspect() -> list[Region]:
        return [files.inspect(a, planes=files.written_planes(output))]

    def plan(regions: list[Region], target: Target, facts: Facts, joined: Join | None) -> Plan:
        return plan_stencil(regions[0], target, wanted, choices, facts, joined)

    return jobs.Request(
        output=output, options=options, choices=choices, inspect=inspect, plan=plan, colours=True
    )


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    return jobs.main("stencil", lambda: parse("stencil", request, words), joined)
