"""Matrices that need no file: `random:4096x4096:float64[:seed]` and what `tilewise generate` makes."""

from __future__ import annotations

from tilewise.base.errors import UsageError
from tilewise.base.units import parse_shape
from tilewise.files.dtypes import is_integer, parse_dtype
from tilewise.files.region import Region

KINDS = {
    "random": "uniform in [0, 1); integers uniform in a small range",
    "normal": "normally distributed",
    "identity": "ones on the diagonal, else zero",
    "ramp": "element (i, j) is i·columns + j",
    "graded": "normal columns, scaled down over twenty orders of magnitude",
}
_NO_INTEGERS = ("normal", "graded")
HALF_MAX = 65504  # the largest float16
_FORM = "random:4096x4096:float64[:seed]"


def parse_name(name: str) -> Region | None:
    """The Region a generator's name means, None when `name` is none; UsageError for a wrong one."""
    if not name.startswith("random:"):
        return None
    parts = name.partition("[")[0].split(":")[1:]
    if not 1 <= len(parts) <= 3:
        raise UsageError(f"{name} does not name a generated matrix; the form is {_FORM}")
    shape = parse_shape(parts[0], f"{name}: the shape")
    dtype = parse_dtype(parts[1], f"{name}: the type") if len(parts) > 1 else "float64"
    return generated("random", shape, dtype, parse_seed(parts[2], name) if len(parts) > 2 else 0, name)


def generated(kind: str, shape: tuple[int, int], dtype: str, seed: int, name: str) -> Region:
    """A Region without a file; UsageError for an unknown `kind` or one that `dtype` cannot hold."""
    if kind not in KINDS:
        raise UsageError(f"--kind {kind!r} is unknown; expected one of {', '.join(KINDS)}")
    if kind in _NO_INTEGERS and is_integer(dtype):
        others = ", ".join(known for known in KINDS if known not in _NO_INTEGERS)
        raise UsageError(
            f"--kind {kind} makes fractions, which {dtype} cannot hold; for integers use {others}"
        )
    rows, columns = shape
    if kind == "ramp" and dtype == "float16" and rows * columns > HALF_MAX + 1:
        raise UsageError(
            f"--kind ramp counts to {rows * columns - 1} here, but float16 ends at {HALF_MAX}",
            "--dtype float32",
        )
    return Region(path="", name=name, rows=rows, columns=columns, dtype=dtype, generator=kind, seed=seed)


def parse_seed(text: str, name: str) -> int:
    """A whole number from 0 to 2^63-1."""
    if text.isascii() and text.isdigit() and int(text) < 2**63:
        return int(text)
    raise UsageError(f"{name}: a seed is a whole number from 0 to 2^63-1, not {text!r}")
