"""Which matrix of an array a name means: `A.npy[3]`, `A.h5:/x[:,5,:]`; an array of one dimension is a column.

shape (4, 3, 5), row by row:    [2] lies in one piece        [:,1] has gaps, so it is copied out first
    ┌───── 3×5 ─────┐┌── … ──┐         rows 0, 1, 2, 3:  · ▇ · | · ▇ · | · ▇ · | · ▇ ·
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import plural
from tilewise.files.checks import require_shape
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.stacks import Selection, Slices, dense_steps, places_of, slice_name, write_slices

if TYPE_CHECKING:
    import numpy

    from tilewise.files.region import Region

_PANEL = 32 << 20  # bytes


class ManyDimensionsError(UsageError):
    """What was to be a matrix has more dimensions, of extents `shape`; `first_slice` is the name of one."""

    def __init__(self, message: str, shape: tuple[int, ...], first_slice: str) -> None:
        super().__init__(message, f"name a slice of it: {first_slice}")
        self.shape = shape
        self.first_slice = first_slice


class Part(msgspec.Struct, frozen=True):
    """A matrix in an array of `shape`: `index` has a number for each dimension that is fixed, else None.

    `first` numbers lie before the matrix, which is `in_one_piece` where nothing lies between its rows. Of a
    stack it is the first of `slices`.
    """

    shape: tuple[int, ...]
    fortran: bool
    index: tuple[int | None, ...]
    rows: int
    columns: int
    first: int
    in_one_piece: bool
    slices: Slices | None = None

    @property
    def is_list(self) -> bool:
        """Whether it has one dimension, so that it could also be a row."""
        return self.index.count(None) == 1

    def slice_name(self, name: str) -> str:
        """`name` with a star for each number that a slice of a stack has: `A.npy[:,*]`."""
        return name if self.slices is None else slice_name(name, self.index, self.slices)

    @property
    def selection(self) -> tuple[int | slice, ...]:
        """The index as numpy and h5py take it."""
        return tuple(slice(None) if each is None else each for each in self.index)

    def block(self, rows: slice, columns: slice) -> tuple[int | slice, ...]:
        """The selection of some rows and columns of the matrix."""
        of_matrix = iter((rows, columns))
        return tuple(next(of_matrix) if each is None else each for each in self.index)

    def of_matrix(self, extents: Sequence[int]) -> tuple[int, int]:
        """Of a number for each dimension of the array those of the matrix's rows and columns."""
        high, *wide = (extent for extent, each in zip(extents, self.index, strict=True) if each is None)
        return high, wide[0] if wide else 1

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of it."""
        if self.is_list:
            return ("one dimension, taken as a column",)
        if self.in_one_piece:
            return ()
        if self.slices is not None:
            return ("slices whose rows lie apart, copied before they are read",)
        return ("a slice whose rows lie apart, copied before it is read",)


def part_of(
    shape: Sequence[int],
    name: str,
    selection: Selection | None = None,
    fortran: bool = False,
    how: str = "",
) -> Part:
    """The matrix that is selected of an array of `shape`, or of a stack the first slice; UsageError.

    `how` shows how a file with a reshaped array is made.
    """
    extents = tuple(int(extent) for extent in shape)
    require_shape(extents, name)
    brackets, axes = (selection.brackets, selection.axes) if selection is not None else (None, ())
    index: list[int | None] = [None] * len(extents)
    if brackets is not None:
        index = _index(brackets, extents, name)
    left = [place for place, fixed in enumerate(index) if fixed is None]
    axes = places_of(axes, left, name) if axes else ()
    places = tuple(left[axis] for axis in axes)
    for place in places:
        index[place] = 0
    whole = [extents[place] for place, fixed in enumerate(index) if fixed is None]
    if axes and len(whole) != 2:
        said = ",".join(map(str, axes))
        more = ",".join(map(str, range(len(left) - 2)))
        raise UsageError(
            f"--each {said} leaves {plural(len(whole), 'dimension')} of {name}, but a matrix has 2",
            f"--each {more}",
        )
    if len(whole) not in (1, 2):
        raise _not_a_matrix(extents, tuple(whole), brackets, name, how)
    rows, columns = (whole[0], 1) if len(whole) == 1 else (whole[0], whole[1])
    strides = _strides(extents, fortran)
    first = sum(fixed * stride for fixed, stride in zip(index, strides, strict=True) if fixed is not None)
    kept = [stride for fixed, stride in zip(index, strides, strict=True) if fixed is None]
    expected = _strides(tuple(whole), fortran)
    moved = [(have, want) for have, want, extent in zip(kept, expected, whole, strict=True) if extent > 1]
    in_one_piece = 0 in extents or all(have == want for have, want in moved)
    slices = None
    if axes:
        many, steps = (tuple(each[place] for place in places) for each in (extents, strides))
        slices = Slices(axes, places, many, steps)
    return Part(extents, fortran, tuple(index), rows, columns, first, in_one_piece, slices)


def where(part: Part, offset: int, dtype: str, byte_order: str, why: str = "") -> dict[str, Any]:
    """Fields of the Source for the part of an array whose numbers begin at `offset`.

    `why` is a note on an array that cannot be read where it lies; then it has no offset.
    """
    in_place = part.in_one_piece and not why
    stack: dict[str, Any] = {}
    if (slices := part.slices) is not None:
        steps = slices.steps if in_place else dense_steps(slices.extents, part.rows * part.columns)
        stack = {"steps": [step * ITEMSIZE[dtype] for step in steps], "stack": slices.extents}
    return {
        "rows": part.rows,
        "columns": part.columns,
        "offset": offset + part.first * ITEMSIZE[dtype] if in_place else 0,
        "byte_order": byte_order if in_place else "little",
        "order": "F" if part.fortran and (in_place or not stack) else "C",
        "encoded": not in_place,
        "part": part,
        "notes": (*part.notes, why) if why else part.notes,
        **stack,
    }


def copy_out(
    part: Part,
    path: str,
    offset: int,
    stored: numpy.dtype[Any],
    out: BinaryIO,
    changed: Callable[[Any], Any] | None = None,
) -> None:
    """Writes the matrix row by row, or column by column in Fortran's order; see `write_matrix`."""
    import numpy

    order: Literal["C", "F"] = "F" if part.fortran else "C"
    array: Any = numpy.memmap(path, stored, "r", offset, part.shape, order)
    write_part(part, array, out, changed)


