"""The figures and tables of a page as files: SVG and PNG; CSV, Markdown, JSON; named after what they show."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tilewise.base.staging import replace
from tilewise.lab.report.figures.style import Plot, png, svg
from tilewise.lab.report.page import Drawing, FileNames
from tilewise.lab.report.render.text import as_csv, as_json, as_markdown
from tilewise.lab.report.table import Table

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
