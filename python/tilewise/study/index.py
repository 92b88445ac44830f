"""`index.sqlite` beside points.jsonl: the launches of a study as a table for SQL, made anew when it is stale.

points.jsonl ── export.rows ──▶ launches   a row a launch, or a line of a measurement; columns as exported
                                about      what it was made of: names, sizes and times of the points files

The index can be thrown away at any time. Queries never wait for each other: each that finds it stale makes
its own in memory, answers from there, and leaves a copy that gets its name at once; none where the folder
cannot be written.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import tilewise
from tilewise.errors import RunError
from tilewise.machine.replacing import replace
from tilewise.study import export, store

INDEX, TABLE = "index.sqlite", "launches"
_SCHEMA = 1  # of what is in the file; another number makes all indexes stale
_INDEXED = ("point", "run", "status")
# SQLite takes 2000 columns; before 3.32 it took 999 values in a statement.
_MOST = 1900 if sqlite3.sqlite_version_info >= (3, 32) else 900


class Index(NamedTuple):
    """An open index. `notes` are sentences on lines and columns that are not in it."""

    base: sqlite3.Connection
    notes: list[str]


class _Content(NamedTuple):
    """What an index is made of: columns of `launches` with their types, its rows, and what `about` says."""

    columns: list[str]
    kinds: list[str]
    rows: list[tuple[Any, ...]]
    indexed: list[str]
    about: dict[str, str]


def open_index(folder: str) -> Index:
    """The index of a results folder, or of the newest one below; the one that is kept, if it is not stale.

    UsageError where there are no results.
    """
    where = store.newest(folder)
    path = os.path.join(where, INDEX)
    made_of = _made_of(where)
    base = _kept(path, made_of) or _made(where, path, made_of)
    (notes,) = base.execute("SELECT value FROM about WHERE name = 'notes'").fetchone()
    return Index(base, json.loads(notes))


def distinct(names: Iterable[str], folded: bool = True) -> list[str]:
    """`names` with a number behind each that was there before; `folded`: whatever the case of letters."""
    given = list(names)

    def fold(name: str) -> str:
        return name.lower() if folded else name

    reserved = {fold(name) for name in given}
    taken: set[str] = set()
    found = []
    for name in given:
        own, number = name, 1
        while fold(own) in taken or (own != name and fold(own) in reserved):
            number += 1
            own = f"{name}_{number}"
        taken.add(fold(own))
        found.append(own)
    return found


def quoted(name: str) -> str:
    """A name as SQL wants it."""
    return '"' + name.replace('"', '""') + '"'


def _made_of(folder: str) -> str:
    """Names, sizes and times of the points files, and the versions: an index of another one is stale."""
    files = []
    for name in store.points_in(folder):
        told = os.stat(os.path.join(folder, name))
        files.append([name, told.st_size, told.st_mtime_ns])
    return json.dumps([_SCHEMA, tilewise.__version__, _MOST, files])


def _kept(path: str, made_of: str) -> sqlite3.Connection | None:
    """The index that is there, or None where there is none that can be used."""
    if not os.path.isfile(path):
        return None
    # immutable: no locks, which some file systems lack; a file that is only ever replaced needs none.
    address = f"file://{quote(os.fsencode(os.path.abspath(path)))}?mode=ro&immutable=1"
    base = None
    try:
        base = sqlite3.connect(address, uri=True, isolation_level=None)
        found = base.execute("SELECT value FROM about WHERE name = 'made of'").fetchone()
        if found == (made_of,):
            return base
    except sqlite3.Error:
        pass  # torn, or no index at all: made anew
    if base is not None:
        base.close()
    return None


def _made(folder: str, path: str, made_of: str) -> sqlite3.Connection:
    """A new index in memory, and its copy at `path` where that can be written."""
    content = _content(folder, made_of)
    base = sqlite3.connect(":memory:", isolation_level=None)
    try:
        _fill(base, content)
    except sqlite3.Error as error:
        base.close()
        raise RunError(f"no index can be made of {folder}: {error}") from None
    if os.access(folder, os.W_OK):
        with contextlib.suppress(OSError, sqlite3.Error):
            replace(path, _bytes(base))
    return base


def _content(folder: str, made_of: str) -> _Content:
    entries, told = store.load_entries(folder)
    notes = [note.removeprefix(os.path.join(folder, "")) for note in told]  # folders move
    made = export.rows_of(entries)
    every = list(made[0]) if made else list(_INDEXED)
    keys = every[:_MOST]
    if len(every) > len(keys):
        left = len(every) - len(keys)
        notes.append(f"{left} of {len(every)} columns are not in the index, from {every[_MOST]} on")
    columns = distinct(_spelt(key) for key in keys)
    for key, column in zip(keys, columns, strict=True):
        if _spelt(key) != column:
            notes.append(f"another column is called like {_spelt(key)!r}; this one is {column!r}")
    return _Content(
        columns=columns,
        kinds=[_kind(row[key] for row in made) for key in keys],
        rows=[tuple(_value(row[key]) for key in keys) for row in made],
        indexed=[column for key, column in zip(keys, columns, strict=True) if key in _INDEXED],
        about={"made of": made_of, "notes": json.dumps(notes)},
    )


def _fill(base: sqlite3.Connection, content: _Content) -> None:
    declared = [f"{quoted(name)} {kind}" for name, kind in zip(content.columns, content.kinds, strict=True)]
    holes = ", ".join("?" * len(declared))
    base.execute("BEGIN")
    base.execute(f"CREATE TABLE {TABLE} ({', '.join(declared)})")
    base.executemany(f"INSERT INTO {TABLE} VALUES ({holes})", content.rows)
    for number, column in enumerate(content.indexed):
        base.execute(f"CREATE INDEX by_{number} ON {TABLE} ({quoted(column)})")
    base.execute("CREATE TABLE about (name TEXT, value TEXT)")
    base.executemany("INSERT INTO about VALUES (?, ?)", list(content.about.items()))
    base.execute("COMMIT")


def _bytes(base: sqlite3.Connection) -> bytes:
    """The whole database as a file holds it."""
    with tempfile.TemporaryDirectory(prefix="tilewise-") as place:
        path = os.path.join(place, INDEX)
        copy = sqlite3.connect(path)
        try:
            base.backup(copy)
        finally:
            copy.close()
        with open(path, "rb") as file:
            return file.read()


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
