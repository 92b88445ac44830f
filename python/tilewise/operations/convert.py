"""Conversion of a matrix to another format, type or order: bands of a bounded size pass through all ranks.

Plan and cost serve `generate` as well, whose numbers are made by rule instead of read.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from tilewise.base.declare import Flag, Value
from tilewise.base.errors import UsageError
from tilewise.base.units import shape_text
from tilewise.files import cut
from tilewise.files.dtypes import ALL, ITEMSIZE, in_memory, is_integer, parse_dtype
from tilewise.files.formats import MATRIX, format_name, format_of
from tilewise.files.region import Source
from tilewise.files.slices import parse_range, rows_needed
from tilewise.files.target import Target, check_holds
from tilewise.launch import job
from tilewise.launch.job import Variant
from tilewise.launch.join import Join
from tilewise.launch.record import RecordVariant
from tilewise.machine.facts import Facts
from tilewise.operations.operation import BAND_AFTER_BAND, HEADER, ORDER, OfOneInput
from tilewise.operations.show import Lines, Show, reads_and_writes
from tilewise.planning import grid, io, need, rule
from tilewise.planning.cost import Cost, Part, Use, reading, verifying, writing
from tilewise.planning.need import FIXED, Need, staging
from tilewise.planning.plan import Plan, plan_of, variant_of
from tilewise.planning.task import Task

if TYPE_CHECKING:
    from tilewise.operations.generate import Generate
    from tilewise.operations.operation import Inputs


def parse_scale(word: str, flag: str) -> float:
    """The number, or quotient of two, that `word` is; UsageError for anything else, infinity among it."""
    above, bar, below = word.partition("/")
    try:
        scale = float(above) / (float(below) if bar else 1.0)
    except (ValueError, ZeroDivisionError):
        scale = math.inf
    if not math.isfinite(scale):
        raise UsageError(f"{flag} expects a number such as 0.5 or 1/255, not {word!r}")
    return scale


class Convert(OfOneInput, frozen=True, kw_only=True):
    """Convert a matrix to another format, type or order. The output's extension sets the format.

    Examples:
        tilewise convert A.txt -o A.npy
            Convert text to a NumPy file.
        tilewise convert A.npy -o A.h5:/A --dtype float32
            Write a dataset of an HDF5 file, in single precision.
        tilewise convert photo.png -o A.npy --rows 10:20 --columns :5 --scale 1/255
            Take rows 10 to 19 of the first five columns, scaled to 0 to 1.
    """

    limits: ClassVar[str] = BAND_AFTER_BAND
    proofs: ClassVar[tuple[str, ...]] = ("auto", "off", "fast")

    b: Annotated[str | None, Flag("Output file, instead of -o B.", value=MATRIX, place=True)] = None
    output: Annotated[
        str,
        Flag(
            "Output file; its extension sets the format.", short="-o", stream=True, value=MATRIX, common=True
        ),
    ] = ""
    dtype: Annotated[
        str | None,
        Flag(
            "Data type of the output: float32, int16, …",
            value=Value("TYPE"),
            choices=ALL,
            parse=parse_dtype,
            common=True,
        ),
    ] = None
    rows: Annotated[
        str | None,
        Flag(
            "Only these rows, counted from 0: 100:200, :50, -10: or 7.",
            value=Value("FROM:TO"),
            default="all",
            parse=parse_range,
            common=True,
        ),
    ] = None
    columns: Annotated[
        str | None,
        Flag(
            "Only these columns, in the same form.",
            value=Value("FROM:TO"),
            default="all",
            parse=parse_range,
            common=True,
        ),
    ] = None
    scale: Annotated[
        float | None,
        Flag(
            "Multiply each number by X, which may be a fraction: 1/255.",
            value=Value("X"),
            default="none",
            parse=parse_scale,
        ),
    ] = None
    order: Annotated[str | None, ORDER] = None
    header: Annotated[bool, HEADER] = False

    def __post_init__(self) -> None:
        """Raises UsageError for two outputs, or none."""
        super().__post_init__()
        if (self.b is None) == (not self.output):
            what = "got two outputs" if self.output else "needs an output"
            raise UsageError(f"convert {what}", "tilewise convert A.txt -o A.npy")
        if self.b is not None:
            msgspec.structs.force_setattr(self, "output", self.b)
            msgspec.structs.force_setattr(self, "b", None)

    @property
    def needed_rows(self) -> int | None:
        return rows_needed(self.rows)

    @property
    def wanted_columns(self) -> str:
        return self.columns or ":"

    def input(self, name: str, planes: tuple[int, ...] = (1,)) -> Source:
        source, rows, columns = super().input(name, planes), self.rows or ":", self.wanted_columns
        if format_name(name) != "generated" and format_of(name).styled:  # which has taken them
            columns = ":"
        return cut(source, rows, columns, [f"--rows {rows}", f"--columns {columns}"], name)

    def plan(self, inputs: Inputs, target: Target | None, facts: Facts, joined: Join | None) -> Plan:
        assert target is not None
        plan = plan_convert(Task(self, inputs, target, facts, joined), self.scale)
        source = plan.job.inputs[0]  # as planned: of a text, wide integers are read as such
        warnings = []
        if is_integer(plan.dtype) and (self.scale is not None or not is_integer(source.dtype)):
            how = "float→integer" if self.scale is None else f"--scale {self.scale:g}"
            warnings.append(
                f"{how} truncates fractions: {source.name} is {source.dtype}, {target.name} gets {plan.dtype}"
            )
        names = source.names if isinstance(source, Source) else ()
        return msgspec.structs.replace(plan, warnings=[*warnings, *plan.warnings], names=names)


BAND = 32 << 20  # bytes of a rank's band, less where many ranks share a node
CACHED_BAND = 4 << 20  # where nothing is turned or unpacked: numbers are written out of the cache
TEXT_BAND = 8 << 20  # where text is parsed or formatted, so that its numbers are still in the cache
BANDS_ON_NODE = 64 << 20  # bytes of the bands of all its ranks
LEAST_BAND = 1 << 20
_WORK = {"generate": 100, "text": 100, "chunks": 50, "binary": 10}  # multiply-adds that one number is worth
_WIDE_INTEGERS = ("int64", "uint64")  # of a text, these are not read by way of float64


def plan_convert(task: Task[Convert] | Task[Generate], scale: float | None = None) -> Plan:
    """The plan for writing the input, which may make its numbers by rule; UsageError for what cannot be.

    With a `scale` whole numbers become float64, unless another type is wanted.
    """
    options, target, source, why = task.options, task.target, task.source, task.why
    command = options.command
    rows, columns = source.rows, source.columns
    unscaled = source.dtype if scale is None or not is_integer(source.dtype) else "float64"
    dtype = options.dtype or unscaled
    if target is not None:
        check_holds(target, dtype)
    order = io.order_of(target, options.order)
    if (
        source.encoding == "text"
        and dtype in _WIDE_INTEGERS
        and scale is None
        and not source.dtype.startswith("complex")
    ):
        source = msgspec.structs.replace(source, dtype=dtype)
        task.inputs = [source]
    if scale is not None:
        why.append(f"multiplies by {scale!r} in {wide_of(source.dtype)}, then rounds to {dtype}")
    kind = "generate" if command == "generate" else source.encoding
    work = float(rows) * (source.uncut.columns if kind == "text" else columns) * _WORK[kind]
    spread = rule.spread(task, work)
    ranks = spread.ranks
    shape, _ = grid.choose(command, ranks, options.grid or (ranks, 1), rows, columns)
    ways = io.fitting(task)
    variant = variant_of(options, spread, ways, shape)
    turned = order != source.order and not source.generator
    band = band_bytes(spread.on_node, options.memory, buffers=3, beside=need.unpacking([source], variant))
    to_text = target is not None and target.format.text
    if to_text or source.encoding == "text":
        band = min(band, TEXT_BAND)
    elif not turned and source.chunks is None:
        band = min(band, CACHED_BAND)
    if to_text:
        band = max(band, -(-columns // shape[1]) * max(ITEMSIZE[dtype], ITEMSIZE[source.dtype]))
    changed = dtype != source.dtype or source.byte_order != sys.byteorder or scale is not None
    # A matrix smaller than its bands needs no more than itself.
    share = -(-max(rows, 1) * max(columns, 1) // ranks) * ITEMSIZE[dtype]
    lines = need.whole_lines(source) if source.narrow and source.encoding == "text" else 0
    required = convert_need(min(band, 2 * share), 1 + turned + changed, variant, spread.on_node, lines)
    if options.verify == "auto" and command == "convert":
        why.append("not read back: that would take more than 5 % of the time; --verify fast forces it")
    reads_back = options.verify == "fast"
    return plan_of(
        task,
        spread,
        variant,
        required,
        compute_type=in_memory(dtype),
        choosable=("ranks", "threads", "io", "grid"),
        job={
            "verify": "fast" if reads_back else "off",
            "read_back": reads_back,
            "band_bytes": max(band, ITEMSIZE[dtype]),
            "convert": None if scale is None else job.ConvertJob(scale=scale),
        },
        shape=(rows, columns),
        dtype=dtype,
        order=order,
        header=options.header,
    )


def wide_of(dtype: str) -> str:
    """The type in which numbers of `dtype` are scaled."""
    return "complex128" if dtype.startswith("complex") else "float64"


def band_bytes(on_node: int, cap: int | None, buffers: int, beside: int = 0) -> int:
    """Bytes of one of a rank's bands, of which it may hold so many `buffers`, and other things `beside`."""
    band = max(LEAST_BAND, min(BAND, BANDS_ON_NODE // on_node))
    if cap is not None:
        room = cap // on_node - need.FIXED - need.STAGING - beside  # as if all and the staging were needed
        band = max(LEAST_BAND, min(band, room // buffers))
    return band


def convert_need(band_bytes: int, bands: int, variant: Variant, on_node: int, lines: int = 0) -> Need:
    """Memory of a conversion, whatever the matrix: a band as read, where needed also turned and converted.

    `lines` are the bytes of a text's whole lines, of which only some columns are wanted.
    """
    buffers = bands * band_bytes + lines
    rank = buffers + staging(variant) + FIXED
    return Need(rank=rank, node=on_node * rank, shared=0, blocks=0, buffers=buffers)


def cost_of(plan: Plan, target: Target | None) -> Cost:
    """The cost of the conversion that `plan` is of."""
    job, variant, source = plan.job, plan.job.variant, plan.job.inputs[0]
    use = Use(variant, plan.spread)
    turned = plan.order != source.order and not source.generator
    changed = plan.dtype != source.dtype or job.convert is not None
    compute: list[Part] = [use.shared_out("turn", 2 * source.bytes)] if turned else []
    output = writing(plan, target, use)
    if changed:
        output.append(use.shared_out("copy", 2 * source.bytes))
    return Cost(
        phases={
            "input": reading(source, variant.read, use, fresh=False),
            "compute": compute,
            "output": output,
            "verify": verifying([], source.bytes, target, use) if job.verify == "fast" else [],
        },
        ranks=use.ranks_and_nodes,
        messages=0,
        exchanged=0,
        flops=0.0,
    )


class ShowConvert(Show):
    """Words for people."""

    methods: ClassVar[dict[str, str]] = {"read_back": "checksums of the file, read back"}

    def variant(self, variant: RecordVariant) -> list[str]:
        return []

    def planned(self, plan: Plan) -> Lines:
        variant = plan.job.variant
        return [("grid", shape_text(*variant.grid)), ("io", reads_and_writes(variant.read, variant.write))]
