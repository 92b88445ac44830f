"""All launches of a study as flat rows, for data frames, CSV and Parquet.

A row is one launch; of a measurement, one of its lines. Columns: run, axes, status …, then every number, text
and truth of the record under its dotted path, such as `seconds.total.max`. Lists are left to points.jsonl.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from tilewise.base.programs import optional
from tilewise.lab.study import store
from tilewise.lab.study.store import Entry

_OWN = (
    "run",
    "point",
    "launch",
    "warmup",
    "status",
    "seconds",
    "exit_code",
    "message",
    "started",
    "environment",
)


def rows(folder: str, notes: list[str] | None = None) -> list[dict[str, Any]]:
    """Every entry of a results folder as flat dictionaries that all have the same keys, in one order.

    `notes` gets a sentence on each line that was left out.
    """
    entries, told = store.load_entries(store.newest(folder))
    if notes is not None:
        notes += told
    return rows_of(entries)


def rows_of(entries: list[Entry]) -> list[dict[str, Any]]:
    """Flatten entries that are loaded already."""
    made = [row for entry in entries for row in _rows(entry)]
    keys = list(dict.fromkeys(key for row in made for key in row))
    return [{key: row.get(key) for key in keys} for row in made]


def _rows(entry: Entry) -> Iterator[dict[str, Any]]:
    own: dict[str, Any] = {
        "command_seconds" if name == "seconds" else name: getattr(entry, name) for name in _OWN
    }
    axes = {f"axes.{key}" if key in own else key: value for key, value in entry.axes.items()}
    base = {**axes, **own}
    for key, value in base.items():
        if isinstance(value, (list, dict)):
            base[key] = str(value)
    record = entry.record or {}
    plain = dict(_flat(record, ""))
    lines = record.get("lines")
    if not isinstance(lines, list):
        yield {**base, **_free(plain, base)}
        return
    for line in lines:
        flat = dict(_flat(line, ""))
        yield {**base, **_free(flat, base), **_free(plain, {**base, **flat})}


def _free(more: dict[str, Any], taken: dict[str, Any]) -> dict[str, Any]:
    """`more` under names of its own: an axis and a field of the record may be called the same."""
    return {f"record.{key}" if key in taken else key: value for key, value in more.items()}


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (str, int, float, bool)) or value is None:
        yield path, value


def as_csv(made: list[dict[str, Any]]) -> bytes:
    """The rows as CSV with a header; numbers with all their digits, what is missing as nothing."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(made[0]) if made else ["run"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(made)
    return file.getvalue().encode()


def as_parquet(made: list[dict[str, Any]]) -> bytes:
    """The rows as Parquet; a column of several types becomes texts. UsageError without pyarrow."""
    parquet, pyarrow = (optional(module, "arrow", "Parquet") for module in ("pyarrow.parquet", "pyarrow"))
    columns = {}
    for key in made[0] if made else ():
        values = [row[key] for row in made]
        kinds = {type(value) for value in values if value is not None}
        if kinds == {int, float}:
            values = [None if value is None else float(value) for value in values]
        elif len(kinds) > 1:
            values = [None if value is None else str(value) for value in values]
        columns[key] = values
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file)
    return file.getvalue()
