"""The launches of a study as a table for SQL, made in memory of points.jsonl.

points.jsonl ── export.rows ──▶ launches   a row a launch, or a line of a measurement; columns as exported
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tilewise.base.errors import RunError
from tilewise.study import export, store

TABLE = "launches"
_ALWAYS = ("point", "run", "status")  # columns, also where there are no launches
# SQLite takes 2000 columns; before 3.32 it took 999 values in a statement.
_MOST = 1900 if sqlite3.sqlite_version_info >= (3, 32) else 900


class Launches(NamedTuple):
    """A database with the table. `notes` are sentences on lines and columns that are not in it."""

    base: sqlite3.Connection
    notes: list[str]


def open_launches(folder: str) -> Launches:
    """The launches of a results folder, or of the newest one below. About half a millisecond each.

    UsageError where there are no results.
    """
    where = store.newest(folder)
    entries, told = store.load_entries(where)
    notes = [note.removeprefix(os.path.join(where, "")) for note in told]
    made = export.rows_of(entries)
    every = list(made[0]) if made else list(_ALWAYS)
    keys = every[:_MOST]
    if len(every) > len(keys):
        left = len(every) - len(keys)
        notes.append(f"{left} of {len(every)} columns are not in the table, from {every[_MOST]} on")
    columns = distinct(_spelt(key) for key in keys)
    for key, column in zip(keys, columns, strict=True):
        if _spelt(key) != column:
            notes.append(f"another column is called like {_spelt(key)!r}; this one is {column!r}")
    kinds = [_kind(row[key] for row in made) for key in keys]
    declared = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(columns, kinds, strict=True))
    base = sqlite3.connect(":memory:", isolation_level=None)
    try:
        base.execute(f"CREATE TABLE {TABLE} ({declared})")
        holes = ", ".join("?" * len(keys))
        base.executemany(
            f"INSERT INTO {TABLE} VALUES ({holes})", ([_value(row[key]) for key in keys] for row in made)
        )
    except sqlite3.Error as error:
        base.close()
        raise RunError(f"no table can be built from {where}: {error}") from None
    return Launches(base, notes)


def distinct(names: Iterable[str], folded: bool = True) -> list[str]:
    """`names` with a number behind each that was there before; `folded`: whatever the case of letters."""
    given = list(names)

    def fold(name: str) -> str:
        return name.lower() if folded else name

    reserved = {fold(name) for name in given}
    taken: set[str] = set()
    names_once = []
    for name in given:
        own, number = name, 1
        while fold(own) in taken or (own != name and fold(own) in reserved):
            number += 1
            own = f"{name}_{number}"
        taken.add(fold(own))
        names_once.append(own)
    return names_once


def quoted(name: str) -> str:
    """A name as SQL wants it."""
    return '"' + name.replace('"', '""') + '"'


def _spelt(key: str) -> str:
    """A key as a column's name, which holds no null character: SQL would end there."""
    return "".join(letter if letter.isprintable() else "?" for letter in key)


def _kind(values: Iterable[Any]) -> str:
    """What is declared of a column: SQLite compares and divides by it. Nothing where types are mixed."""
    kinds = {type(value) for value in values if value is not None}
    choices: Sequence[tuple[str, set[type]]] = (
        ("BOOLEAN", {bool}),
        ("INTEGER", {bool, int}),
        ("REAL", {bool, int, float}),
        ("TEXT", {str}),
    )
    return next((name for name, taken in choices if kinds and kinds <= taken), "")


def _value(value: Any) -> Any:
    """`value` as SQLite keeps it: truths as 0 and 1, whole numbers beyond 64 bits as the nearest real one.

    A NaN becomes NULL by itself, so that sums and means leave it out; infinity stays.
    """
    if not isinstance(value, int):
        return value
    if -(2**63) <= value < 2**63:
        return int(value)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
