"""The memory of norms: a band as it is read, and sums of columns."""

from __future__ import annotations

from tilewise.files.region import Region
from tilewise.launch.job import Variant
from tilewise.planning.need import FIXED, Need, staging, whole_lines

_SUM = 8  # bytes of a float64
_EXCHANGED = 4 << 20  # what ranks pass to each other of their sums at a time, and receive


def sums(source: Region, variant: Variant) -> int:
    """Bytes on each rank that are there whatever the band: each thread adds up all columns.

    Columns of the file, that is: of one that is stored column by column they are the matrix's rows.
    """
    columns = source.rows if source.order == "F" else source.columns
    return variant.threads * columns * _SUM + whole_lines(source) + (_EXCHANGED if variant.ranks > 1 else 0)


def norm_need(source: Region, band_bytes: int, variant: Variant, on_node: int) -> Need:
    """What norms of `source` take, a band of so many bytes at a time on each rank."""
    buffers = band_bytes + sums(source, variant) + staging(variant)
    rank = buffers + FIXED
    return Need(rank=rank, node=on_node * rank, shared=0, blocks=0, buffers=buffers)
