"""`tilewise report`: one HTML page of records, timelines, measurements, studies; figures, tables too."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, NamedTuple

from tilewise.cli import side_files, study_output
from tilewise.cli.declare import SHOW, WHAT, Parameter
from tilewise.cli.parse import parse
from tilewise.errors import RunError, UsageError
from tilewise.files.target import check_folder
from tilewise.launch.join import Join

if TYPE_CHECKING:
    from tilewise.report.page import Page


class Wanted(NamedTuple):
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
            group=WHAT,
            help="A record (--json), a timeline (--trace), a measurement, or a study's results.",
        ),
    ],
    output: Annotated[
        str | None, Parameter(name=["--output", "-o"], group=WHAT, help="FILE.html to write.")
    ] = None,
    plots: Annotated[
        str | None, Parameter(name="--plots", group=SHOW, help="FOLDER for every figure as SVG and PNG.")
    ] = None,
    tables: Annotated[
        str | None, Parameter(name="--tables", group=SHOW, help="FOLDER for every table as CSV and Markdown.")
    ] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], group=SHOW, help="Only errors.")] = False,
) -> Wanted:
    """Write one HTML page of results: no network needed, readable without scripts."""
    return Wanted(results, output, plots, tables, quiet)


def main(words: list[str], joined: Join | None) -> int:
    """Runs the command; returns its exit code."""
    wanted: Wanted | None = parse("report", request, words)
    if wanted is None:
        return 0
    if joined is not None:
        raise UsageError("report runs on its own, without ranks", "tilewise report … without mpiexec")
    _check(wanted)
    from tilewise.report.found import find, report_page

    page = report_page(find(wanted.results))
    try:
        said = _written(page, wanted)
    except OSError as error:
        raise RunError(f"{error.filename}: {error.strerror or error}") from None
    if not wanted.quiet:
        for name, text in said:
            print(f"{name:<7}  {text}")
    return 0


def _check(wanted: Wanted) -> None:
    """Raises UsageError before anything is read, where nothing could be written."""
    if not wanted.results:
        raise UsageError("report wants results", "tilewise report results/NAME -o report.html")
    if not (wanted.output or wanted.plots or wanted.tables):
        raise UsageError("report wants a file to write", "-o FILE.html, --plots FOLDER or --tables FOLDER")
    if wanted.output == "-":
        raise UsageError("--output wants a file name, not -")
    for result in wanted.results:
        if not os.path.exists(result):
            raise UsageError(f"{result} does not exist")
    taken = [each for each in wanted.results if os.path.isfile(each)]
    for results in filter(os.path.isdir, wanted.results):
        taken += study_output.files_of(results)
    side_files.check("--output", wanted.output, taken, force=False)
    for flag, folder in (("--plots", wanted.plots), ("--tables", wanted.tables)):
        if folder is None:
            continue
        if not folder or (os.path.exists(folder) and not os.path.isdir(folder)):
            raise UsageError(f"{flag} wants a folder, not {folder!r}")
        above = folder if os.path.isdir(folder) else os.path.dirname(os.path.realpath(folder))
        check_folder(above, f"{flag} {folder}")


def _written(page: Page, wanted: Wanted) -> list[tuple[str, str]]:
    """Writes all that is wanted; says what is where. Raises OSError."""
    from tilewise.report.page import write
    from tilewise.report.page_files import write_figures, write_tables

    said = []
    if wanted.output:
        try:
            write(page, wanted.output)
        except OSError as error:  # a full disk names no file
            raise OSError(error.errno, error.strerror or str(error), wanted.output) from None
        said.append(("page", f"{wanted.output} ({os.path.getsize(wanted.output) / 1e6:.2f} MB)"))
    if wanted.plots:
        said.append(("plots", f"{wanted.plots} ({len(write_figures(page, wanted.plots))} files)"))
    if wanted.tables:
        said.append(("tables", f"{wanted.tables} ({len(write_tables(page, wanted.tables))} files)"))
    return said
