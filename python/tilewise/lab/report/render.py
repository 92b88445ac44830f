"""Pages and tables as files: HTML for people, which needs no network; SVG, PNG, CSV, Markdown and JSON.

Design: docs/design/front.md.
"""

from __future__ import annotations

import base64
import csv
import dataclasses
import functools
import hashlib
import io
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tilewise.base.errors import clean
from tilewise.base.staging import replace
from tilewise.lab.report import style
from tilewise.lab.report.page import Drawing, FileNames, ReportPage
from tilewise.lab.report.style import Plot, inline, png, svg
from tilewise.lab.report.table import Column, Table

_FOLDER = Path(__file__).parent / "templates"
_RAISED = ("#f4f6f8", "#1f252d")  # behind figures and facts; light and dark


def write(page: ReportPage, path: str | os.PathLike[str]) -> None:
    """Writes `page` into the file `path`; an older one is replaced as a whole. Raises OSError."""
    replace(path, html(page).encode())


def html(page: ReportPage) -> str:
    """The page as text."""
    sides = [f"{style.variables(side)}--raised:{_RAISED[side]};" for side in (0, 1)]
    alive = any(isinstance(figure, Drawing) and figure.timeline for figure in page.figures())
    scripts = [_own_text("page.js"), *([_own_text("timeline.js")] if alive else [])]
    return _made(
        "page.html.j2",
        page=page,
        sections=[section for section in page.sections if not section.empty()],
        names=FileNames(),
        sides=[Markup(side) for side in sides],
        css=Markup(_own_text("page.css")),
        scripts=[Markup(script) for script in scripts],
        allowed=[Markup(f"'sha256-{_digest(script)}'") for script in scripts],
    )


def html_cell(title: str, words: Sequence[str], tables: Sequence[Table], warnings: Sequence[str]) -> str:
    """Render what a notebook shows: a title with `words` under it, plain tables, warnings."""
    return _made("cell.html.j2", title=title, words=words, tables=tables, warnings=warnings)


def _own_text(name: str) -> str:
    """A style sheet or script of ours, which a page contains."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def _made(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


@functools.cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else clean(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    made.filters |= {"typed": _typed, "svg": _svg}
    return made


def _typed(words: str) -> list[str]:
    """Words and, at odd places, what stands between `backticks` in them: what one types."""
    return re.split(r"`([^`<>]+)`", words)


def _svg(figure: Plot | Drawing, name: str) -> Markup:
    """The drawing of `figure`, whose parts are named after `name`; what draws it escapes its words."""
    return Markup(inline(dataclasses.replace(figure, key=name)) if isinstance(figure, Plot) else figure.svg)


def _digest(script: str) -> str:
    """Digest by which a page's policy allows `script`: no other may run in it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


_BASE = {"ns/B": "s/B", "GB/s": "B/s", "ms": "s", "µs": "s", "time": "s", "interval": "", "error": "part"}


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


def markdown_cell(title: str, words: Sequence[str], tables: Sequence[Table], warnings: Sequence[str]) -> str:
    """Return what a notebook shows of a result in Markdown: as `html_cell`, without what is folded there."""
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


Files = tuple[str, dict[str, bytes]]  # what a part is called, and its files: ending and content


def write_figures(figures: Iterable[Plot | Drawing], folder: str | os.PathLike[str]) -> list[Path]:
    """Writes each figure as SVG, and as PNG where matplotlib drew it; returns the paths. Raises OSError."""
    return _write(folder, map(_figure, figures))


def write_tables(tables: Iterable[Table], folder: str | os.PathLike[str]) -> list[Path]:
    """Writes each table as CSV, Markdown and JSON; returns the paths. Raises OSError.

    Numbers of CSV and JSON are in base units (seconds, bytes a second), those of Markdown as shown.
    """
    return _write(folder, map(_table, tables))


def _figure(figure: Plot | Drawing) -> Files:
    if isinstance(figure, Plot):
        return figure.key, {".svg": svg(figure).encode(), ".png": png(figure)}
    files = {".svg": figure.alone.encode()} if figure.alone else {}
    return figure.key, files | ({".png": png(figure.plot)} if figure.plot is not None else {})


def _table(table: Table) -> Files:
    return table.key, {
        ".csv": as_csv(table).encode(),
        ".md": as_markdown(table).encode(),
        ".json": as_json(table),
    }


def _write(folder: str | os.PathLike[str], parts: Iterable[Files]) -> list[Path]:
    """Writes all parts into `folder`, which is made where it is missing; returns the paths.

    Files with the same names are replaced, each as a whole. Raises OSError with the path of what failed.
    """
    place, names, written = Path(folder), FileNames(), []
    place.mkdir(parents=True, exist_ok=True)
    for key, files in parts:
        name = names.fresh(key)
        for ending, content in files.items():
            path = place / (name + ending)
            try:
                replace(path, content)
            except OSError as error:  # a full disk names no file, and a part file is not what was asked for
                raise OSError(error.errno, error.strerror or str(error), str(path)) from None
            written.append(path)
    return written
