"""What lies outside a stencil's matrix: a name, of `constant` with the number that stands there."""

from __future__ import annotations

import math

from tilewise.base.errors import UsageError
from tilewise.files.dtypes import ITEMSIZE, is_integer

CONSTANT = "constant"
BOUNDARIES = {
    "zero": "all 0",
    "fixed": "edge cells keep their value",
    "periodic": "the opposite edge",
    "reflect": "mirrored about the edge: d c b a | a b c d",
    "mirror": "about the outer cells: d c b | a b c d",
    "nearest": "the edge cell repeated",
    f"{CONSTANT}:V": "all V, any number or nan",
}
NAMES = tuple(BOUNDARIES)
_FLOAT32_MAX = 3.4028235e38


def parse_boundary(text: str) -> int | float | None:
    """The value outside of `constant:V`, None for a name; UsageError, with what is known, for all else."""
    name, colon, number = text.partition(":")
    if name != CONSTANT:
        if text not in NAMES:
            raise UsageError(f"--boundary {text!r} is unknown; expected one of {', '.join(NAMES)}")
        return None
    for kind in (int, float):
        try:
            return kind(number)
        except ValueError:
            pass
    raise UsageError(
        f"--boundary {text} needs a number after {CONSTANT}{'' if colon else ' and a colon'}",
        f"--boundary {CONSTANT}:0",
    )


def for_worker(text: str, dtype: str) -> str:
    """The same as a worker reads it; UsageError where a matrix of type `dtype` cannot hold the value."""
    value = parse_boundary(text)
    if value is None:
        return text
    if is_integer(dtype):
        bits, signed = 8 * ITEMSIZE[dtype], not dtype.startswith("u")
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        if not (math.isfinite(value) and value == int(value) and least <= value <= most):
            raise UsageError(
                f"--boundary {text}: the matrix holds {dtype}, so the value outside must be a whole "
                f"number from {least} to {most}",
                "tilewise convert --dtype float64",
            )
    elif dtype == "float32" and _FLOAT32_MAX < abs(value) < math.inf:
        raise UsageError(
            f"--boundary {text} is a number that float32 cannot hold", "tilewise convert --dtype float64"
        )
    return f"{CONSTANT}:{_as_float(text, value)!r}"


def _as_float(text: str, value: int | float) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number) and any(map(str.isdigit, text)):
        raise UsageError(
            f"--boundary {text} is a number that float64 cannot hold", f"--boundary {CONSTANT}:inf"
        )
    return number
