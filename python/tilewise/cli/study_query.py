"""`tilewise study query`: SQL over the launches of a study, as a table, CSV or JSON."""

from __future__ import annotations

import csv as csv_files
import io
import shutil
import sys
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tilewise.base.declare import FOLDER, JSON, SHOW, WHAT, Parameter
from tilewise.base.units import plural
from tilewise.cli.answers import write_file
from tilewise.cli.parse import parse
from tilewise.cli.study_results import CSV, tell_notes

if TYPE_CHECKING:
    from tilewise.study.query import Answer

_PIPED = 400  # characters that a table in a pipe may be wide, as on `report.terminal`
_EXAMPLE = 40
_NONE = "–"


def query(words: list[str]) -> int:
    """Answers one query, or prints the columns there are; returns the exit code."""
    asked = parse("study query", query_request, words)
    if asked is None:
        return 0
    folder, sql, csv, json = asked
    from tilewise.study import launches, outputs, store
    from tilewise.study import query as queries

    where = store.newest(folder)
    outputs.check([where], {"--csv": csv, "--json": json})
    opened = launches.open_launches(folder)
    try:
        tell_notes(opened.notes)
        answer = queries.columns(opened.base) if sql is None else queries.ask(opened.base, sql)
        if csv is None and json is None:
            if sql is None:
                (count,) = opened.base.execute(f"SELECT count(*) FROM {launches.TABLE}").fetchone()
                print(f"{where}: table {launches.TABLE}, {plural(count, 'row')}, with these columns")
                answer = answer._replace(rows=[(*row[:2], _short(row[2])) for row in answer.rows])
            _show(answer)
    finally:
        opened.base.close()
    if csv is not None:
        write_file(csv, _as_csv(answer), "--csv")
    if json is not None:
        write_file(json, _as_json(answer), "--json")
    return 0


def query_request(
    folder: Annotated[
        str,
        Parameter(
            name="DIR",
            value=FOLDER,
            group=WHAT,
            help="A results folder, or the folder of a study: its newest results.",
        ),
    ],
    sql: Annotated[
        str | None,
        Parameter(
            name="SQL",
            group=WHAT,
            help="A SELECT on the table launches; by default, list its columns.",
        ),
    ] = None,
    /,
    *,
    csv: Annotated[
        str | None,
        Parameter(
            name="--csv", value=CSV, stream=True, group=SHOW, help="File to write; - for standard output."
        ),
    ] = None,
    json: Annotated[
        str | None,
        Parameter(
            name="--json", value=JSON, stream=True, group=SHOW, help="File to write; - for standard output."
        ),
    ] = None,
) -> tuple[str, str | None, str | None, str | None]:
    """Answer SQL over all launches: "SELECT io, [seconds.total.max] FROM launches", for example.

    Examples:
        tilewise study query results/quick
            The columns that there are.
        tilewise study query results/quick "SELECT io, [seconds.total.max] FROM launches"
            Two columns of all launches.
    """
    return folder, sql, csv, json


def _as_csv(answer: Answer) -> bytes:
    """With a header; numbers with all their digits, NULL as nothing."""
    file = io.StringIO(newline="")
    writer = csv_files.writer(file, lineterminator="\n")
    writer.writerow(answer.names)
    writer.writerows(answer.rows)
    return file.getvalue().encode()


def _as_json(answer: Answer) -> bytes:
    """A list of objects, one a line; NULL and what JSON cannot say (infinity) as null."""
    lines = [msgspec.json.encode(dict(zip(answer.names, row, strict=True))) for row in answer.rows]
    return b"[" + b",\n ".join(lines) + b"]\n"


def _show(answer: Answer) -> None:
    """A table where it fits into the width, else a block of lines for each row."""
    from tilewise.report.render.terminal import Screen, show
    from tilewise.report.table import Column, Table

    texts = [[_text(value) for value in row] for row in answer.rows]
    table = Table("", "", [])
    for place, name in enumerate(answer.names):
        numbers = all(row[place] is None or isinstance(row[place], (int, float)) for row in answer.rows)
        table.columns.append(Column(_line(name), numbers=numbers))
    for row in texts:
        table.add(*row)
    screen = Screen()
    screen.table(table)
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPED
    if not texts:
        screen.line(f"no rows of {', '.join(column.title for column in table.columns)}")
    elif max(map(len, screen.text().splitlines())) > room:
        screen = Screen()
        for number, row in enumerate(texts, 1):
            screen.line(f"row {number}")
            screen.pairs((f"  {column.title}", text) for column, text in zip(table.columns, row, strict=True))
    show(screen)


def _text(value: Any) -> str:
    """A value on the terminal: six figures of a real number."""
    if value is None:
        return _NONE
    return f"{value:.6g}" if isinstance(value, float) else _line(str(value))


def _line(text: str) -> str:
    """`text` in one line: what is no printable letter as Python would write it."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _short(value: Any) -> Any:
    """An example is there to be recognised."""
    return f"{value[: _EXAMPLE - 1]}…" if isinstance(value, str) and len(value) > _EXAMPLE else value
