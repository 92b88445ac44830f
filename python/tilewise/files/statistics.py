"""Smallest, largest and mean number of a matrix, and how many are no numbers, in bounded memory."""

from __future__ import annotations

import math

import msgspec
import numpy

from tilewise.files.dtypes import is_integer
from tilewise.files.formats.text_parsing import Warn
from tilewise.files.reading import pieces
from tilewise.files.region import Region


class Statistics(msgspec.Struct, frozen=True):
    """Over the finite numbers, null where there are none; `min` and `max` of complex ones are magnitudes."""

    min: float | int | None
    max: float | int | None
    mean: float | list[float] | None
    non_finite: int


def statistics(region: Region, warn: Warn | None = None) -> Statistics:
    """Reads all numbers of a region, binary or text, once; `warn` hears what those of a text lost."""
    low: float | int | None = None
    high: float | int | None = None
    total: complex = 0.0
    count = bad = 0
    for piece in pieces(region, warn):
        numbers = piece
        if not is_integer(region.dtype):
            finite = numpy.isfinite(piece)
            numbers = piece if finite.all() else piece[finite]
            bad += piece.size - numbers.size
        if numbers.size == 0:
            continue
        sizes = numpy.abs(numbers) if numbers.dtype.kind == "c" else numbers
        smallest, largest = sizes.min().item(), sizes.max().item()
        low = smallest if low is None else min(low, smallest)
        high = largest if high is None else max(high, largest)
        wide = numpy.complex128 if numbers.dtype.kind == "c" else numpy.float64
        # Of huge numbers the sum overflows where the mean does not: sum the parts of the mean instead.
        with numpy.errstate(over="ignore"):
            part = numbers.mean(dtype=wide).item()
        total = total + (part - total) * (numbers.size / (count + numbers.size)) if count else part
        count += numbers.size
    mean: float | list[float] | None = None
    if count:
        mean = [total.real, total.imag] if region.dtype.startswith("complex") else total.real
        if isinstance(mean, float) and not math.isfinite(mean):
            mean = None
    return Statistics(low, high, mean, bad)
