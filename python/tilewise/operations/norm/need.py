"""The memory of norms: a band as it is read, and sums of columns."""

from __future__ import annotations

import msgspec

from tilewise.files.region import Region
from tilewise.launch.constants import constants
from tilewise.launch.job import Variant
from tilewise.planning.need import FIXED, Need, staging, whole_lines

_SUM = 8  # bytes of a float64


class Sizes(msgspec.Struct, frozen=True):
    """The worker's."""

    summed_numbers: int  # of their sums, that ranks pass to each other at a time; each receives as many


def sums(source: Region, variant: Variant) -> int:
    """Bytes on each rank that are there whatever the band: each thread adds up all columns.

    Columns of the file, that is: of one that is stored column by column they are the matrix's rows.
    """
    columns = source.rows if source.order == "F" else source.columns
    passed = 2 * constants("norm", Sizes).summed_numbers * _SUM if variant.ranks > 1 else 0
    return variant.threads * columns * _SUM + whole_lines(source) + passed


def norm_need(source: Region, band_bytes: int, variant: Variant, on_node: int) -> Need:
    """What norms of `source` take, a band of so many bytes at a time on each rank."""
    buffers = band_bytes + sums(source, variant) + staging(variant)
    rank = buffers + FIXED
    return Need(rank=rank, node=on_node * rank, shared=0, blocks=0, buffers=buffers)
