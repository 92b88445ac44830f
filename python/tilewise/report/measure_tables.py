"""Every table of a measurement as files: CSV for a spreadsheet, Markdown for a document."""

from __future__ import annotations

import os
from pathlib import Path

from tilewise.measure.result import Measurement
from tilewise.report.measure import everything
from tilewise.report.page_files import files_of_table, write_files


def write_tables(measurement: Measurement, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes each table into `folder`, which is made where it is missing; returns the paths.

    Numbers of a CSV file are in base units (seconds, bytes a second), those of a Markdown file as tables show
    them. Files with the same names are replaced. Raises OSError.
    """
    return write_files(folder, map(files_of_table, everything(measurement)))
