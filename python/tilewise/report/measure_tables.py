"""Every table of a measurement as files: CSV for a spreadsheet, Markdown for a document."""

from __future__ import annotations

import os
from pathlib import Path

from tilewise.machine.replacing import replace
from tilewise.measure.result import Measurement
from tilewise.report.file_names import FileNames
from tilewise.report.measure import everything
from tilewise.report.table import as_csv, as_markdown


def write_tables(measurement: Measurement, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes each table into `folder`, which is made where it is missing; returns the paths.

    Numbers of a CSV file are in base units (seconds, bytes a second), those of a Markdown file as tables show
    them. Files with the same names are replaced. Raises OSError.
    """
    place, names, written = Path(folder), FileNames(), []
    place.mkdir(parents=True, exist_ok=True)
    for table in everything(measurement):
        name = names.fresh(table.key)
        for ending, text in ((".csv", as_csv(table)), (".md", as_markdown(table))):
            replace(place / (name + ending), text.encode())
            written.append(place / (name + ending))
    return written
