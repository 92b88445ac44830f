"""The .parquet format: tables of numbers, unpacked and packed by pyarrow a few columns at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from tilewise.base.errors import UsageError
from tilewise.base.units import listing, plural
from tilewise.files.checks import printable
from tilewise.files.formats import table
from tilewise.files.region import Region, Source
from tilewise.files.regular import size_of

if TYPE_CHECKING:
    from tilewise.files import Content

FORMAT = table.FORMAT
create = table.create
_ROWS = 1 << 16  # that are unpacked at once
_GROUP = 1 << 20  # rows of a group


def inspect(path: str, name: str, member: str) -> Source:
    """The columns that `member` names, or all."""
    size = size_of(path, name, ".parquet file")
    with _opened(path, name) as book:
        columns = table.choose(book.schema_arrow, name, path, member)
        rows = book.metadata.num_rows
        if rows < 0:
            raise UsageError(f"{name} declares {rows} rows")
        notes, warnings = _rounding(book.metadata, columns)
        return table.source(
            columns,
            rows,
            path,
            name,
            member,
            size,
            "parquet",
            encoded=True,
            notes=("a Parquet file is packed", *notes),
            warnings=warnings,
        )


def decode(source: Source, out: BinaryIO) -> None:
    """Writes the numbers column by column."""
    with _opened(source.path, source.name) as book:
        names = book.schema_arrow.names
        columns = table.choose(book.schema_arrow, source.name, source.path, source.member)

        def batches(places: list[int]) -> Iterable[Any]:
            wanted = [names[place] for place in places]
            if len(set(names)) < len(names):  # the library takes columns by their names
                for batch in book.iter_batches(_ROWS):
                    yield batch.select(places)
                return
            for batch in book.iter_batches(_ROWS, columns=wanted):
                yield batch.select(wanted)

        table.write_columns(batches, columns, source, out)


def contents(path: str, name: str) -> list[Content]:
    """List the columns."""
    with _opened(path, name) as book:
        groups = plural(book.metadata.num_row_groups, "group")
        return table.contents_of(book.schema_arrow, book.metadata.num_rows, f"in {groups} of rows")


def encode(raw: Region, path: str, planes: int, names: tuple[str, ...] = ()) -> None:
    """Packs the numbers; the file that is mapped needs no memory of ours."""
    import pyarrow
    from pyarrow import parquet

    whole = pyarrow.Table.from_batches([table.table_of(raw, names)])
    parquet.write_table(whole, path, row_group_size=_GROUP, use_dictionary=False)


@contextlib.contextmanager
def _opened(path: str, name: str) -> Iterator[Any]:
    parquet = table.arrow(name, "pyarrow.parquet")
    with parquet.ParquetFile(path, memory_map=True) as book:
        yield book


def _rounding(metadata: Any, columns: table.Columns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A note on integers that may lie beyond what float64 holds, or a warning where they do."""
    unknown, beyond = [], []
    leaves = (
        {metadata.schema.column(leaf).path: leaf for leaf in range(metadata.num_columns)}
        if columns.rounded
        else {}
    )
    for number in columns.rounded:
        called, leaf = printable(columns.names[number]), leaves.get(columns.names[number])
        known: list[Any] = []
        for group in range(metadata.num_row_groups if leaf is not None else 0):
            said = metadata.row_group(group).column(leaf).statistics
            known += [None] if said is None or not said.has_min_max else [said.min, said.max]
        if leaf is None or None in known:
            unknown.append(called)
        elif known and (min(known) < -table.EXACT or max(known) > table.EXACT):
            beyond.append(called)
    return _sentence("may be rounded", unknown), _sentence("are rounded", beyond)


def _sentence(what: str, names: list[str]) -> tuple[str, ...]:
    if not names:
        return ()
    shown = names[:8] if len(names) <= 8 else [*names[:7], f"{len(names) - 7} more columns"]
    return (f"integers beyond 2⁵³ in {listing(shown, 'and')} {what}, because float64 does not hold them",)
