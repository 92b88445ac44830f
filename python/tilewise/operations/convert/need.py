"""The memory of a conversion: a band as read, and where needed as turned and as converted."""

from __future__ import annotations

from tilewise.launch.job import Variant
from tilewise.planning.need import FIXED, Need, staging


def convert_need(band_bytes: int, bands: int, variant: Variant, on_node: int, lines: int = 0) -> Need:
    """What conversion takes, whatever the matrix: a band as read, where needed also turned and converted.

    `lines` are the bytes of a text's whole lines, of which only some columns are wanted.
    """
    buffers = bands * band_bytes + lines
    rank = buffers + staging(variant) + FIXED
    return Need(rank=rank, node=on_node * rank, shared=0, blocks=0, buffers=buffers)
