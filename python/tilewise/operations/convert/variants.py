"""Plans a conversion, or the making of a matrix by rule: bands of a bounded size pass through all ranks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from tilewise.files.dtypes import ITEMSIZE, in_memory
from tilewise.files.region import Region
from tilewise.files.target import Target, check_holds
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.operations.convert.need import convert_need
from tilewise.planning import grid, io, need, rule
from tilewise.planning.plan import Plan, plan_of, variant_of

if TYPE_CHECKING:
    from tilewise.operations.convert.options import Convert
    from tilewise.operations.generate.options import Generate

BAND = 32 << 20  # bytes of a rank's band, less where many ranks share a node
TEXT_BAND = 8 << 20  # where text is parsed or formatted, so that its numbers are still in the cache
BANDS_ON_NODE = 64 << 20  # bytes of the bands of all its ranks
LEAST_BAND = 1 << 20
_WORK = {"generate": 100, "text": 100, "binary": 10}  # multiply-adds that one number is worth
_WIDE_INTEGERS = ("int64", "uint64")  # of a text, these are not read by way of float64


def plan_convert(
    source: Region,
    target: Target | None,
    options: Convert | Generate,
    facts: Facts,
    joined: Join | None = None,
) -> Plan:
    """The plan for writing `source`, which may make its numbers by rule; UsageError for what cannot be."""
    command = options.command
    dtype = options.dtype or source.dtype
    if target is not None:
        check_holds(target, dtype)
    order = io.order_of(target, options.order)
    if source.encoding == "text" and dtype in _WIDE_INTEGERS and not source.dtype.startswith("complex"):
        source = msgspec.structs.replace(source, dtype=dtype)
    why: list[str] = []
    kind = "generate" if command == "generate" else source.encoding
    work = float(source.rows) * source.columns * _WORK[kind]
    spread = rule.spread(options, facts, work, why, joined=joined)
    ranks = spread.ranks
    shape, _ = grid.choose(command, ranks, options.grid or (ranks, 1), source.rows, source.columns)
    variant = variant_of(
        options,
        spread,
        io.fitting(options, [source], target),
        shape,
    )
    band = band_bytes(spread.on_node, options.memory, buffers=3)
    to_text = target is not None and target.format.text
    if to_text or source.encoding == "text":
        band = min(band, TEXT_BAND)
    if to_text:
        band = max(band, -(-source.columns // shape[1]) * max(ITEMSIZE[dtype], ITEMSIZE[source.dtype]))
    turned = order != source.order and not source.generator
    changed = dtype != source.dtype or source.byte_order != sys.byteorder
    # A matrix smaller than its bands needs no more than itself.
    share = -(-max(source.rows, 1) * max(source.columns, 1) // ranks) * ITEMSIZE[dtype]
    required = convert_need(min(band, 2 * share), 1 + turned + changed, variant, spread.on_node)
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
        },
        dtype=dtype,
        order=order,
        header=options.header,
    )


def band_bytes(on_node: int, cap: int | None, buffers: int, beside: int = 0) -> int:
    """Bytes of one of a rank's bands, of which it may hold so many `buffers`, and other things `beside`."""
    band = max(LEAST_BAND, min(BAND, BANDS_ON_NODE // on_node))
    if cap is not None:
        room = cap // on_node - need.FIXED - need.STAGING - beside  # as if all and the staging were needed
        band = max(LEAST_BAND, min(band, room // buffers))
    return band
