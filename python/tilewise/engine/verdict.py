"""The verdict on a result that failed its proof: what went wrong, and what to try."""

from __future__ import annotations

from collections.abc import Sequence

from tilewise.base.errors import VerificationError
from tilewise.base.units import plural
from tilewise.launch.record import Record
from tilewise.planning.plan import Plan

_LOOSE = 1e-12  # a tolerance of cosines above which a proof may find vectors that are not orthogonal


def failure(record: Record, plan: Plan) -> VerificationError | None:
    """What a job of `plan` fails with; None where its result was proved, or nobody asked for a proof."""
    proof = record.verification
    if proof is None or proof.passed:
        return None
    if proof.method == "convergence":
        stencil = plan.job.stencil
        return _not_converged(record) if stencil is None else _diverged(record, stencil.weights)
    numbers = ""
    if proof.error is not None and proof.tolerance is not None:
        numbers = f": error {proof.error:.2e}, allowed {proof.tolerance:.2e}"
    return VerificationError(
        f"the result failed its {proof.method} verification{numbers}; it was thrown away",
        _loose(plan) or "--verify serial to be sure, and tilewise doctor",
    )


def _loose(plan: Plan) -> str:
    """What to try where the tolerance that was asked for may be the reason, else an empty string."""
    tolerance = plan.job.svd.tolerance if plan.job.svd is not None else 0.0
    if tolerance <= _LOOSE or plan.job.variant.algorithm == "randomized":
        return ""
    return f"no --tolerance: {tolerance:g} leaves columns with cosines as large as that to each other"


def _diverged(record: Record, weights: Sequence[float]) -> VerificationError:
    """Why sweeps that were to come to rest were given up and nothing was kept."""
    result = record.result
    sweep, lost = int(result.get("sweeps") or 0), int(result.get("non_finite") or 0)
    given, growth = int(result.get("input_non_finite") or 0), sum(map(abs, weights))
    if given:
        why = f"{plural(given, 'number')} of {record.inputs[0].path} were so from the start, and spread"
        advice = "give the input finite numbers in their place"
    elif growth > 1:
        why = f"the weights' magnitudes add up to {growth:.6g}, and over 1 sweeps may grow"
        advice = f"divide the weights by {growth:.6g}"
    else:
        why, advice = "the input's own numbers are next to the largest that there are", "scale the input down"
    return VerificationError(
        f"the sweeps do not come to rest: after sweep {sweep}, {plural(lost, 'number')} of the result were "
        f"NaN or infinite ({why}); the result was thrown away",
        f"{advice}; without --until-change all --steps are done, and the result is kept",
    )


def _not_converged(record: Record) -> VerificationError:
    """Why a decomposition that ran out of sweeps or readings was thrown away."""
    result, proof = record.result, record.verification
    if record.variant.algorithm == "randomized":
        reads, off = int(result.get("reads") or 0), float(result.get("sigma_error") or 0.0)
        looser = f"--tolerance {2 * off:.0e}, or " if 0 < off < 0.4 else ""
        return VerificationError(
            f"after {plural(reads, 'reading')} singular values may be off by {off:.1e} of "
            f"themselves, allowed {result.get('tolerance'):.1e}; the result was thrown away",
            f"{looser}--algorithm jacobi, or --no-verify to keep it as it is",
        )
    done = int(result.get("sweeps") or 0)
    numbers = ""
    if proof is not None and proof.error is not None and proof.tolerance is not None:
        numbers = f": off is {proof.error:.2e}, allowed {proof.tolerance:.2e}"
    return VerificationError(
        f"the columns are not orthogonal after {plural(done, 'sweep')}{numbers}; the result was thrown away",
        f"--max-sweeps {max(30, 2 * done)}, or --no-verify to keep it as it is",
    )
