"""The .feather and .arrow formats: tables of numbers as Arrow has them in memory.

A single batch that is not packed is a matrix column by column, and read in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from tilewise.base.errors import UsageError
from tilewise.base.units import plural
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats import ending_of, table
from tilewise.files.region import Region, Source
from tilewise.files.regular import open_regular

if TYPE_CHECKING:
    from tilewise.files import Content

FORMAT = table.FORMAT
create = table.create
_FILE, _STREAM, _OLD = b"ARROW1", b"\xff\xff\xff\xff", b"FEA1"  # what files begin with


def inspect(path: str, name: str, member: str) -> Source:
    """The columns that `member` names, or all."""
    size = _require_arrow(path, name)
    kind = ending_of(path)[1:]
    columns = table.choose(_schema(path, name), name, path, member)
    rows, count = _extent(path, name, columns.places[:1])
    offset = _offset(path, name, columns, rows) if count == 1 and rows else None
    more: dict[str, Any] = {"encoded": offset is None, "offset": offset or 0}
    notes = [] if offset is not None else [f"stored in {plural(count, 'batch')}, decoded before it is read"]
    if columns.rounded:
        notes.append("integers beyond 2⁵³ are rounded, because float64 does not hold them")
    return table.source(columns, rows, path, name, member, size, kind, notes=tuple(notes), **more)


def decode(source: Source, out: BinaryIO) -> None:
    """Writes the numbers column by column."""
    columns = table.choose(_schema(source.path, source.name), source.name, source.path, source.member)
    table.write_columns(lambda places: _batches(source.path, source.name, places), columns, source, out)


def contents(path: str, name: str) -> list[Content]:
    """List the columns."""
    _require_arrow(path, name)
    schema = _schema(path, name)
    rows, count = _extent(path, name, [0]) if len(schema) else (0, 0)
    return table.contents_of(schema, rows, f"in {plural(count, 'batch')}")


def encode(raw: Region, path: str, planes: int, names: tuple[str, ...] = ()) -> None:
    """Writes a single batch, so that it can be read in place; its numbers come from the mapped file."""
    from pyarrow import ipc

    batch = table.table_of(raw, names)
    with ipc.new_file(path, batch.schema) as out:
        out.write_batch(batch)


def _require_arrow(path: str, name: str) -> int:
    """The size of the file; UsageError where it is none of Arrow's."""
    file, size = open_regular(path, name)
    with file:
        begin = file.read(8)
    if begin.startswith((_FILE, _STREAM)):
        return size
    if begin.startswith(_OLD):
        raise UsageError(
            f"{name} is a Feather file of version 1, but only version 2 is read",
            "write it again with pyarrow.feather.write_feather",
        )
    what = "has no signature of an Arrow file" if size else "is empty"
    raise UsageError(f"{name} {what}, but a {ending_of(path)} file was expected")


def _mapped(path: str, name: str) -> Any:
    return table.arrow(name).memory_map(path).read_buffer()


def _reader(whole: Any, fields: list[int]) -> Any:
    """Reads batches with these fields, or, if none are named, with all, which then lie in the mapped file."""
    import pyarrow
    from pyarrow import ipc

    opened = ipc.open_stream if whole.slice(0, 4).to_pybytes() == _STREAM else ipc.open_file
    return opened(pyarrow.BufferReader(whole), options=ipc.IpcReadOptions(included_fields=sorted(fields)))


def _schema(path: str, name: str) -> Any:
    return _reader(_mapped(path, name), []).schema


def _all(reader: Any) -> Iterator[Any]:
    if hasattr(reader, "num_record_batches"):  # a file; a stream is iterated over
        return (reader.get_batch(number) for number in range(reader.num_record_batches))
    return iter(reader)


def _extent(path: str, name: str, fields: list[int]) -> tuple[int, int]:
    """Rows and batches; one field is unpacked only where nothing says how many rows a batch has."""
    reader = _reader(_mapped(path, name), fields)
    if hasattr(reader, "count_rows"):
        return reader.count_rows(), reader.num_record_batches
    found = [batch.num_rows for batch in table.each(_all(reader), name)]
    return sum(found), len(found)


def _batches(path: str, name: str, places: list[int]) -> Iterator[Any]:
    """Record batches with the columns at `places`, in their order."""
    ordered = [sorted(set(places)).index(place) for place in places]
    for batch in _all(_reader(_mapped(path, name), sorted(set(places)))):
        yield batch.select(ordered)


def _offset(path: str, name: str, columns: table.Columns, rows: int) -> int | None:
    """Find where the columns of the only batch lie, one behind the other; None where they do not."""
    size = rows * ITEMSIZE.get(columns.types[0], 0)
    whole = _mapped(path, name)
    if len(set(columns.types)) > 1 or not 0 < size * len(columns.places) <= whole.size:
        return None
    batch = next(table.each(_all(_reader(whole, [])), name)).select(columns.places)
    batch.validate()
    if any(column.null_count for column in batch.columns) or batch.num_rows != rows:
        return None
    begins = [column.buffers()[1].address - whole.address for column in batch.columns]
    adjoin = all(begin == begins[0] + place * size for place, begin in enumerate(begins))
    return begins[0] if adjoin and 0 <= begins[0] <= whole.size - size * len(begins) else None
