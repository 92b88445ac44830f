"""Plans norms: ranks take bands of rows as the file stores them, and no rank waits for another's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewise.files.dtypes import ITEMSIZE, in_memory
from tilewise.files.region import Region
from tilewise.launch.join import Join
from tilewise.machine.facts import Facts
from tilewise.operations.convert.variants import CACHED_BAND, TEXT_BAND, band_bytes
from tilewise.operations.norm.need import norm_need, sums
from tilewise.planning import io, need, rule
from tilewise.planning.plan import Plan, plan_of, variant_of

if TYPE_CHECKING:
    from tilewise.operations.norm.options import Norm

_WORK = {"text": 100, "chunks": 50, "binary": 10}  # multiply-adds that one number is worth


def plan_norm(source: Region, options: Norm, facts: Facts, joined: Join | None = None) -> Plan:
    """The plan for the norms of `source`; UsageError for what cannot be."""
    why: list[str] = []
    size = source.rows * source.columns
    spread = rule.spread(options, facts, float(size) * _WORK[source.encoding], why, joined=joined)
    read, _ = io.fitting(options, [source], None)
    variant = variant_of(
        options,
        spread,
        (read, read),
        (spread.ranks, 1),
    )
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
        options,
        facts,
        spread,
        variant,
        [source],
        norm_need(source, min(band, 2 * share), variant, spread.on_node),
        why,
        compute_type=in_memory(source.dtype),
        choosable=("ranks", "threads", "io"),
        job={"verify": "off", "band_bytes": max(band, item)},
    )
