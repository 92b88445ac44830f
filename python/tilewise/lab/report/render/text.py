"""A table as text for other programs: CSV for a spreadsheet, Markdown for a document, JSON for a script."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

import msgspec

from tilewise.base.errors import clean
from tilewise.lab.report.table import Column, Table

_BASE = {"ns/B": "s/B", "GB/s": "B/s", "µs": "s", "time": "s", "interval": "", "error": "part"}


def as_csv(table: Table) -> str:
    """`table` for a spreadsheet: base units where a number stands behind a cell, else its words."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow([_heading(column, base_unit(column)) for column in table.columns])
    for row in table.rows:
        writer.writerow([repr(cell.value) if cell.value is not None else _tame(cell.text) for cell in row])
    return lines.getvalue()


def as_markdown(table: Table) -> str:
    """`table` for a README: numbers as a page shows them."""
    lines = [f"**{_plain(table.title)}**", ""] if table.title else []
    lines.append("| " + " | ".join(_plain(_heading(column, column.unit)) for column in table.columns) + " |")
    lines.append("|" + "|".join("--:" if column.numbers else ":--" for column in table.columns) + "|")
    rows = [[f"{cell.text}{cell.mark} {cell.spread}".rstrip() for cell in row] for row in table.rows]
    lines += ["| " + " | ".join(map(_plain, row)) + " |" for row in rows]
    return "\n".join([*lines, "", *[f"{_plain(note)}  " for note in table.notes]]) + "\n"


def cell(title: str, words: Sequence[str], tables: Sequence[Table], warnings: Sequence[str]) -> str:
    """What a notebook's page shows of a result, in Markdown: as `html.cell`, but for what is folded there."""
    lines = "  \n".join([f"**{_plain(title)}**", *map(_plain, words)])
    parts = [as_markdown(table) for table in tables if not table.folded]
    return "\n\n".join([lines, *parts, *[f"* {_plain(warning)}" for warning in warnings]]) + "\n"


def as_json(table: Table) -> bytes:
    """`table` for a script: numbers in base units where one stands behind a cell, else words."""
    columns = [{"title": column.title, "unit": base_unit(column)} for column in table.columns]
    rows = [[cell.text if cell.value is None else cell.value for cell in row] for row in table.rows]
    told = {"title": table.title, "columns": columns, "rows": rows, "notes": table.notes}
    return msgspec.json.encode(told) + b"\n"


def base_unit(column: Column) -> str:
    """The unit of the numbers behind a column's cells."""
    first, space, rest = column.unit.partition(" ")
    return column.base or _BASE.get(first, first) + space + rest


def _heading(column: Column, unit: str) -> str:
    return f"{column.title} ({unit})" if unit else column.title


def _tame(text: str) -> str:
    # A spreadsheet runs a cell that begins like a formula.
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def _plain(text: str) -> str:
    return re.sub(r"([\\|<>*_`\[\]])", r"\\\1", clean(text).replace("\n", " "))
