"""Matrices in arrays: `A.npy[3]`, `A.h5:/x[:,5,:]`; an array of one dimension is a column.

shape (4, 3, 5), row by row:    [2] lies in one piece        [:,1] has gaps, so it is copied out first
    ┌───── 3×5 ─────┐┌── … ──┐         rows 0, 1, 2, 3:  · ▇ · | · ▇ · | · ▇ · | · ▇ ·

A stack is an array whose slices along some axes are matrices, each of which something is done with: along
axis 0 four of 3×5, 15 numbers from one to the next; along axis 1 three of 4×5, 5 numbers apart, with gaps.
Ranges pick rows and columns of a matrix as people write them: `100:200`, `-10:`, `7`.

Design: docs/design/formats.md.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import plural
from tilewise.files.checks import require_shape
from tilewise.files.dtypes import ITEMSIZE

if TYPE_CHECKING:
    import numpy

    from tilewise.files.region import Region

_PANEL = 32 << 20  # bytes
_RANGE = re.compile(r"\s*(-?[0-9]{1,18})?\s*:\s*(-?[0-9]{1,18})?\s*|\s*-?[0-9]{1,18}\s*")


class ManyDimensionsError(UsageError):
    """More dimensions, of extents `shape`, than a matrix has; `first_slice` is the name of a slice."""

    def __init__(self, message: str, shape: tuple[int, ...], first_slice: str) -> None:
        super().__init__(message, f"name a slice of it: {first_slice}")
        self.shape = shape
        self.first_slice = first_slice


class ArrayPart(msgspec.Struct, frozen=True):
    """A matrix in an array of `shape`: `index` has a number for each dimension that is fixed, else None.

    `first` numbers lie before the matrix, which is `in_one_piece` where nothing lies between its rows. Of a
    stack it is the first of `slices`. Of its rows, and of its columns, only `ranges` are wanted.
    """

    shape: tuple[int, ...]
    fortran: bool
    index: tuple[int | None, ...]
    rows: int
    columns: int
    first: int
    in_one_piece: bool
    slices: StackSlices | None = None
    ranges: tuple[str, ...] = ()

    @property
    def is_list(self) -> bool:
        """True for one dimension, so that it could also be a row."""
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
        """Pick the entries of rows and columns from a number for each dimension of the array."""
        high, *wide = (extent for extent, each in zip(extents, self.index, strict=True) if each is None)
        return high, wide[0] if wide else 1

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user."""
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
) -> ArrayPart:
    """The matrix that is selected of an array of `shape`, or of a stack the first slice; UsageError.

    `how` shows how a file with a reshaped array is made.
    """
    extents = tuple(int(extent) for extent in shape)
    require_shape(extents, name)
    brackets, axes = (selection.brackets, selection.axes) if selection is not None else (None, ())
    index, ranges = _index("..." if brackets is None else brackets, extents, name)
    left = [place for place, fixed in enumerate(index) if fixed is None]
    axes = places_of(axes, left, name) if axes else ()
    places = tuple(left[axis] for axis in axes)
    for place in places:
        index[place] = 0
        if ranges[place] != ":":
            raise UsageError(f"{name}: --each takes all slices, but [{brackets}] only some", "write : there")
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
        slices = StackSlices(axes, places, many, steps)
    wanted = tuple(each for each, fixed in zip(ranges, index, strict=True) if fixed is None)
    return ArrayPart(extents, fortran, tuple(index), rows, columns, first, in_one_piece, slices, wanted)


def where(part: ArrayPart, offset: int, dtype: str, byte_order: str, why: str = "") -> dict[str, Any]:
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
    part: ArrayPart,
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


def write_part(
    part: ArrayPart, array: Any, out: BinaryIO, changed: Callable[[Any], Any] | None = None
) -> None:
    """Write the part of `array`, which is there, row by row or column by column; see `write_matrix`."""
    if part.slices is not None:
        item = array.dtype.itemsize
        write_slices(array.__getitem__, part.shape, part.index, part.slices, item, out, changed)
        return
    view = array[part.selection].reshape(part.rows, part.columns)
    write_matrix(view.T if part.fortran else view, out, changed)


def put_slices(part: ArrayPart, path: str, whole: Region, sync: bool) -> None:
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
    part: ArrayPart,
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


