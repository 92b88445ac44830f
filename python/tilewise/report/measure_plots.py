"""All figures of a measurement, and the folder they are written to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tilewise.measure.result import Measurement
from tilewise.report.figures.files import file_plots
from tilewise.report.figures.messages import matrix_plots, message_plots, model_plots
from tilewise.report.figures.node import node_plots
from tilewise.report.figures.style import Plot
from tilewise.report.page_files import files_of_plot, write_files


def plots_of(measurement: Measurement) -> Iterator[Plot]:
    """Every figure, in the order of a page."""
    yield from message_plots(measurement)
    yield from matrix_plots(measurement)
    yield from file_plots(measurement)
    yield from node_plots(measurement)
    yield from model_plots(measurement)


def write_plots(measurement: Measurement, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes every figure as SVG and PNG into `folder`, which is made where it is missing.

    Files with the same names are replaced. Returns the paths. Raises OSError.
    """
    return write_files(folder, map(files_of_plot, plots_of(measurement)))
