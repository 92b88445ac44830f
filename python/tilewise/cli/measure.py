"""`tilewise measure`: how fast messages, files, memory and arithmetic are here, and what changed since.

Figures are shown on the terminal first, which no full disk costs, and then written to files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from tilewise.base.errors import RunError, UsageError
from tilewise.base.staging import replace
from tilewise.cli.parse import parse
from tilewise.cli.streams import warn
from tilewise.engine import side_files
from tilewise.engine.request import Listener
from tilewise.lab.measurement import stored
from tilewise.lab.measurement.request import CompareFlags, MeasureRequest
from tilewise.lab.measurement.result import Measurement
from tilewise.lab.report.progress import progress
from tilewise.lab.report.terminal import Screen, show
from tilewise.launch.join import Join

if TYPE_CHECKING:
    from tilewise.lab.measurement.measure import MeasureOutcome


def main(words: list[str], joined: Join | None) -> int:
    """Run the command; return its exit code."""
    if words[:1] == ["compare"]:
        return _compare(parse("measure compare", CompareFlags, words[1:]))
    request = parse("measure", MeasureRequest, words)
    if request.schema:
        sys.stdout.write(stored.schema().decode())
        return 0
    if joined is not None:
        raise UsageError(
            "measure starts its own ranks and cannot run under mpiexec or srun",
            "tilewise measure without mpiexec or srun; --hosts FILE for several nodes",
        )
    return _run(request)


def _run(request: MeasureRequest) -> int:
    """Measure, show and write what is asked for; return the exit code. Raises TilewiseError."""
    from tilewise.lab.measurement.measure import measure

    _check_outputs(request)
    listener = _Progress(request)
    try:
        measured = measure(request, listener, ["tilewise", *sys.argv[1:]])
    finally:
        listener.close()
    _tell(measured, request)
    if measured.error is not None:
        raise measured.error
    return 0


class _Progress(Listener):
    """Shows progress on a terminal, and with -v each line of a launcher as it comes."""

    def __init__(self, request: MeasureRequest) -> None:
        bar = progress(wanted=not request.quiet, whole=True)
        self.progress, self.close = bar.wanted, bar.close
        self.update, self.foreseen = bar.update, bar.foresee  # type: ignore[method-assign]
        self._verbose = request.verbose

    def chatter(self, line: str) -> None:
        if self._verbose:
            print(line, file=sys.stderr, flush=True)


def _check_outputs(request: MeasureRequest) -> None:
    """Raises UsageError where what the flags name cannot be written."""
    others: list[str] = []
    for flag, path in (("--json", request.json), ("--html", request.html)):
        if flag == "--html" and path == "-":
            raise UsageError("--html expects a file name, not -")
        side_files.check(flag, path, others, force=False)
        others += [path] if path else []
    side_files.require_folder("--plots", request.plots, others)
    side_files.require_folder("--tables", request.tables, others)


def _tell(measured: MeasureOutcome, request: MeasureRequest) -> None:
    """Prints it and writes it wherever the flags say. Raises RunError where a file cannot be written."""
    measurement = measured.measurement
    shown = not request.quiet and request.json != "-"
    if not request.quiet and not request.verbose:  # with -v it was shown when it came
        for line in measured.chatter:
            print(line, file=sys.stderr)
    if shown:
        from tilewise.lab.report.measure import measure_tables

        show(measure_tables(measurement, request.verbose))
    _write(measurement, request)
    if shown:
        files = (("all figures", request.json), ("page", request.html), ("plots", request.plots))
        written = (*files, ("tables", request.tables), ("stored", _stored_text(request, measured)))
        screen = Screen()
        screen.pairs(((name, text) for name, text in written if text), least=len("all figures"))
        show(screen)


def _stored_text(request: MeasureRequest, measured: MeasureOutcome) -> str:
    if measured.kept:
        return ", ".join(measured.kept)
    if measured.error is not None:
        return "no, because a launch failed"
    if request.stored or request.whole:
        return ""
    return "no, because flags narrow or weaken the run; --store stores it as this machine's profile"


def _write(measurement: Measurement, request: MeasureRequest) -> None:
    if request.json == "-":
        sys.stdout.write(stored.encode(measurement).decode())
        sys.stdout.flush()
        if not request.quiet:
            warn(measurement.warnings)
    elif request.json is not None:
        stored.write(measurement, request.json)
    if request.html is not None:
        from tilewise.lab.report.measure_page import page_of
        from tilewise.lab.report.render import write

        with _named("--html", request.html):
            write(page_of(measurement), request.html)
    if request.tables is not None:
        from tilewise.lab.report.measure import everything
        from tilewise.lab.report.render import write_tables

        with _named("--tables", request.tables):
            write_tables(everything(measurement), request.tables)
    if request.plots is not None:
        from tilewise.lab.report.measure_page import plots_of
        from tilewise.lab.report.render import write_figures

        with _named("--plots", request.plots):
            write_figures(plots_of(measurement), request.plots)


@contextmanager
def _named(flag: str, path: str) -> Iterator[None]:
    """Errors of files become a sentence that names the flag. Raises RunError."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{flag} {path} cannot be written: {error.strerror or error}") from None


def _compare(flags: CompareFlags) -> int:
    """Compare two measurements in files; return the exit code, 0 whatever changed. UsageError for no pair."""
    from tilewise.lab.measurement.compare import compare

    side_files.check("--json", flags.json, [flags.before, flags.after], force=False)
    comparison = compare(stored.read(flags.before), stored.read(flags.after))
    if not comparison.changes and not comparison.skipped:
        raise UsageError(
            f"{flags.before} and {flags.after} have no line in common", "two measurements of the same command"
        )
    text = msgspec.json.format(msgspec.json.encode(comparison), indent=1).decode() + "\n"
    if flags.json == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return 0
    if flags.json is not None:
        with _named("--json", flags.json):
            replace(flags.json, text.encode())
    from tilewise.lab.report.measure import comparison_tables

    show(comparison_tables(comparison, flags.verbose))
    return 0
