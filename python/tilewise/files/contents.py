"""What lies in a file with several arrays: a `Content` each, matrices or not."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.files.checks import number_type
from tilewise.files.formats import ending_of, format_module, split_input
from tilewise.files.generated import parse_name
from tilewise.files.guard import guarded
from tilewise.files.regular import open_regular

if TYPE_CHECKING:
    import numpy


class Content(msgspec.Struct, frozen=True):
    """An array of a file: `dtype` says what it holds, numbers or not; `layout`, how it is stored."""

    member: str
    shape: tuple[int, ...]
    dtype: str
    layout: str
    matrix: bool


def contents(name: str) -> list[Content]:
    """All arrays of the file `name`; none where the format holds one only, or `name` says which one."""
    if parse_name(name) is not None:
        return []
    base, member, part = split_input(name)
    module = format_module(base)
    if member or part is not None or not hasattr(module, "contents"):
        return []
    path = os.path.abspath(base)
    if not module.FORMAT.folder:
        open_regular(path, name)[0].close()
    with guarded(f"{name} is not a readable {ending_of(base)} file"):
        found: list[Content] = module.contents(path, name)
    return found


def content(
    member: str, shape: tuple[int, ...], dtype: numpy.dtype[Any], layout: str, kind: str = ""
) -> Content:
    """The array `member`; `kind` is what it holds where its dtype does not tell, such as strings."""
    try:
        return Content(
            member, shape, kind or number_type(dtype, member), layout, not kind and len(shape) == 2
        )
    except UsageError:
        return Content(member, shape, _what(dtype), layout, matrix=False)


def _what(dtype: numpy.dtype[Any]) -> str:
    if dtype.fields is not None:
        return "records"
    return {"S": "strings", "U": "strings", "V": "raw bytes", "O": "objects"}.get(dtype.kind, str(dtype))
