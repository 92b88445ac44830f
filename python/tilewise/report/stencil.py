"""Why sweeps that were to come to rest came to nothing."""

from __future__ import annotations

from collections.abc import Sequence

from tilewise.errors import VerificationError
from tilewise.launch.record import Record
from tilewise.units import plural


def diverged(record: Record, weights: Sequence[float]) -> VerificationError:
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
