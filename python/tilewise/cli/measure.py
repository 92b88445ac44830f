"""`tilewise measure`: how fast messages, files, memory and arithmetic are here, and what changed since."""

from __future__ import annotations

import sys
from typing import Annotated

from tilewise.base.declare import JSON, SHOW, Flag, Flags
from tilewise.base.errors import UsageError
from tilewise.cli.parse import parse
from tilewise.lab.measurement.request import MeasureRequest
from tilewise.launch.join import Join


class CompareFlags(Flags, frozen=True, kw_only=True):
    """Compare two measurements. A statistical test calls each figure faster, slower or not distinguishable.

    Examples:
        tilewise measure compare before.json after.json
            Two files that measure --json has written.
    """

    before: Annotated[str, Flag("A measurement that measure --json FILE wrote.", value=JSON, place=True)]
    after: Annotated[str, Flag("A later one, or one of another machine.", value=JSON, place=True)]
    json: Annotated[
        str | None, Flag("File for every line; - for standard output.", SHOW, value=JSON, stream=True)
    ] = None
    verbose: Annotated[bool, Flag("Print every line.", SHOW, short="-v")] = False


def main(words: list[str], joined: Join | None) -> int:
    """Run the command; return its exit code."""
    if words[:1] == ["compare"]:
        flags = parse("measure compare", CompareFlags, words[1:])
        if flags is None:
            return 0
        from tilewise.cli import measure_show

        return measure_show.compare(flags.before, flags.after, flags.json, flags.verbose)
    request = parse("measure", MeasureRequest, words)
    if request is None:
        return 0
    if request.schema:
        from tilewise.lab.measurement.stored import schema

        sys.stdout.write(schema().decode())
        return 0
    if joined is not None:
        raise UsageError(
            "measure starts its own ranks and cannot run under mpiexec or srun",
            "tilewise measure without mpiexec or srun; --hosts FILE for several nodes",
        )
    from tilewise.cli import measure_show

    return measure_show.run(request)
