"""The grey value of colours: 0.299 R + 0.587 G + 0.114 B, rounded, in the type of the image."""

from __future__ import annotations

from typing import Any

import numpy

Array = numpy.ndarray[Any, numpy.dtype[Any]]

WEIGHTS = (0.299, 0.587, 0.114)
GREY_TAKEN = "of its colours the grey value is taken, 0.299 R + 0.587 G + 0.114 B"
ALPHA_IGNORED = "its transparency is ignored"


def grey(colours: Array) -> Array:
    """The grey values, shape (…), of `colours`, shape (…, 3 or more), in the same dtype."""
    value = colours[..., 0] * WEIGHTS[0] + colours[..., 1] * WEIGHTS[1] + colours[..., 2] * WEIGHTS[2]
    if colours.dtype.kind in "iu":
        value = numpy.rint(value)
    return numpy.asarray(value).astype(colours.dtype)
