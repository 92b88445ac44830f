"""What is said of a job that was done for every slice of a stack: what its operation says, of all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tilewise.base.units import listing
from tilewise.launch.record import Record, RecordVariant
from tilewise.operations.show import Lines, Show
from tilewise.planning.plan import Plan

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
