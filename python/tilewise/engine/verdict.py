"""The verdict on a result that failed its proof: what went wrong, and what to try."""

from __future__ import annotations

from tilewise.base.errors import VerificationError
from tilewise.launch.record import Record
from tilewise.operations import show_of
from tilewise.planning.plan import Plan


def failure(record: Record, plan: Plan) -> VerificationError | None:
    """What a job of `plan` fails with; None where its result was proved, or nobody asked for a proof."""
    proof, show = record.verification, show_of(record.command)
    if proof is None or proof.passed:
        return None
    if proof.method == "convergence":
        return VerificationError(*show.not_converged(record, plan))
    numbers = ""
    if proof.error is not None and proof.tolerance is not None:
        numbers = f": error {proof.error:.2e}, allowed {proof.tolerance:.2e}"
    return VerificationError(
        f"the result failed its {proof.method} verification{numbers}; it was discarded",
        show.tolerated(plan) or "--verify serial to be sure, and tilewise doctor",
    )
