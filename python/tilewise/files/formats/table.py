"""Tables of numbers, which Parquet and Arrow files hold: a matrix column by column, with names.

Columns of several types become one as numpy has it. What is missing is nan.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.programs import optional
from tilewise.base.units import listing, plural
from tilewise.files.checks import missing, numbers_bytes, printable
from tilewise.files.dtypes import ALL, ITEMSIZE, is_integer
from tilewise.files.formats import Format, split_name
from tilewise.files.headed import raw_beside
from tilewise.files.region import New, Region, Source

if TYPE_CHECKING:
    from tilewise.files import Content

FORMAT = Format(
    numbers=tuple(dtype for dtype in ALL if not dtype.startswith("complex")),
    member="column",
    orders=("F",),
    table=True,
)
EXACT = 1 << 53  # up to here float64 holds all integers
_WIDEST = 1 << 16  # columns that are written: libraries take seconds for so many, and minutes for more
_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}  # by Arrow's names
_AT_ONCE = 64  # columns that are read side by side: a page of each lies in memory
_LISTED = 1000  # columns
_SHOWN = 8

Batches = Callable[[list[int]], Iterable[Any]]  # record batches with these columns, from the first row on


class Columns(msgspec.Struct, frozen=True):
    """Columns of a table that make a matrix, by their places in it, with their names and types."""

    places: list[int]
    names: list[str]
    types: list[str]
    warnings: tuple[str, ...] = ()

    @property
    def dtype(self) -> str:
        """The type that holds all of them."""
        import numpy

        common = numpy.result_type(*sorted(set(self.types))).name
        return "uint8" if common == "bool" else str(common)

    @property
    def rounded(self) -> list[int]:
        """Numbers of the columns with integers that float64 may round."""
        if self.dtype != "float64":
            return []
        return [number for number, dtype in enumerate(self.types) if dtype in ("int64", "uint64")]


def arrow(name: str, module: str = "pyarrow") -> Any:
    """The library, or a part of it; UsageError where it is not installed."""
    return optional(module, "arrow", name)


def choose(schema: Any, name: str, path: str, member: str) -> Columns:
    """The columns that `member` names, `x,y`, or all but the index of pandas; UsageError for no numbers."""
    kinds = [_dtype(field.type) for field in schema]
    places = list(range(len(schema)))
    warnings: tuple[str, ...] = ()
    if member:
        places = _named(schema.names, kinds, name, member)
    elif index := [place for place, column in enumerate(schema.names) if column in _index(schema)]:
        places = [place for place in places if place not in index]
        left = listing([printable(schema.names[place]) for place in index[:_SHOWN]], "and")
        warnings = (f"the index {left}, which pandas stored as a column, is left out",)
    if not places:
        raise UsageError(f"{name} has no columns, but a table of numbers was expected")
    for place in places:
        if not kinds[place]:
            kept = [name for name, kind in zip(schema.names, kinds, strict=True) if kind and "," not in name]
            numbers = [printable(name) for name in kept if name not in _index(schema)]
            some = ",".join(numbers[:_SHOWN]) + (",…" if len(numbers) > _SHOWN else "")
            raise UsageError(
                f"{name} has the column {printable(schema.names[place])} of type "
                f"{printable(str(schema.field(place).type))}, but numbers were expected",
                f"name the columns to take: {path}:{some}" if numbers else "",
            )
    return Columns(
        places, [schema.names[each] for each in places], [kinds[each] for each in places], warnings
    )


def source(
    columns: Columns, rows: int, path: str, name: str, member: str, size: int, kind: str, **more: Any
) -> Source:
    """Describe a matrix of `columns`; `more` says where it lies, if it can be read there."""
    numbers_bytes(rows, len(columns.places), columns.dtype, name)
    notes = more.pop("notes", ())
    types = sorted(set(columns.types), key=str)
    if len(types) > 1:
        notes = (*notes, f"columns of {listing(types, 'and')}, taken as {columns.dtype}")
    return Source(
        path=path,
        name=name,
        rows=rows,
        columns=len(columns.places),
        dtype=columns.dtype,
        order="F",
        file_bytes=size,
        format=kind,
        member=member,
        names=tuple(columns.names),
        notes=notes,
        warnings=(*columns.warnings, *more.pop("warnings", ())),
        **more,
    )


def write_columns(batches: Batches, columns: Columns, source: Source, out: BinaryIO) -> None:
    """Writes the columns one after the other, as many at a time as are read side by side."""
    import numpy

    native: Any = numpy.dtype(source.dtype).newbyteorder("<")
    for first in range(0, len(columns.places), _AT_ONCE):
        names = columns.names[first : first + _AT_ONCE]
        row = 0
        for batch in each(batches(columns.places[first : first + _AT_ONCE]), source.name):
            batch.validate()
            if row + batch.num_rows > source.rows:
                break
            for number, column in enumerate(batch.columns):
                out.seek(((first + number) * source.rows + row) * native.itemsize)
                out.write(_values(column, native, source.name, names[number]).data)
            row += batch.num_rows
        if row != source.rows:
            raise UsageError(f"{source.name} does not hold the {source.rows} rows that its header promises")


def each(batches: Iterable[Any], name: str) -> Iterator[Any]:
    """The record batches; UsageError where one asks for more memory than there is, as broken files do."""
    steps = iter(batches)
    while True:
        found: list[Any] = []
        with contextlib.suppress(MemoryError):
            found.append(next(steps, None))
        if not found:
            raise UsageError(f"{name} is broken, or has a batch of rows that does not fit in memory")
        if found[0] is None:
            return
        yield found[0]


def contents_of(schema: Any, rows: int, layout: str) -> list[Content]:
    """The columns of a table; none is a matrix by itself."""
    from tilewise.files import Content

    return [
        Content(
            field.name,
            (rows,),
            {"": printable(str(field.type)), "bool": "uint8"}.get(dtype := _dtype(field.type), dtype),
            layout,
            matrix=False,
        )
        for field, _ in zip(schema, range(_LISTED), strict=False)
    ]


def create(new: New) -> Region:
    """Makes the raw file that the numbers go to before they are packed, column by column."""
    arrow(new.name)
    columns = new.shape[1]
    if not 1 <= columns <= _WIDEST:
        raise UsageError(
            f"the output {new.name} would have {plural(columns, 'column')}, but a table has 1 to {_WIDEST}",
            "a .npy file",
        )
    names_of_new(new.name, columns, new.names)
    return raw_beside(new)


def table_of(raw: Region, names: Sequence[str]) -> Any:
    """The numbers of a raw file as a record batch, its columns called so; nothing is read yet."""
    import numpy
    import pyarrow

    kind = pyarrow.from_numpy_dtype(numpy.dtype(raw.dtype))
    size = raw.rows * ITEMSIZE[raw.dtype]
    whole = pyarrow.py_buffer(numpy.memmap(raw.path, "u1", "r") if raw.bytes else b"")
    arrays = [
        pyarrow.Array.from_buffers(kind, raw.rows, [None, whole.slice(place * size, size)])
        for place in range(raw.columns)
    ]
    return pyarrow.RecordBatch.from_arrays(arrays, names_of_new(raw.name, raw.columns, names))


def names_of_new(name: str, columns: int, known: Sequence[str]) -> list[str]:
    """Names of new columns: what stands behind the colon, those `known` of the input, or c0, c1, …"""
    member = split_name(name)[1]
    if not member:
        sound = len(known) == columns == len({*known} - {""})
        return list(known) if sound else [f"c{place}" for place in range(columns)]
    names = member.split(",") if columns > 1 else [member]
    if len(names) != columns or len(set(names)) != columns or "" in names:
        given = plural(len(set(names) - {""}), "name")
        raise UsageError(
            f"the output {name} has {plural(columns, 'column')}, but {given} for them",
            f"{split_name(name)[0]}, which calls them c0, c1, …",
        )
    return names


def _values(column: Any, native: Any, name: str, called: str) -> Any:
    """The numbers of a column of a batch, nan where they are missing."""
    import numpy
    import pyarrow

    if column.null_count and is_integer(native.name):
        raise UsageError(
            f"{name} has missing numbers in the column {printable(called)}, and {native.name} has no nan",
            "fill them, or store that column as float64",
        )
    if pyarrow.types.is_boolean(column.type):
        column = column.cast(pyarrow.uint8())
    return numpy.ascontiguousarray(column.to_numpy(zero_copy_only=False), native)


def _dtype(kind: Any) -> str:
    """Numpy's name of a type of numbers; empty for all else."""
    from pyarrow import types

    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return _FLOATS.get(str(kind), str(kind))  # before version 16 the library asks pandas for it
    return ""


def _named(names: list[str], kinds: list[str], name: str, member: str) -> list[int]:
    wanted = [member] if member in names else member.split(",")
    for each in wanted:
        if each not in names:
            raise missing(
                name, "column", each, [column for column, kind in zip(names, kinds, strict=True) if kind]
            )
        if names.count(each) > 1:
            raise UsageError(f"{name} has several columns called {printable(each)}")
    places = {column: place for place, column in enumerate(names)}
    return [places[each] for each in wanted]


def _index(schema: Any) -> list[str]:
    """Columns that are an index of pandas, by what it says of them itself."""
    try:
        said = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        return [each for each in said.get("index_columns", []) if isinstance(each, str)]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return []
