"""A plan as programs read it: what would be done, in a record's words, what it needs, and why."""

from __future__ import annotations

import msgspec

from tilewise.engine.job_output import JobOutput
from tilewise.engine.record import record_variant
from tilewise.engine.request import Request
from tilewise.launch.join import Join
from tilewise.launch.record import RecordVariant
from tilewise.machine.terms import Machine
from tilewise.operations.candidates import candidates


class PlannedVariant(msgspec.Struct, frozen=True):
    """One way to do the job. `memory_bytes`: on the node that needs most. `predicted_seconds`: see records.

    `reason`: why it is chosen, what its flags led to, or why there is no room for it.
    """

    variant: RecordVariant
    memory_bytes: int
    fits: bool
    chosen: bool
    reason: str
    predicted_seconds: dict[str, float]


class Planned(msgspec.Struct, frozen=True):
    """The answer of `tilewise plan --json`: `outputs` are paths, `fixed` the flags that were given."""

    tilewise: str
    command: str
    outputs: list[str]
    shape: tuple[int, ...]
    dtype: str
    variants: list[PlannedVariant]
    chosen_by: str
    fixed: list[str]
    reasons: list[str]
    warnings: list[str]


def planned_of(
    output: JobOutput, request: Request, joined: Join | None = None, machine: Machine | None = None
) -> Planned:
    """The plan of a prepared `request`, and every other way to do it, on `machine` or where it runs."""
    from tilewise import __version__

    plan, operation = output.plan, request.operation
    ways = candidates(plan, operation, output.target, joined, machine)
    return Planned(
        tilewise=__version__,
        command=plan.job.command,
        outputs=output.paths(),
        shape=plan.each.shape(*plan.shape) if plan.each else (plan.shape[0] // plan.planes, plan.shape[1]),
        dtype=plan.dtype,
        variants=[
            PlannedVariant(
                variant=record_variant(each.job.variant, each.job.stack, plan.each, plan.job.hints),
                memory_bytes=each.need.node,
                fits=each.refusal is None,
                chosen=each is plan,
                reason=each.refusal.message if each.refusal else "; ".join(each.reasons),
                predicted_seconds=foreseen.as_dict(),
            )
            for each, foreseen in ways
        ],
        chosen_by=plan.chosen_by,
        fixed=plan.fixed,
        reasons=plan.reasons,
        warnings=plan.warnings,
    )
