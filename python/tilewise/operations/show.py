"""Words about a job, by its plan before it and by its record afterwards; operations say what is their own.

`ShowStack` speaks of a job on every slice of a stack in the words of its operation.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from tilewise.base.units import listing, plural, shape_text
from tilewise.files.dtypes import ITEMSIZE
from tilewise.launch.record import Matrix, Record, RecordVariant
from tilewise.planning.plan import Plan

Lines = list[tuple[str, str]]  # a label, and words


def reads_and_writes(read: str, write: str) -> str:
    """`mapped in, positioned out`."""
    return f"{read} in, {write} out"


class MemoryTraffic(NamedTuple):
    """The least bytes that a job moved through memory.

    `copy_rate` is what copying of `copied` bytes reached there, in bytes a second; None where nobody tried.
    """

    bytes: float
    copied: float = 0.0
    copy_rate: float | None = None


class Show:
    """Words for people. `methods`: what a method of verification is called."""

    methods: ClassVar[dict[str, str]] = {}

    def method(self, record: Record) -> str:
        """How the result of `record` was verified; it was."""
        assert record.verification is not None
        return self.methods.get(record.verification.method, record.verification.method)

    def variant(self, variant: RecordVariant) -> list[str]:
        """Opening of the line that says how: the algorithm, and what belongs to it."""
        return [variant.algorithm]

    def io(self, variant: RecordVariant) -> str:
        """How files were read and written, in one word where that is the same."""
        read, _, write = variant.io.partition(":")
        return write if read == write else reads_and_writes(read, write)

    def result(self, record: Record) -> Lines:
        """Lines of its own for the closing table."""
        return []

    def where(self, record: Record) -> str:
        """Result and its place; empty where there is no file of it."""
        if not record.outputs:
            return ""
        output, beside = record.outputs[0], len(record.outputs) - 1
        colours = f" × {output.planes} planes" if output.planes > 1 else ""
        size = f"{shape_text(*output.shape)}{colours} {output.dtype}"
        return f"{output.path} ({size})" + (f" and {plural(beside, 'snapshot')} next to it" if beside else "")

    def rate(self, record: Record) -> str:
        """How fast it computed, in units of its own; empty where operations a second say it."""
        return ""

    def traffic(self, record: Record) -> MemoryTraffic:
        """Bytes that it moved through memory: every number of its matrices once."""
        return MemoryTraffic(float(sum(map(_bytes, [*record.inputs, *record.outputs]))))

    def not_converged(self, record: Record, plan: Plan) -> tuple[str, str]:
        """Why a result that did not converge was discarded, and what to try."""
        return "the result did not converge; it was discarded", ""

    def tolerated(self, plan: Plan) -> str:
        """Advice where the tolerance of `plan` may be why a proof failed; empty where it has none."""
        return ""

    def planned(self, plan: Plan) -> Lines:
        """How it would be done."""
        variant, job = plan.job.variant, plan.job
        layers = f", {variant.copies} copies" if variant.copies > 1 else ""
        rows = [
            ("algorithm", f"{variant.algorithm} on a {shape_text(*variant.grid)} grid{layers}"),
            ("exchange", variant.exchange),
            ("io", reads_and_writes(variant.read, variant.write)),
            ("verify", job.verify),
        ]
        return [*rows, *([("overflow", "wraps modulo 2^64")] if job.overflow == "wrap" else [])]


def _bytes(matrix: Matrix) -> int:
    return numbers_of(matrix) * ITEMSIZE.get(matrix.dtype, 8)


def numbers_of(matrix: Matrix) -> int:
    """How many numbers it holds, in all planes."""
    return math.prod(matrix.shape) * matrix.planes


def number(value: Any) -> float:
    """`value` out of a result that may be a stranger's; 0 for what is no finite number."""
    fits = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if fits else 0.0


_NAMED = 4  # slices that a sentence names


class ShowStack(Show):
    """Words for people, from those of the operation on one matrix."""

    def __init__(self, one: Show) -> None:
        self._one = one

    def method(self, record: Record) -> str:
        return f"{self._one.method(record)}, slice by slice"

    def variant(self, variant: RecordVariant) -> list[str]:
        return self._one.variant(variant)

    def io(self, variant: RecordVariant) -> str:
        return self._one.io(variant)

    def result(self, record: Record) -> Lines:
        """`1000 along axis 0; each rank did some of them`."""
        each = record.variant.each
        assert each is not None
        along = f"along {'axis' if len(each.axes) == 1 else 'axes'} {', '.join(map(str, each.axes))}"
        how = "each rank did some of them" if each.apart else "all ranks did one after another"
        return [("slices", f"{each.slices} {along}" + (f"; {how}" if record.variant.ranks > 1 else ""))]

    def where(self, record: Record) -> str:
        if len(record.outputs) != 1:
            folders = dict.fromkeys(os.path.dirname(output.path) for output in record.outputs)
            files = ", ".join(os.path.basename(output.path) for output in record.outputs)
            return "".join(f"{folder}/ ({files})" for folder in folders)
        output = record.outputs[0]
        return f"{output.path} ({'×'.join(map(str, output.shape))} {output.dtype})"

    def not_converged(self, record: Record, plan: Plan) -> tuple[str, str]:
        """Why a result was discarded of which some slices did not converge."""
        return f"{failed(record)} did not converge; the result was discarded", "a run with that slice alone"

    def tolerated(self, plan: Plan) -> str:
        return self._one.tolerated(plan)

    def planned(self, plan: Plan) -> Lines:
        each, stack = plan.each, plan.job.stack
        assert each is not None and stack is not None
        how = ", each rank slices of its own" if stack.apart else ""
        return [("slices", f"{each.count} along --each {each.said}{how}"), *self._one.planned(plan)]


def failed(record: Record) -> str:
    """`slice 17`, of those whose proof failed; empty where the record is not that of a stack."""
    numbers, each = record.result.get("failed_slices"), record.variant.each
    return slices_text(numbers, each.extents) if numbers and each is not None else ""


def slices_text(numbers: Sequence[int], extents: Sequence[int]) -> str:
    """`slice 17`, or `slices 3, 4, 5, 6 and 12 more`; with two axes `slice 1,4`."""
    shown = [_place(number, extents) for number in numbers[:_NAMED]]
    more = [f"{len(numbers) - _NAMED} more"] if len(numbers) > _NAMED else []
    return f"{'slice' if len(numbers) == 1 else 'slices'} {listing([*shown, *more])}"


def _place(number: int, extents: Sequence[int]) -> str:
    places: list[str] = []
    for extent in reversed(extents):
        number, place = divmod(number, extent)
        places.insert(0, str(place))
    return ",".join(places)