def write_part(part: Part, array: Any, out: BinaryIO, changed: Callable[[Any], Any] | None = None) -> None:
    """The same for an array that is there, of the shape of `part`."""
    if part.slices is not None:
        item = array.dtype.itemsize
        write_slices(array.__getitem__, part.shape, part.index, part.slices, item, out, changed)
        return
    view = array[part.selection].reshape(part.rows, part.columns)
    write_matrix(view.T if part.fortran else view, out, changed)


def put_slices(part: Part, path: str, whole: Region, sync: bool) -> None:
    """Move slices that have gaps in the array of `whole` to their places, as `part` says. Raises RunError.

    They lie one behind the other in the raw file at `path`.
    """
    import numpy

    from tilewise.base.errors import disk_failure
    from tilewise.base.staging import sync_path

    slices, order = part.slices, "F" if part.fortran else "C"
    assert slices is not None
    try:
        written: Any = numpy.memmap(path, whole.dtype, "r", 0, (*slices.extents, part.rows, part.columns))
        array: Any = numpy.memmap(whole.path, whole.dtype, "r+", whole.offset, part.shape, order)  # type: ignore
        numpy.moveaxis(array, slices.axes, range(len(slices.axes)))[...] = written
        if sync:
            array.flush()
            sync_path(whole.path)
    except OSError as error:
        raise disk_failure(f"the slices of {whole.name} cannot be put in their places", error) from None


