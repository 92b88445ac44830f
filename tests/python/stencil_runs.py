"""Inputs of a stencil, and what scipy makes of them."""

from __future__ import annotations

import math
from typing import Any

import numpy
from conftest import Tilewise
from scipy import ndimage
from stencil_cover import SHAPE
from tilewise.operations.stencil.weights import BOUNDARIES as KNOWN
from tilewise.operations.stencil.weights import parse_weights

VALUE = -1.25  # outside, of `constant`
MODES = {"zero": "constant", "fixed": "constant", "periodic": "wrap"}
# Each as it is asked for.
BOUNDARIES = [name.replace(":V", f":{VALUE}") for name in KNOWN]
WEIGHTS = {
    f"w{side}.npy": numpy.random.default_rng(side).uniform(-0.5, 1, (side, side)) / (side * side / 3)
    for side in (3, 5, 7, 9)
}


def swept(matrix: Any, weights: str, boundary: str, steps: int) -> Any:
    """What scipy makes of it in float64; `fixed` by putting the edge back after every sweep."""
    known = parse_weights(weights).values if weights not in WEIGHTS else WEIGHTS[weights].ravel()
    side = math.isqrt(len(known))
    radius, array = side // 2, numpy.array(known).reshape(side, side)
    state = numpy.asarray(matrix, "float64")
    inner = tuple(slice(radius, max(radius, extent - radius)) for extent in state.shape)
    for _ in range(steps):
        mode, _, value = boundary.partition(":")
        after = ndimage.correlate(state, array, mode=MODES.get(mode, mode), cval=float(value or 0))
        if boundary == "fixed":
            edged = state.copy()
            edged[inner] = after[inner]
            after = edged
        state = after
    return state


def numbers(shape: tuple[int, int] = SHAPE, dtype: str = "float64") -> Any:
    generator = numpy.random.default_rng(7)
    if "int" in dtype:
        limits = numpy.iinfo(dtype)
        return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return generator.standard_normal(shape).astype(dtype)


def save(tilewise: Tilewise) -> None:
    """Inputs of the tests below."""
    numpy.save(tilewise.folder / "A32.npy", numbers(dtype="float32"))
    numpy.save(tilewise.folder / "A64.npy", numbers())
    numpy.save(tilewise.folder / "F64.npy", numpy.asfortranarray(numbers()))
    for name, weights in WEIGHTS.items():
        numpy.save(tilewise.folder / name, weights)


def result(tilewise: Tilewise, name: str = "B.npy") -> Any:
    return numpy.load(tilewise.folder / name)
