"""The verdict on a result that failed its proof: what went wrong, and what to try."""

from __future__ import annotations

from tilewise.base.errors import VerificationError
from tilewise.launch.record import Record
from tilewise.operations import show_of
from tilewise.planning.plan import Plan


def failure(record: Record, plan: Plan) -> VerificationError | None:
    """What a job of `plan` fails with; None where its result was proved, or nobody asked for a proof."""
    proof, show = record.verification, show_of(record.command, record.variant.each)
    if proof is None or proof.passed:
        return None
    if proof.method == "convergence":
        return VerificationError(*show.not_converged(record, plan))
    numbers = ""
    if proof.error is not None and proof.tolerance is not None:
        numbers = f": error {proof.error:.2e}, allowed {proof.tolerance:.2e}"
    which = "the result"
    if record.variant.each is not None:
        from tilewise.operations.show import failed

        which = f"{failed(record)} of the result"
    return VerificationError(
        f"{which} failed its {proof.method} verification{numbers}; it was discarded",
        show.tolerated(plan) or "--verify serial to be sure, and tilewise doctor",
    )
