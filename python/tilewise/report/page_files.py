"""The figures and tables of a page as files: SVG and PNG, CSV and Markdown, named after what they show."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tilewise.machine.replacing import replace
from tilewise.report.figures.style import Plot, png, svg
from tilewise.report.file_names import FileNames
from tilewise.report.table import Table, as_csv, as_markdown

if TYPE_CHECKING:
    from tilewise.report.page import Page

Files = tuple[str, list[tuple[str, bytes]]]  # what a part is called, and its files: ending, content


def write_figures(page: Page, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes every figure as SVG, and as PNG where matplotlib drew it; returns the paths. Raises OSError."""
    return write_files(folder, _figures(page))


def write_tables(page: Page, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes every table as CSV and as Markdown; returns the paths. Raises OSError."""
    return write_files(folder, (files_of_table(table) for each in page.sections for table in each.tables))


def files_of_plot(plot: Plot) -> Files:
    """A plot as SVG and as PNG."""
    return plot.key, [(".svg", svg(plot).encode()), (".png", png(plot))]


def files_of_table(table: Table) -> Files:
    """A table as CSV, with numbers in base units, and as Markdown, with numbers as tables show them."""
    return table.key, [(".csv", as_csv(table).encode()), (".md", as_markdown(table).encode())]


def _figures(page: Page) -> Iterator[Files]:
    for section in page.sections:
        for drawing in section.drawings:
            files = [(".svg", drawing.alone.encode())] if drawing.alone else []
            if drawing.plot is not None:
                files.append((".png", png(drawing.plot)))
            yield drawing.key, files
        yield from map(files_of_plot, section.plots)


def write_files(folder: str | os.PathLike[str], parts: Iterable[Files]) -> list[Path]:
    """Writes all parts into `folder`, which is made where it is missing; returns the paths.

    Files with the same names are replaced, each as a whole. Raises OSError with the path of what failed.
    """
    place, names, written = Path(folder), FileNames(), []
    place.mkdir(parents=True, exist_ok=True)
    for key, files in parts:
        name = names.fresh(key)
        for ending, content in files:
            path = place / (name + ending)
            try:
                replace(path, content)
            except OSError as error:  # a full disk names no file, and a part file is not what was asked for
                raise OSError(error.errno, error.strerror or str(error), str(path)) from None
            written.append(path)
    return written
