"""What is said of a stack, out of what the ranks said of each of its slices."""

from __future__ import annotations

from typing import Any

import msgspec

from tilewise.base.units import plural
from tilewise.launch.events import Done, SliceDone, Verification
from tilewise.operations.show import slices_text
from tilewise.planning.plan import Each

_WARNINGS = 4  # different ones that are shown


def gathered(done: Done, each: Each) -> Done:
    """`done` with result, verification and warnings of the whole stack."""
    slices = done.slices
    result: dict[str, Any] = {"slices": len(slices)}
    differ: dict[str, list[Any]] = {}
    for key in dict.fromkeys(key for one in slices for key in one.result):
        values = [one.result.get(key) for one in slices]
        if all(value == values[0] for value in values):
            result[key] = values[0]
        else:
            differ[key] = values
    result["each"] = differ
    if failed := _failed(slices):
        result["failed_slices"] = failed
    return msgspec.structs.replace(
        done,
        result=result,
        slices=[],
        verification=_worst(slices),
        warnings=[*done.warnings, *_warnings(slices, each)],
    )


def _failed(slices: list[SliceDone]) -> list[int]:
    return [
        number
        for number, one in enumerate(slices)
        if one.verification is not None and not one.verification.passed
    ]


def _worst(slices: list[SliceDone]) -> Verification | None:
    """The verdict on all slices: that of the worst, of the mean share."""
    proofs = [one.verification for one in slices if one.verification is not None]
    if not proofs:
        return None
    share = sum(proof.share for proof in proofs) / len(slices)
    worst = max(proofs, key=lambda proof: (not proof.passed, _excess(proof)))
    return msgspec.structs.replace(worst, share=share)


def _excess(proof: Verification) -> float:
    """The error, in units of what it may be."""
    return (proof.error or 0.0) / (proof.tolerance or 1.0)


def _warnings(slices: list[SliceDone], each: Each) -> list[str]:
    """Each different one once, with the slices that it is about."""
    about: dict[str, list[int]] = {}
    for number, one in enumerate(slices):
        for warning in one.warnings:
            about.setdefault(warning, []).append(number)
    said = [f"{slices_text(numbers, each.extents)}: {warning}" for warning, numbers in about.items()]
    left = len(said) - _WARNINGS
    return [*said[:_WARNINGS], *([f"and {plural(left, 'warning')} of other slices"] if left > 0 else [])]
