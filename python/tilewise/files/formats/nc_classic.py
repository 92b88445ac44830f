"""Classic NetCDF: scipy reads the header, which says where the numbers lie."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from tilewise.base.errors import UsageError
from tilewise.files.checks import (
    byte_order,
    missing,
    not_applied,
    number_type,
    numbers_bytes,
    pick,
    printable,
    require_room,
)
from tilewise.files.region import Source
from tilewise.files.regular import Bounded
from tilewise.files.slices import part_of, where, write_part
from tilewise.files.stacks import Selection

if TYPE_CHECKING:
    import numpy

    from tilewise.files.contents import Content

    Array = numpy.ndarray[Any, numpy.dtype[Any]]


def inspect(path: str, name: str, member: str, size: int, selection: Selection | None = None) -> Source:
    """The variable called `member`, or the only matrix; record variables between others are decoded."""
    variables = _variables(path)
    matrices = [
        key for key, each in variables.items() if each.view.ndim == 2 and each.view.dtype.kind in "iuf"
    ]
    member = member.removeprefix("/")
    if member and member not in variables:
        raise missing(name, "variable", member, matrices)
    alone = list(variables) if len(variables) == 1 else []
    chosen = member or pick(name, path, "variable", matrices or alone)
    view, offset, attributes = variables[chosen]
    number = number_type(view.dtype, name)
    part = part_of(view.shape, name, selection)
    numbers_bytes(1, view.size, number, name, view.shape)
    in_place = bool(view.flags.c_contiguous)
    offset = offset if in_place and view.size else 0
    order = byte_order(view.dtype)
    warnings = not_applied(attributes)
    if in_place:
        require_room(name, size, offset, 1, view.size, number, view.shape)
    why = (
        "" if in_place else f"the variable {printable(chosen)} is a record variable, interleaved with others"
    )
    return Source(
        path=path,
        name=name,
        dtype=number,
        file_bytes=size,
        format="nc",
        member=chosen,
        warnings=warnings,
        **where(part, offset, number, order, why),
    )


def decode(source: Source, out: BinaryIO) -> None:
    """Copies panels of rows out of the mapped file."""
    part = source.part
    assert part is not None
    view = _variables(source.path)[source.member].view
    if view.shape != part.shape:
        raise UsageError(f"{source.name} changed while it was read")
    write_part(part, view, out)


def contents(path: str, name: str) -> list[Content]:
    """All variables."""
    from tilewise.files.contents import content

    return [
        content(key, view.shape, view.dtype, "in one piece" if view.flags.c_contiguous else "in records")
        for key, (view, _, _) in _variables(path).items()
    ]


class _Variable(NamedTuple):
    """A variable: where its view begins in the file, and what is said of it."""

    view: Array
    offset: int
    attributes: dict[str, Any]


class _Strict(Bounded):
    """A file that refuses to give less than is asked for, so that a header that ends early is noticed."""

    def read(self, count: int | None = -1, /) -> bytes:
        found = super().read(count)
        if count is None or len(found) != count:
            raise ValueError
        return found


def _variables(path: str) -> dict[str, _Variable]:
    """Every variable, with a view of the mapped file, which stays open as long as a view does."""
    import numpy
    from scipy.io import netcdf_file  # type: ignore[import-untyped,unused-ignore]

    class Header(netcdf_file):  # type: ignore[misc,unused-ignore]
        """The header without scipy's views of the numbers: of a single record variable these can be wrong."""

        def _read_var_array(self) -> None:
            self.fp.read(4)
            self.found = [self._read_var() for _ in range(self._unpack_int())]

    found = {}
    try:
        with _Strict(path) as file:
            header = Header(file, "r", mmap=False)
        parts = {
            name: math.prod(shape[1:]) * item
            for name, _, shape, _, _, item, *_ in header.found
            if None in shape[:1]
        }
        # In a record each part begins at a multiple of four bytes, but a single one has no gap behind it.
        gap = 4 if len(parts) > 1 else 1
        step = sum(-(-part // gap) * gap for part in parts.values())
        mapped = numpy.memmap(path, "u1", "r")
        for name, _, shape, attributes, _, item, dtype, begin, _ in header.found:
            extents = (header._recs, *shape[1:]) if name in parts else shape
            strides = [item * math.prod(shape[place + 1 :]) for place in range(len(shape))]
            if name in parts:
                strides[0] = step
            # Records that are not there can begin beyond the end.
            here = int(begin) if math.prod(extents) else 0
            found[name] = _Variable(numpy.ndarray(extents, dtype, mapped, here, strides), here, attributes)
    except ValueError:  # numpy's, of views that reach beyond the end
        raise ValueError("its header promises more than the file holds: it is truncated or broken") from None
    return found