def _block(part: ArrayPart, chunks: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Rows and columns to read at once."""
    row_bytes = max(1, part.columns * itemsize)
    high, wide = (max(1, extent) for extent in part.of_matrix(chunks))
    if high * row_bytes > _PANEL:
        wide *= max(1, _PANEL // max(1, high * wide * itemsize))
        return high, wide
    return high * max(1, _PANEL // (high * row_bytes)), max(1, part.columns)


def _index(brackets: str, shape: tuple[int, ...], name: str) -> tuple[list[int | None], list[str]]:
    """Parse a number, or None and a range, for each dimension; what is not named is whole."""
    fields = [field.strip() for field in brackets.split(",")]
    missing = [":"] * (len(shape) - len(fields) + 1)
    ranges = [each for field in fields for each in (missing if field == "..." else [field])]
    index: list[int | None] = []
    for field in ranges:
        if ":" in field and _RANGE.fullmatch(field):
            index.append(None)
        elif re.fullmatch(r"-?[0-9]{1,18}", field):
            index.append(int(field))
        else:
            raise UsageError(
                f"{name}: [{brackets}] is no slice that is read; write a number, FROM:TO or : for each axis"
            )
    if len(index) > len(shape) or fields.count("...") > 1:
        raise UsageError(f"{name}: [{brackets}] has more than the array's {plural(len(shape), 'dimension')}")
    index += [None] * (len(shape) - len(index))
    ranges += [":"] * (len(shape) - len(ranges))
    for place, fixed in enumerate(index):
        if fixed is not None and not -shape[place] <= fixed < shape[place]:
            raise UsageError(
                f"{name}: there is no {fixed} in dimension {place}, which has {shape[place]}, counted from 0"
            )
    counted = [None if fixed is None else fixed % extent for fixed, extent in zip(index, shape, strict=True)]
    return counted, ranges


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


class NoStackError(UsageError):
    """Too few dimensions for a stack of matrices."""


class Selection(msgspec.Struct, frozen=True):
    """A request for a part of an array: what stands in brackets behind its name, and the axes of a stack."""

    brackets: str | None = None
    axes: tuple[int, ...] = ()


class StackSlices(msgspec.Struct, frozen=True):
    """The places of the slices of a stack, of which an ArrayPart is the first.

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


def slice_name(name: str, index: Sequence[int | None], slices: StackSlices) -> str:
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
    slices: StackSlices,
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


def parse_range(text: str, flag: str) -> str:
    """`text` where it is a range without a step, or one number; else a UsageError that names `flag`."""
    if _RANGE.fullmatch(text):
        return text
    why = ", and steps are not taken" if text.count(":") == 2 else ""
    raise UsageError(f"{flag} expects FROM:TO such as 100:200, :50, -10: or 7, not {text!r}{why}")


def range_of(text: str, extent: int, what: str) -> slice:
    """The slice that `text` means, a step allowed; one number picks one row or column. UsageError for none.

    Ends beyond the matrix are kept, as Python keeps them.
    """
    fields = text.split(":")
    try:
        numbers = [int(field) if field.strip() else None for field in fields]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or (len(numbers) == 3 and numbers[2] == 0) or numbers == [None]:
        raise UsageError(f"{text!r} is not a range of {what}s; write 3, 0:5, -2: or ::10")
    if len(numbers) == 1:
        index = numbers[0]
        assert index is not None
        if not -extent <= index < extent:
            raise UsageError(f"there is no {what} {index}: the matrix has {extent} {what}s, counted from 0")
        index %= extent
        return slice(index, index + 1)
    return slice(*numbers)


def rows_needed(text: str | None) -> int | None:
    """Count the rows from the top that tell which ones `text` means; None where that takes them all."""
    fields = [field.strip() for field in (text or "").split(":")]
    if len(fields) > 3 or not all(field.isdecimal() for field in fields if field):
        return None
    begin, *more = [int(field) if field else None for field in fields]
    if not more:
        return None if begin is None else begin + 1
    return more[0] if more[0] is not None and more[0] > (begin or 0) else None


class Wanted(NamedTuple):
    """A range of columns, and what the user wrote for it."""

    text: str
    said: str


def taken(text: str, extent: int, what: str, said: str, name: str) -> tuple[slice, str]:
    """The rows or columns that `text` means, and a warning if the matrix `name` has fewer.

    `said` is what the user wrote. UsageError where nothing is left.
    """
    asked = range_of(text, extent, what)
    begin, end, _ = asked.indices(extent)
    if begin >= end and extent > 0:
        raise UsageError(
            f"{said} takes no {what}s: {name} has {plural(extent, what)}", "FROM:TO, counted from 0"
        )
    beyond = any(each is not None and not -extent <= each <= extent for each in (asked.start, asked.stop))
    warning = f"{said} takes {plural(end - begin, what)}, from {begin} on: it has {plural(extent, what)}"
    return slice(begin, max(begin, end)), warning if beyond else ""