def write_matrix(view: Any, out: BinaryIO, changed: Callable[[Any], Any] | None = None) -> None:
    """Writes `view`, two-dimensional, row by row and little-endian, in panels, each `changed` before."""
    import numpy

    high = max(1, _PANEL // max(1, view.shape[1] * view.dtype.itemsize))
    for row in range(0, view.shape[0], high):
        panel = view[row : row + high] if changed is None else changed(view[row : row + high])
        out.write(numpy.ascontiguousarray(panel, panel.dtype.newbyteorder("<")).data)


def write_blocks(
    part: Part,
    chunks: Sequence[int],
    dtype: str,
    out: BinaryIO,
    read: Callable[[tuple[int | slice, ...]], Any],
) -> None:
    """Writes the matrix row by row and little-endian, in blocks, or all slices of a stack.

    `read` has the numbers for an index of the array. Blocks have 32 MiB where chunks are smaller, and are cut
    where the chunks are: each is unpacked once.
    """
    import numpy

    if (slices := part.slices) is not None:
        together = chunks[slices.places[0]]
        write_slices(read, part.shape, part.index, slices, ITEMSIZE[dtype], out, together=together)
        return
    native = numpy.dtype(dtype).newbyteorder("<")
    high, wide = _block(part, chunks, native.itemsize)
    for row in range(0, part.rows, high):
        for column in range(0, part.columns, wide):
            across = min(wide, part.columns - column)
            chosen = part.block(slice(row, row + high), slice(column, column + across))
            block = numpy.ascontiguousarray(read(chosen), native).reshape(-1, across)
            if wide >= part.columns:
                out.write(block.data)
                continue
            for line, numbers in enumerate(block):
                out.seek(((row + line) * part.columns + column) * native.itemsize)
                out.write(numbers.data)


def _block(part: Part, chunks: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Rows and columns to read at once."""
    row_bytes = max(1, part.columns * itemsize)
    high, wide = (max(1, extent) for extent in part.of_matrix(chunks))
    if high * row_bytes > _PANEL:
        wide *= max(1, _PANEL // max(1, high * wide * itemsize))
        return high, wide
    return high * max(1, _PANEL // (high * row_bytes)), max(1, part.columns)


def _index(brackets: str, shape: tuple[int, ...], name: str) -> list[int | None]:
    """A number or None for each dimension; what is not named is whole."""
    fields = [field.strip() for field in brackets.split(",")]
    index: list[int | None] = []
    for field in fields:
        if field == "...":
            index += [None] * (len(shape) - len(fields) + 1)
        elif field == ":":
            index.append(None)
        elif re.fullmatch(r"-?[0-9]{1,18}", field):
            index.append(int(field))
        else:
            raise UsageError(
                f"{name}: [{brackets}] is no slice that is read; write a number or : for each dimension"
            )
    if len(index) > len(shape) or fields.count("...") > 1:
        raise UsageError(f"{name}: [{brackets}] has more than the array's {plural(len(shape), 'dimension')}")
    index += [None] * (len(shape) - len(index))
    for place, fixed in enumerate(index):
        if fixed is not None and not -shape[place] <= fixed < shape[place]:
            raise UsageError(
                f"{name}: there is no {fixed} in dimension {place}, which has {shape[place]}, counted from 0"
            )
    return [None if fixed is None else fixed % extent for fixed, extent in zip(index, shape, strict=True)]


def _strides(shape: tuple[int, ...], fortran: bool) -> list[int]:
    """Numbers from one to the next in each dimension."""
    places = range(len(shape))
    return [math.prod(shape[:place] if fortran else shape[place + 1 :]) for place in places]


def _not_a_matrix(
    shape: tuple[int, ...], left: tuple[int, ...], brackets: str | None, name: str, how: str
) -> UsageError:
    whole = len(left)
    if whole == 0:
        reshape = f"reshape it to (1, 1): {how}" if how else "reshape it to (1, 1)"
        advice = reshape if brackets is None else "write : for a whole dimension"
        return UsageError(f"{name} is a single number, but a matrix has 2 dimensions", advice)
    shown = str(shape) if len(shape) <= 8 else f"({', '.join(map(str, shape[:8]))}, …)"
    bare = name if brackets is None else name.removesuffix(f"[{brackets}]")
    of = "" if brackets is None else "of "
    return ManyDimensionsError(
        f"{name} has {whole} dimensions {of}{shown}, but a matrix has 2",
        left,
        f"{bare}[{','.join(['0'] * (len(shape) - 2))}]",
    )
