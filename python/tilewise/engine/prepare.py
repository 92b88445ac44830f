"""Looks at the inputs and outputs of a request and plans it: what is refused, is refused here."""

from __future__ import annotations

from typing import Any

import msgspec

from tilewise.engine import side_files
from tilewise.engine.job_output import JobOutput, find_place, output_of
from tilewise.engine.request import Request
from tilewise.files.region import Source
from tilewise.files.target import Target, written_warnings
from tilewise.launch.join import Join
from tilewise.machine.facts import of_ranks
from tilewise.planning.plan import Plan


def prepare(request: Request, joined: Join | None = None) -> JobOutput[Any]:
    """The planned result of `request`; raises UsageError for whatever cannot be. Changes nothing.

    `joined` tells of ranks that exist already.
    """
    operation = request.operation
    inputs = operation.inspect()
    target = find_place(operation)
    named = [*([target.path] if target else []), *(region.path for region in inputs)]
    side_files.check("--json", request.record, named)
    side_files.check("--trace", request.trace, [*named, request.record or ""])
    planned = operation.plan(inputs, target, of_ranks(), joined)
    plan = _with_notes(planned.required(lambda: operation.what_fits(planned, joined)), target)
    output = output_of(operation, target, plan)
    for flag, path in (("--json", request.record), ("--trace", request.trace)):
        side_files.check(flag, path, output.paths(), request.force)
    # Last, so that nobody removes an old output for a request that makes no sense anyway.
    output.check(request.force)
    return output


def _with_notes(plan: Plan, target: Target | None) -> Plan:
    """`plan` with what there is to say of its files, as reasons and as warnings."""
    inputs = [source for source in plan.job.inputs if isinstance(source, Source)]
    notes = [f"{source.name}: {note}" for source in inputs for note in source.notes]
    warnings = [f"{source.name}: {warning}" for source in inputs for warning in source.warnings]
    if target is not None and not plan.pieces:
        said = written_warnings(target, plan.shape, plan.dtype, plan.order)
        warnings += [f"{target.name}: {warning}" for warning in said]
    return msgspec.structs.replace(
        plan, reasons=[*notes, *plan.reasons], warnings=[*warnings, *plan.warnings]
    )
