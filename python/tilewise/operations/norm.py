"""The norms of a matrix: one pass over its file by bands of rows, with no message but the sums at the end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

from tilewise.base.errors import UsageError
from tilewise.files.dtypes import ITEMSIZE, in_memory
from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.launch.constants import constants
from tilewise.launch.job import Variant
from tilewise.launch.join import Join
from tilewise.launch.record import Record, RecordSlices, RecordVariant
from tilewise.machine.facts import Facts
from tilewise.operations.convert import CACHED_BAND, TEXT_BAND, band_bytes
from tilewise.operations.operation import OfOneInput
from tilewise.operations.show import Lines, Show
from tilewise.planning import io, need, rule
from tilewise.planning.choices import NO_PROOFS
from tilewise.planning.cost import Cost, Use, reading
from tilewise.planning.need import FIXED, Need, staging, whole_lines
from tilewise.planning.plan import Plan, plan_of, variant_of
from tilewise.planning.task import Task

if TYPE_CHECKING:
    from tilewise.operations.operation import Inputs


class Norm(OfOneInput, frozen=True, kw_only=True):
    """Compute the Frobenius, 1, ∞ and max norms of a matrix in one pass over its file.

    Examples:
        tilewise norm A.npy
            Prints the norms.
        tilewise norm A.npy --json -
            Prints the record, which includes the norms, as JSON.
    """

    writes: ClassVar[bool] = False
    limits: ClassVar[str] = "it only reads, and every rank works on its own, band after band"
    proofs: ClassVar[tuple[str, ...]] = NO_PROOFS

    output: str = ""

    def check(self) -> None:
        super().check()
        read, write = self.io
        if write is not None and read != write:
            raise UsageError(f"--io {read}:{write} makes no sense with norm: {self.limits}", f"--io {read}")

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        return plan_norm(Task(self, inputs, target, facts, joined))


_WORK = {"text": 100, "chunks": 50, "binary": 10}  # multiply-adds that one number is worth


def plan_norm(task: Task[Norm]) -> Plan:
    """The plan for the norms of a matrix; UsageError for what cannot be."""
    options, source = task.options, task.source
    size = source.rows * source.columns
    spread = rule.spread(task, float(size) * _WORK[source.encoding])
    read, _ = io.fitting(task)
    variant = variant_of(options, spread, (read, read), (spread.ranks, 1))
    item = ITEMSIZE[source.dtype]
    beside = sums(source, variant) + need.unpacking([source], variant)
    band = band_bytes(spread.on_node, options.memory, buffers=1, beside=beside)
    if source.encoding == "text":
        band = max(min(band, TEXT_BAND), source.columns * item)
    elif source.chunks is None:
        band = min(band, CACHED_BAND)
    # A matrix smaller than its bands needs no more than itself.
    share = -(-max(size, 1) // spread.ranks) * item
    return plan_of(
        task,
        spread,
        variant,
        norm_need(source, min(band, 2 * share), variant, spread.on_node),
        compute_type=in_memory(source.dtype),
        choosable=("ranks", "threads", "io"),
        job={"verify": "off", "band_bytes": max(band, item)},
    )


_SUM = 8  # bytes of a float64


class NormSizes(msgspec.Struct, frozen=True):
    """The worker's."""

    summed_numbers: int  # of their sums, that ranks pass to each other at a time; each receives as many


def sums(source: Region, variant: Variant) -> int:
    """Bytes on each rank that are there whatever the band: each thread adds up all columns.

    Columns of the file, that is: of one that is stored column by column they are the matrix's rows.
    """
    columns = source.rows if source.order == "F" else source.columns
    passed = 2 * constants("norm", NormSizes).summed_numbers * _SUM if variant.ranks > 1 else 0
    return variant.threads * columns * _SUM + whole_lines(source) + passed


def norm_need(source: Region, band_bytes: int, variant: Variant, on_node: int) -> Need:
    """Memory of the norms of `source`, a band of so many bytes at a time on each rank."""
    buffers = band_bytes + sums(source, variant) + staging(variant)
    rank = buffers + FIXED
    return Need(rank=rank, node=on_node * rank, shared=0, blocks=0, buffers=buffers)


def cost_of(plan: Plan, target: Target | None) -> Cost:
    """The cost of the norms that `plan` is of."""
    variant, source = plan.job.variant, plan.job.inputs[0]
    use = Use(variant, plan.spread)
    return Cost(
        phases={
            "input": reading(source, variant.read, use, fresh=False),
            "compute": [use.shared_out("copy", source.bytes)],
        },
        ranks=use.ranks_and_nodes,
        messages=0,
        exchanged=0,
    )


class Norms(NamedTuple):
    """All are NaN where the matrix holds a NaN, else infinite where it holds an infinity, 0 where nothing."""

    frobenius: Any
    one: Any
    infinity: Any
    max: Any


def norms_of(result: Mapping[str, Any], each: RecordSlices | None = None) -> Norms:
    """The norms out of a record's result, in which null is what JSON has no number for.

    Floats; with `each` arrays of the shape of the stack.
    """
    if each is not None:
        return _norms_of_slices(result, each)
    odd = math.nan if result["nan_numbers"] else math.inf
    return Norms(*(odd if result[name] is None else float(result[name]) for name in Norms._fields))


def _norms_of_slices(result: Mapping[str, Any], each: RecordSlices) -> Norms:
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
