"""Stacks: an array whose slices along some axes are matrices, each of which something is done with.

shape (4, 3, 5), row by row, along axis 0: four matrices of 3×5, 15 numbers from one to the next
                             along axis 1: three matrices of 4×5, 5 numbers apart, whose rows have gaps
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import plural

_PANEL = 32 << 20  # bytes


class NoStackError(UsageError):
    """What was to be a stack of matrices has too few dimensions."""


class Selection(msgspec.Struct, frozen=True):
    """What is asked for of an array: what stands in brackets behind its name, and the axes of a stack."""

    brackets: str | None = None
    axes: tuple[int, ...] = ()


class Slices(msgspec.Struct, frozen=True):
    """Where the slices of a stack lie, of which a Part is the first.

    There are so many as `extents` along each of `axes`, which are counted in what brackets leave of the
    array, and are its dimensions `places`. From one slice to the next there are `steps` numbers.
    """

    axes: tuple[int, ...]
    places: tuple[int, ...]
    extents: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def count(self) -> int:
        return math.prod(self.extents)


def parse_axes(word: str, flag: str = "--each") -> tuple[int, ...]:
    """The axes that `0` or `0,1` means; UsageError for all else."""
    try:
        axes = tuple(int(each) for each in word.split(","))
    except ValueError:
        raise UsageError(f"{flag} expects an axis such as 0, or several such as 0,1, not {word!r}") from None
    return axes


def places_of(axes: tuple[int, ...], left: Sequence[int], name: str) -> tuple[int, ...]:
    """The places among `left`, an array's dimensions, that `axes` are, in ascending order; UsageError."""
    said = f"--each {','.join(map(str, axes))}"
    count = len(left)
    for axis in axes:
        if not -count <= axis < count:
            raise UsageError(f"{said}: {name} has {plural(count, 'dimension')}, counted from 0")
    found = sorted({axis % count for axis in axes})
    if len(found) < len(axes):
        raise UsageError(f"{said} names an axis twice")
    if count - len(found) < 2:
        raise NoStackError(
            f"{said} makes no sense: {name} has {plural(count, 'dimension')}, and a stack of matrices has "
            f"{2 + len(found)}",
            "omit --each" if count <= 2 else "",
        )
    return tuple(found)


def dense_steps(extents: Sequence[int], matrix: int) -> tuple[int, ...]:
    """Steps of slices of `matrix` numbers (or bytes) that lie one behind the other."""
    return tuple(matrix * math.prod(extents[place + 1 :]) for place in range(len(extents)))


def whole_shape(extents: Sequence[int], axes: Sequence[int], rows: int, columns: int) -> tuple[int, ...]:
    """The shape of an array whose slices along `axes` are `rows` × `columns` matrices."""
    shape = [rows, columns]
    for axis, extent in zip(axes, extents, strict=True):
        shape.insert(axis, extent)
    return tuple(shape)


def slice_name(name: str, index: Sequence[int | None], slices: Slices) -> str:
    """`A.npy[:,*]`: `name`, which may have brackets, with a star for each number that a slice has."""
    fields = [":" if fixed is None else str(fixed) for fixed in index]
    for place in slices.places:
        fields[place] = "*"
    while fields[-1] == ":":
        fields.pop()
    bare = name[: name.rindex("[")] if name.endswith("]") else name
    return f"{bare}[{','.join(fields)}]"


def write_slices(
    read: Callable[[tuple[int | slice, ...]], Any],
    shape: Sequence[int],
    index: Sequence[int | None],
    slices: Slices,
    item: int,
    out: BinaryIO,
    changed: Callable[[Any], Any] | None = None,
    together: int = 1,
) -> None:
    """Writes all slices, one behind the other, each row by row and little-endian, `changed` before.

    `read` has the numbers for an index of the array of `shape`, without the dimensions that are fixed; along
    the first axis of the stack so many are best read `together`. `item`: bytes of a number.
    """
    import numpy

    chosen: list[int | slice] = [slice(None) if fixed is None else fixed for fixed in index]
    for place in slices.places:
        chosen[place] = slice(None)
    first, extent = slices.places[0], slices.extents[0]
    others = math.prod(
        shape[place] for place, each in enumerate(chosen) if place != first and isinstance(each, slice)
    )
    high = together * max(1, _PANEL // max(1, together * others * item))
    for begin in range(0, extent, high):
        chosen[first] = slice(begin, min(begin + high, extent))
        view = numpy.moveaxis(read(tuple(chosen)), slices.axes, range(len(slices.axes)))
        for panel in _panels(view, len(slices.axes)):
            done = panel if changed is None else changed(panel)
            out.write(numpy.ascontiguousarray(done, done.dtype.newbyteorder("<")).data)


def _panels(view: Any, stacked: int) -> Iterator[Any]:
    """`view` in pieces of a bounded size, in the sequence of its numbers."""
    if view.nbytes <= 2 * _PANEL:
        yield view
        return
    for place in itertools.product(*(range(extent) for extent in view.shape[:stacked])):
        matrix = view[place]
        high = max(1, _PANEL // max(1, matrix[:1].nbytes))
        for row in range(0, matrix.shape[0], high):
            yield matrix[row : row + high]
