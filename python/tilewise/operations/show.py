"""What is said of a job, by its plan before it and by its record afterwards; rooms say what is their own."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

from tilewise.base.units import plural, shape_text
from tilewise.files.dtypes import ITEMSIZE
from tilewise.launch.record import Matrix, Record, RecordVariant
from tilewise.planning.plan import Plan

Lines = list[tuple[str, str]]  # a label, and words


def reads_and_writes(read: str, write: str) -> str:
    """`mapped in, positioned out`."""
    return f"{read} in, {write} out"


class Traffic(NamedTuple):
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
        """What opens the line that says how: the algorithm, and what belongs to it."""
        return [variant.algorithm]

    def io(self, variant: RecordVariant) -> str:
        """How files were read and written, in one word where that is the same."""
        read, _, write = variant.io.partition(":")
        return write if read == write else reads_and_writes(read, write)

    def result(self, record: Record) -> Lines:
        """Lines of its own for the closing table."""
        return []

    def where(self, record: Record) -> str:
        """What the result is, and where it lies; empty where there is no file of it."""
        if not record.outputs:
            return ""
        output, beside = record.outputs[0], len(record.outputs) - 1
        colours = f" × {output.planes} planes" if output.planes > 1 else ""
        size = f"{shape_text(*output.shape)}{colours} {output.dtype}"
        return f"{output.path} ({size})" + (f" and {plural(beside, 'snapshot')} next to it" if beside else "")

    def rate(self, record: Record) -> str:
        """How fast it computed, in units of its own; empty where operations a second say it."""
        return ""

    def traffic(self, record: Record) -> Traffic:
        """What it moved through memory: every number of its matrices once."""
        return Traffic(float(sum(map(_bytes, [*record.inputs, *record.outputs]))))

    def not_converged(self, record: Record, plan: Plan) -> tuple[str, str]:
        """Why a result that did not converge was discarded, and what to try."""
        return "the result did not converge; it was discarded", ""

    def tolerated(self, plan: Plan) -> str:
        """What to try where the tolerance of `plan` may be why a proof failed; empty where it has none."""
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
