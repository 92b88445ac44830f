"""`tilewise report`: one HTML page of records, timelines, measurements, studies; figures, tables too."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, NamedTuple

from tilewise.base.declare import FOLDER, SHOW, WHAT, Parameter, Value
from tilewise.base.errors import RunError, UsageError
from tilewise.cli.measure_flags import HTML
from tilewise.cli.parse import parse
from tilewise.engine import side_files
from tilewise.launch.join import Join

if TYPE_CHECKING:
    from tilewise.lab.report.page import Page


RESULT = Value("RESULT", (".json", ".gz", "/"))


class ReportRequest(NamedTuple):
    """What the page is made of, and what is written where."""

    results: tuple[str, ...]
    output: str | None
    plots: str | None
    tables: str | None
    quiet: bool


def request(
    *results: Annotated[
        str,
        Parameter(
            name="RESULT",
            value=RESULT,
            group=WHAT,
            help="A record (--json), a timeline (--trace), a measurement, or the results of a study.",
        ),
    ],
    output: Annotated[
        str | None, Parameter(name=["--output", "-o"], value=HTML, group=WHAT, help="HTML file to write.")
    ] = None,
    plots: Annotated[
        str | None,
        Parameter(name="--plots", value=FOLDER, group=SHOW, help="Folder for every figure, as SVG and PNG."),
    ] = None,
    tables: Annotated[
        str | None,
        Parameter(
            name="--tables", value=FOLDER, group=SHOW, help="Folder for tables, as CSV, Markdown and JSON."
        ),
    ] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], group=SHOW, help="Print errors only.")] = False,
) -> ReportRequest:
    """Write results as one HTML page, which needs neither network nor scripts.

    Examples:
        tilewise report record.json -o report.html
            The page of one run, from its record.
        tilewise report results/quick -o report.html --plots figures
            The page of a study, and its figures as files.
    """
    return ReportRequest(results, output, plots, tables, quiet)


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    wanted: ReportRequest | None = parse("report", request, words)
    if wanted is None:
        return 0
    if joined is not None:
        raise UsageError("report does not run under mpiexec", "tilewise report … without mpiexec")
    _check(wanted)
    from tilewise.lab.report.load_results import find, report_page

    page = report_page(find(wanted.results))
    try:
        said = _written(page, wanted)
    except OSError as error:
        raise RunError(f"{error.filename}: {error.strerror or error}") from None
    if not wanted.quiet:
        from tilewise.lab.report.render.terminal import Screen, show

        screen = Screen()
        screen.pairs(said)
        show(screen)
    return 0


def _check(wanted: ReportRequest) -> None:
    """Raises UsageError before anything is read, where nothing could be written."""
    if not wanted.results:
        raise UsageError("report needs a result", "tilewise report results/NAME -o report.html")
    if not (wanted.output or wanted.plots or wanted.tables):
        raise UsageError("report needs a file to write", "-o FILE.html, --plots FOLDER or --tables FOLDER")
    if wanted.output == "-":
        raise UsageError("--output expects a file name, not -")
    for result in wanted.results:
        if not os.path.exists(result):
            raise UsageError(f"{result} does not exist")
    from tilewise.lab.study import outputs

    taken = [each for each in wanted.results if os.path.isfile(each)]
    for results in filter(os.path.isdir, wanted.results):
        taken += outputs.files_of(results)
    side_files.check("--output", wanted.output, taken, force=False)
    side_files.require_folder("--plots", wanted.plots)
    side_files.require_folder("--tables", wanted.tables)


def _written(page: Page, wanted: ReportRequest) -> list[tuple[str, str]]:
    """Writes all that is wanted; says what is where. Raises OSError."""
    from tilewise.lab.report.render.files import write_figures, write_tables
    from tilewise.lab.report.render.html import write

    said = []
    if wanted.output:
        try:
            write(page, wanted.output)
        except OSError as error:  # a full disk names no file
            raise OSError(error.errno, error.strerror or str(error), wanted.output) from None
        said.append(("page", f"{wanted.output} ({os.path.getsize(wanted.output) / 1e6:.2f} MB)"))
    if wanted.plots:
        said.append(("plots", f"{wanted.plots} ({len(write_figures(page.figures(), wanted.plots))} files)"))
    if wanted.tables:
        said.append(("tables", f"{wanted.tables} ({len(write_tables(page.tables(), wanted.tables))} files)"))
    return said
