"""The number types tilewise knows: their names, sizes, and which one a product of two has."""

from __future__ import annotations

from tilewise.base.errors import UsageError

ITEMSIZE = {
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "float16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}
ALL = tuple(ITEMSIZE)
_LETTERS = {"int": "i", "uint": "u", "float": "f", "complex": "c"}
# As numpy spells them too: `f4`, `double`, …
_ALSO = {f"{_LETTERS[dtype.rstrip('0123456789')]}{size}": dtype for dtype, size in ITEMSIZE.items()} | {
    "bool": "uint8",
    "half": "float16",
    "single": "float32",
    "float": "float64",
    "double": "float64",
    "int": "int64",
    "complex": "complex128",
}


def is_integer(dtype: str) -> bool:
    """True for signed and unsigned integers."""
    return dtype.startswith(("int", "uint"))


def parse_dtype(text: str, flag: str) -> str:
    """The dtype called `text`, as `float32` or `f4`; else a UsageError that names `flag` and them all."""
    known = _ALSO.get(text, text)
    if known in ITEMSIZE:
        return known
    raise UsageError(f"{flag} {text!r} is not a number type tilewise knows; it knows {', '.join(ITEMSIZE)}")


def in_memory(dtype: str) -> str:
    """The type that blocks of `dtype` have in memory: integers 64 bits, float16 computes in float32."""
    if is_integer(dtype):
        return "uint64" if dtype.startswith("u") else "int64"
    return "float32" if dtype == "float16" else dtype


def of_product(left: str, right: str) -> str:
    """The type a product of `left` and `right` is computed and stored in.

    Integers: int64, or uint64 when both are unsigned. Everything else promotes as numpy does, and float16
    becomes float32.
    """
    if is_integer(left) and is_integer(right):
        return "uint64" if left.startswith("u") and right.startswith("u") else "int64"
    if left == right:
        return in_memory(left)
    import numpy

    return in_memory(numpy.result_type(left, right).name)
