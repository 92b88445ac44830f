"""Plans a conversion, or the making of a matrix by rule: bands of a bounded size pass through all ranks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tilewise.files.dtypes import ITEMSIZE, in_memory, is_integer
from tilewise.files.region import Region
from tilewise.files.target import Target, check_holds
from tilewise.launch import job
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.operations.convert.need import convert_need
from tilewise.planning import grid, io, need, rule
from tilewise.planning.plan import Plan, plan_of, variant_of

if TYPE_CHECKING:
    from tilewise.operations.convert.options import Convert
    from tilewise.operations.generate.options import Generate

BAND = 32 << 20  # bytes of a rank's band, less where many ranks share a node
CACHED_BAND = 4 << 20  # where nothing is turned or unpacked: numbers are written out of the cache
TEXT_BAND = 8 << 20  # where text is parsed or formatted, so that its numbers are still in the cache
BANDS_ON_NODE = 64 << 20  # bytes of the bands of all its ranks
LEAST_BAND = 1 << 20
_WORK = {"generate": 100, "text": 100, "chunks": 50, "binary": 10}  # multiply-adds that one number is worth
_WIDE_INTEGERS = ("int64", "uint64")  # of a text, these are not read by way of float64


class Cut(NamedTuple):
    """What of a matrix is taken: from one row or column up to, not with, another."""

    rows: tuple[int, int]
    columns: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int]:
        """What is left, in rows and columns."""
        return self.rows[1] - self.rows[0], self.columns[1] - self.columns[0]


def plan_convert(
    source: Region,
    target: Target | None,
    options: Convert | Generate,
    facts: Facts,
    joined: Join | None = None,
    cut: Cut | None = None,
    scale: float | None = None,
) -> Plan:
    """The plan for writing `source`, which may make its numbers by rule; UsageError for what cannot be.

    Of a `cut` only that is taken; with a `scale` whole numbers become float64, unless another type is wanted.
    """
    command = options.command
    cut = cut or Cut((0, source.rows), (0, source.columns))
    rows, columns = cut.shape
    narrow = columns < source.columns
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
    why: list[str] = []
    differs = scale is not None or (rows, columns) != (source.rows, source.columns)
    if (rows, columns) != (source.rows, source.columns):
        why.append(f"takes rows {_range(cut.rows)} and columns {_range(cut.columns)}")
    if scale is not None:
        why.append(f"multiplies by {scale!r} in {wide_of(source.dtype)}, then rounds to {dtype}")
    kind = "generate" if command == "generate" else source.encoding
    work = float(rows) * (source.columns if kind == "text" else columns) * _WORK[kind]
    spread = rule.spread(options, facts, work, why, joined=joined)
    ranks = spread.ranks
    shape, _ = grid.choose(command, ranks, options.grid or (ranks, 1), rows, columns)
    ways = io.fitting(options, [source], target)
    if rows < source.rows if source.order == "F" else narrow:
        ways = io.of_parts(ways, options, source, why)
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
    lines = need.whole_lines(source) if narrow and source.encoding == "text" else 0
    required = convert_need(min(band, 2 * share), 1 + turned + changed, variant, spread.on_node, lines)
    if options.verify == "auto" and command == "convert":
        why.append("not read back: that would take more than 5 % of the time; --verify fast forces it")
    reads_back = options.verify == "fast"
    return plan_of(
        options,
        facts,
        spread,
        variant,
        [source],
        required,
        why,
        compute_type=in_memory(dtype),
        choosable=("ranks", "threads", "io", "grid"),
        job={
            "verify": "fast" if reads_back else "off",
            "read_back": reads_back,
            "band_bytes": max(band, ITEMSIZE[dtype]),
            "convert": job.Convert(row=cut.rows[0], column=cut.columns[0], scale=scale) if differs else None,
        },
        shape=(rows, columns),
        dtype=dtype,
        order=order,
        header=options.header,
    )


def wide_of(dtype: str) -> str:
    """The type in which numbers of `dtype` are scaled."""
    return "complex128" if dtype.startswith("complex") else "float64"


def _range(ends: tuple[int, int]) -> str:
    return f"{ends[0]}:{ends[1]}"


def band_bytes(on_node: int, cap: int | None, buffers: int, beside: int = 0) -> int:
    """Bytes of one of a rank's bands, of which it may hold so many `buffers`, and other things `beside`."""
    band = max(LEAST_BAND, min(BAND, BANDS_ON_NODE // on_node))
    if cap is not None:
        room = cap // on_node - need.FIXED - need.STAGING - beside  # as if all and the staging were needed
        band = max(LEAST_BAND, min(band, room // buffers))
    return band
