"""SQL over the launches of a study: what it answers, read-only, and what its mistakes most likely meant.

Names stand in double quotes, as most have dots. Where there is no column "seconds.totl.max", SQLite takes
that for a text and answers nonsense; so names are handed to it in backticks, which are never taken for texts.
"""

from __future__ import annotations

import difflib
import re
import sqlite3
from typing import Any, NamedTuple

from tilewise.base.errors import UsageError
from tilewise.study.launches import TABLE, distinct, quoted

_NEAR = 4
_READS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_STEPS = 100_000  # of SQLite's machine between two looks for Ctrl-C, about a millisecond
# Texts, comments, names in other quotes, names in double quotes (the only group).
_TOKENS = re.compile(
    r"""'(?:[^']|'')*'|--[^\n]*|/\*.*?(?:\*/|\Z)|\[[^\]]*\]|`(?:[^`]|``)*`|"((?:[^"]|"")*)\"""", re.DOTALL
)
_BACKTICKS = re.compile(r"`((?:[^`]|``)*)`")


class Answer(NamedTuple):
    """Names of columns, all different, and rows of None, int, float and str."""

    names: list[str]
    rows: list[tuple[Any, ...]]


def columns(base: sqlite3.Connection) -> Answer:
    """Every column of the launches: its name, its type (empty: several, or no value at all) and a value.

    The value is of a launch that is done, where there is one.
    """
    rows = []
    for name, kind in _declared(base):
        some = f"SELECT {quoted(name)} FROM {TABLE} WHERE {quoted(name)} IS NOT NULL"
        row = base.execute(f"{some} AND status = 'done' LIMIT 1").fetchone()
        row = row or base.execute(f"{some} LIMIT 1").fetchone() or (None,)
        rows.append((name, kind, _plain(row[0])))
    return Answer(["column", "type", "example"], rows)


def ask(base: sqlite3.Connection, sql: str) -> Answer:
    """What one SELECT gives. UsageError for what is broken, writes, or reaches outside of the table.

    The connection can only read from then on.
    """
    known = [name for name, _ in _declared(base)]
    refused = False

    def allowed(action: int, *_: str | None) -> int:
        nonlocal refused
        refused = refused or action not in _READS
        return sqlite3.SQLITE_OK if action in _READS else sqlite3.SQLITE_DENY

    base.execute("PRAGMA query_only = ON")
    base.set_authorizer(allowed)
    base.set_progress_handler(lambda: 0, _STEPS)  # a signal shows in Python code only
    try:
        cursor = base.execute(_strict(sql))
        rows = [tuple(map(_plain, row)) for row in cursor]
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        if str(error) == "interrupted":
            raise KeyboardInterrupt from None
        if refused:
            raise UsageError(
                "a query only reads the table; this one would change something or access something else",
                f"SELECT … FROM {TABLE}",
            ) from None
        said = str(error).rstrip(".")
        raise UsageError(f"the query cannot be answered: {said}", _advice(said, sql, known)) from None
    if cursor.description is None:
        raise UsageError("the query is empty", f"SELECT … FROM {TABLE}")
    names = [name for name, *_ in cursor.description]
    if "`" not in sql:  # an expression without a name is called as it is spelt
        names = [name if name in known else _BACKTICKS.sub(_doubled, name) for name in names]
    return Answer(distinct(names, folded=False), rows)


def _declared(base: sqlite3.Connection) -> list[tuple[str, str]]:
    """Names and types of the columns."""
    return [(name, kind) for _, name, kind, *_ in base.execute(f"PRAGMA table_info({TABLE})")]


def _strict(sql: str) -> str:
    """`sql` with names in backticks instead of double quotes."""

    def strict(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group()
        return "`" + name.replace('""', '"').replace("`", "``") + "`"

    return _TOKENS.sub(strict, sql)


def _doubled(match: re.Match[str]) -> str:
    """A name in backticks in double quotes again."""
    return quoted(match.group(1).replace("``", "`"))


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _advice(said: str, sql: str, known: list[str]) -> str:
    """What may help: names in quotes, names that are like the unknown one, the name of the table."""
    if said.startswith("no such table"):
        return f"the table is called {TABLE}"
    folded = {name.lower(): name for name in reversed(known)}
    bare = _TOKENS.sub(" ", sql).lower()
    dotted = dict.fromkeys(word for word in re.findall(r"\w+(?:\.\w+)+", bare) if word in folded)
    if dotted:
        # Brackets in the advice: where quotes were forgotten, a shell has often eaten them.
        names = ", ".join(f"[{folded[word]}]" for word in dotted)
        return f"names with dots in brackets or in double quotes: {names}"
    unknown = re.fullmatch(r"no such column: (.*)", said, re.DOTALL)
    if unknown is None:
        return ""
    word = unknown.group(1).lower()
    near = difflib.get_close_matches(word, folded, n=_NEAR)
    near += [name for name in folded if word in name or name in word.split(".")]
    names = ", ".join(quoted(folded[name]) for name in list(dict.fromkeys(near))[:_NEAR])
    return names or "tilewise study query DIR, which prints the columns"
