"""What there is to say of norms, for programs and for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from tilewise.launch.record import Record, RecordVariant, Slices
from tilewise.operations.show import Lines, Show
from tilewise.planning.plan import Plan


class Norms(NamedTuple):
    """All are NaN where the matrix holds a NaN, else infinite where it holds an infinity, 0 where nothing."""

    frobenius: Any
    one: Any
    infinity: Any
    max: Any


def norms_of(result: Mapping[str, Any], each: Slices | None = None) -> Norms:
    """The norms out of a record's result, in which null is what JSON has no number for.

    Floats; with `each` arrays of the shape of the stack.
    """
    if each is not None:
        return _norms_of_slices(result, each)
    odd = math.nan if result["nan_numbers"] else math.inf
    return Norms(*(odd if result[name] is None else float(result[name]) for name in Norms._fields))


def _norms_of_slices(result: Mapping[str, Any], each: Slices) -> Norms:
    import numpy

    differ = result["each"]
    found = [
        norms_of({**result, **{key: values[number] for key, values in differ.items()}})
        for number in range(each.slices)
    ]
    lists = ([getattr(one, name) for one in found] for name in Norms._fields)
    return Norms(*(numpy.array(values, float).reshape(each.extents) for values in lists))


class ShowNorm(Show):
    """Words for people."""

    def variant(self, variant: RecordVariant) -> list[str]:
        return []

    def io(self, variant: RecordVariant) -> str:
        return f"{variant.io.partition(':')[0]} in"

    def result(self, record: Record) -> Lines:
        result = record.result
        labels = ("Frobenius", "1 norm", "∞ norm", "max norm")
        lines = [(label, f"{value:.12g}") for label, value in zip(labels, norms_of(result), strict=True)]
        counts = (("nan_numbers", "NaN"), ("infinite_numbers", "±∞"))
        odd = [f"{result[name]} × {what}" for name, what in counts if result[name]]
        return [*lines, ("holds", ", ".join(odd))] if odd else lines

    def planned(self, plan: Plan) -> Lines:
        return [("io", f"{plan.job.variant.read} in")]
