"""`tilewise report`: one HTML page of records, timelines, measurements, studies; figures, tables too."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from tilewise.base.declare import FOLDER, HTML, SHOW, Flag, Flags, Value
from tilewise.base.errors import RunError, UsageError
from tilewise.cli.parse import parse
from tilewise.engine import side_files
from tilewise.launch.join import Join

if TYPE_CHECKING:
    from tilewise.lab.report.page import ReportPage


RESULT = Value("RESULT", (".json", ".gz", "/"))


class ReportFlags(Flags, frozen=True, kw_only=True):
    """Write results as one HTML page, which needs neither network nor scripts.

    Examples:
        tilewise report record.json -o report.html
            The page of one run, from its record.
        tilewise report results/quick -o report.html --plots figures
            The page of a study, and its figures as files.
    """

    results: Annotated[
        tuple[str, ...],
        Flag(
            "A record (--json), a timeline (--trace), a measurement, or the results of a study.",
            name="RESULT",
            value=RESULT,
            place=True,
        ),
    ] = ()
    output: Annotated[str | None, Flag("HTML file to write.", short="-o", value=HTML)] = None
    plots: Annotated[str | None, Flag("Folder for every figure, as SVG and PNG.", SHOW, value=FOLDER)] = None
    tables: Annotated[
        str | None, Flag("Folder for tables, as CSV, Markdown and JSON.", SHOW, value=FOLDER)
    ] = None
    quiet: Annotated[bool, Flag("Print errors only.", SHOW, short="-q")] = False


def main(words: list[str], joined: Join | None) -> int:
    """Run the command; return its exit code."""
    flags = parse("report", ReportFlags, words)
    if joined is not None:
        raise UsageError("report does not run under mpiexec", "tilewise report … without mpiexec")
    _check(flags)
    from tilewise.lab.report.load_results import find, report_page

    page = report_page(find(flags.results))
    try:
        written = _written(page, flags)
    except OSError as error:
        raise RunError(f"{error.filename}: {error.strerror or error}") from None
    if not flags.quiet:
        from tilewise.lab.report.terminal import Screen, show

        screen = Screen()
        screen.pairs(written)
        show(screen)
    return 0


def _check(flags: ReportFlags) -> None:
    """Raises UsageError before anything is read, where nothing could be written."""
    if not flags.results:
        raise UsageError("report needs a result", "tilewise report results/NAME -o report.html")
    if not (flags.output or flags.plots or flags.tables):
        raise UsageError("report needs a file to write", "-o FILE.html, --plots FOLDER or --tables FOLDER")
    if flags.output == "-":
        raise UsageError("--output expects a file name, not -")
    for result in flags.results:
        if not os.path.exists(result):
            raise UsageError(f"{result} does not exist")
    from tilewise.lab.study.store import files_of

    taken = [each for each in flags.results if os.path.isfile(each)]
    for results in filter(os.path.isdir, flags.results):
        taken += files_of(results)
    side_files.check("--output", flags.output, taken, force=False)
    side_files.require_folder("--plots", flags.plots)
    side_files.require_folder("--tables", flags.tables)


def _written(page: ReportPage, flags: ReportFlags) -> list[tuple[str, str]]:
    """Writes all that is wanted; says what is where. Raises OSError."""
    from tilewise.lab.report.render import write, write_figures, write_tables

    said = []
    if flags.output:
        try:
            write(page, flags.output)
        except OSError as error:  # a full disk names no file
            raise OSError(error.errno, error.strerror or str(error), flags.output) from None
        said.append(("page", f"{flags.output} ({os.path.getsize(flags.output) / 1e6:.2f} MB)"))
    if flags.plots:
        said.append(("plots", f"{flags.plots} ({len(write_figures(page.figures(), flags.plots))} files)"))
    if flags.tables:
        said.append(("tables", f"{flags.tables} ({len(write_tables(page.tables(), flags.tables))} files)"))
    return said
