"""`tilewise study query`: SQL over the launches of a study, as a table, CSV or JSON."""

from __future__ import annotations

import csv as csv_files
import io
import shutil
import sys
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from tilewise.cli import study_output
from tilewise.cli.declare import SHOW, WHAT, Parameter
from tilewise.cli.parse import parse
from tilewise.cli.study_results import tell_notes
from tilewise.units import plural

if TYPE_CHECKING:
    from tilewise.study.query import Answer

_PIPED = 400  # characters that a table in a pipe may be wide, as on `report.terminal`
_EXAMPLE = 40
_NONE = "–"


def query(words: list[str]) -> int:
    """Answers one query, or prints the columns there are; returns the exit code."""
    asked = parse("study query", _queried, words)
    if asked is None:
        return 0
    folder, sql, csv, json = asked
    from tilewise.study import index, store
    from tilewise.study import query as queries

    where = store.newest(folder)
    study_output.check([where], {"--csv": csv, "--json": json})
    found = index.open_index(folder)
    try:
        tell_notes(found.notes)
        answer = queries.columns(found.base) if sql is None else queries.ask(found.base, sql)
        if csv is None and json is None:
            if sql is None:
                (count,) = found.base.execute(f"SELECT count(*) FROM {index.TABLE}").fetchone()
                print(f"{where}: table {index.TABLE}, {plural(count, 'row')}, with these columns")
                answer = answer._replace(rows=[(*row[:2], _short(row[2])) for row in answer.rows])
            _show(answer)
    finally:
        found.base.close()
    if csv is not None:
        study_output.write("--csv", csv, _as_csv(answer))
    if json is not None:
        study_output.write("--json", json, _as_json(answer))
    return 0


def _queried(
    folder: Annotated[
        str, Parameter(name="DIR", group=WHAT, help="A results folder, or one above: its newest.")
    ],
    sql: Annotated[
        str | None,
        Parameter(name="SQL", group=WHAT, help="A SELECT from the table launches; the columns, if not said."),
    ] = None,
    /,
    *,
    csv: Annotated[
        str | None,
        Parameter(name="--csv", group=SHOW, allow_leading_hyphen=True, help="FILE; - for standard output."),
    ] = None,
    json: Annotated[
        str | None,
        Parameter(name="--json", group=SHOW, allow_leading_hyphen=True, help="FILE; - for standard output."),
    ] = None,
) -> tuple[str, str | None, str | None, str | None]:
    """Answer SQL over all launches, such as "SELECT io, [seconds.total.max] FROM launches"."""
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
    texts = [[_text(value) for value in row] for row in answer.rows]
    heads = [_line(name) for name in answer.names]
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(heads, *texts, strict=True)]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPED
    if sum(widths) + 3 * len(widths) > room:
        head = max(map(cell_len, heads))
        if not texts:
            print(f"no rows of {', '.join(heads)}")
        for number, row in enumerate(texts, 1):
            print(f"row {number}")
            for name, text in zip(heads, row, strict=True):
                print(f"  {name}{' ' * (head - cell_len(name))}  {text}")
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from tilewise.report.terminal import show

    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(heads):
        numbers = all(row[place] is None or isinstance(row[place], (int, float)) for row in answer.rows)
        grid.add_column(Text(name), justify="right" if numbers and answer.rows else "left", no_wrap=True)
    for row in texts:
        grid.add_row(*map(Text, row))
    show(grid)


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
