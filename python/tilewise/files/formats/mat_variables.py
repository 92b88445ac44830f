"""Variables of MATLAB files of any version: their classes, and which one a name means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.files.checks import missing, pick

TYPES = {  # of the classes that hold numbers; all but these are refused
    "double": "float64",
    "single": "float32",
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int16",
    "uint16": "uint16",
    "int32": "int32",
    "uint32": "uint32",
    "int64": "int64",
    "uint64": "uint64",
    "logical": "uint8",
}
CLASSES = {dtype: kind for kind, dtype in TYPES.items() if kind != "logical"}
_OTHERS = {
    "char": ("text", "double(x) in MATLAB gives the codes of its characters"),
    "sparse": ("a sparse matrix", "x = full(x) in MATLAB, and save it again"),
    "cell": ("a cell array", "cell2mat(x) in MATLAB, if all cells hold numbers"),
    "struct": ("a structure", "save one of its fields as a variable of its own"),
}


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A variable: `kind` is its class in MATLAB, `dtype` ours, empty where it does not hold numbers.

    `inside` is what the module that found it needs to read it, and `layout` says how it is stored.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    layout: str
    inside: Any = None

    @property
    def is_matrix(self) -> bool:
        return bool(self.dtype) and len(self.shape) == 2


def numbers_of(kind: str, is_complex: bool) -> str:
    """Our name of the numbers of a class; empty where it has none."""
    dtype = TYPES.get(kind, "")
    if is_complex:  # MATLAB has complex integers, which nobody else has
        return {real_of(each): each for each in ("complex64", "complex128")}.get(dtype, "")
    return dtype


def real_of(dtype: str) -> str:
    """The type of the real parts."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def choose(variables: Sequence[Variable], name: str, path: str, member: str) -> Variable:
    """The variable called `member`, or the only matrix; UsageError where there is none, or no numbers."""
    matrices = [each.name for each in variables if each.is_matrix]
    if not member:
        alone = [each.name for each in variables] if len(variables) == 1 else []
        member = pick(name, path, "variable", matrices or alone)
    found = next((each for each in variables if each.name == member), None)
    if found is None:
        raise missing(name, "variable", member, matrices)
    if not found.dtype:
        what, advice = _OTHERS.get(found.kind, (f"of the class {found.kind}", ""))
        if found.kind in TYPES:
            what, advice = f"complex {found.kind}", "save double(x)"
        raise UsageError(f"{name} is {what}, but numbers were expected", advice)
    return found
