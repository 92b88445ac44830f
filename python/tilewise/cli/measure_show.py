"""What becomes of a measurement: figures on the terminal first, which no full disk costs, then files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from tilewise.base.errors import RunError, UsageError
from tilewise.base.staging import replace
from tilewise.cli.answers import warn
from tilewise.cli.measure_flags import MeasureFlags
from tilewise.engine import side_files
from tilewise.engine.request import Listener
from tilewise.lab.measurement import stored
from tilewise.lab.measurement.request import Request
from tilewise.lab.measurement.result import Measurement
from tilewise.lab.report.progress import progress
from tilewise.lab.report.render.terminal import Screen, show

if TYPE_CHECKING:
    from tilewise.lab.measurement.measure import Measured


def run(request: Request, flags: MeasureFlags, store: bool) -> int:
    """Measures, shows and writes what `request` asks for; returns the exit code. Raises TilewiseError."""
    from tilewise.lab.measurement.measure import measure

    _check_outputs(flags)
    listener = _Terminal(flags)
    try:
        measured = measure(request, listener, ["tilewise", *sys.argv[1:]], store=store, timeout=flags.timeout)
    finally:
        listener.close()
    _tell(measured, flags, _stored_text(request, measured, store))
    if measured.error is not None:
        raise measured.error
    return 0


class _Terminal(Listener):
    """Shows progress on a terminal, and with -v each line of a launcher as it comes."""

    def __init__(self, flags: MeasureFlags) -> None:
        bar = progress(wanted=not flags.quiet, whole=True)
        self.progress, self.close = bar.wanted, bar.close
        self.update = bar.update  # type: ignore[method-assign]
        self._verbose = flags.verbose

    def chatter(self, line: str) -> None:
        if self._verbose:
            print(line, file=sys.stderr, flush=True)


def _check_outputs(flags: MeasureFlags) -> None:
    """Raises UsageError where what the flags name cannot be written."""
    others: list[str] = []
    for flag, path in (("--json", flags.json), ("--html", flags.html)):
        if flag == "--html" and path == "-":
            raise UsageError("--html expects a file name, not -")
        side_files.check(flag, path, others, force=False)
        others += [path] if path else []
    side_files.require_folder("--plots", flags.plots, others)
    side_files.require_folder("--tables", flags.tables, others)


def _tell(measured: Measured, flags: MeasureFlags, stored_text: str) -> None:
    """Prints it and writes it wherever the flags say. Raises RunError where a file cannot be written."""
    measurement = measured.measurement
    shown = not flags.quiet and flags.json != "-"
    if not flags.quiet and not flags.verbose:  # with -v it was shown when it came
        for line in measured.chatter:
            print(line, file=sys.stderr)
    if shown:
        from tilewise.lab.report.measure import measure_tables

        show(measure_tables(measurement, flags.verbose))
    _write(measurement, flags)
    if shown:
        files = (("all figures", flags.json), ("page", flags.html), ("plots", flags.plots))
        written = (*files, ("tables", flags.tables), ("stored", stored_text))
        screen = Screen()
        screen.pairs(((name, text) for name, text in written if text), least=len("all figures"))
        show(screen)


def _stored_text(request: Request, measured: Measured, store: bool) -> str:
    if measured.kept:
        return ", ".join(measured.kept)
    if measured.error is not None:
        return "no, because a launch failed"
    if store or request.whole:
        return ""
    return "no, because flags narrow or weaken the run; --store stores it as this machine's profile"


def _write(measurement: Measurement, flags: MeasureFlags) -> None:
    if flags.json == "-":
        sys.stdout.write(stored.encode(measurement).decode())
        sys.stdout.flush()
        if not flags.quiet:
            warn(measurement.warnings)
    elif flags.json is not None:
        stored.write(measurement, flags.json)
    if flags.html is not None:
        from tilewise.lab.report.measure_page import page_of
        from tilewise.lab.report.render.html import write

        with _named("--html", flags.html):
            write(page_of(measurement), flags.html)
    if flags.tables is not None:
        from tilewise.lab.report.measure import everything
        from tilewise.lab.report.render.files import write_tables

        with _named("--tables", flags.tables):
            write_tables(everything(measurement), flags.tables)
    if flags.plots is not None:
        from tilewise.lab.report.measure_page import plots_of
        from tilewise.lab.report.render.files import write_figures

        with _named("--plots", flags.plots):
            write_figures(plots_of(measurement), flags.plots)


@contextmanager
def _named(flag: str, path: str) -> Iterator[None]:
    """Errors of files become a sentence that names the flag. Raises RunError."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{flag} {path} cannot be written: {error.strerror or error}") from None


def compare_files(before: str, after: str, json: str | None, verbose: bool) -> int:
    """Compares two measurements in files; returns the exit code, 0 whatever changed."""
    from tilewise.lab.measurement.compare import compare

    side_files.check("--json", json, [before, after], force=False)
    comparison = compare(stored.read(before), stored.read(after))
    text = msgspec.json.format(msgspec.json.encode(comparison), indent=1).decode() + "\n"
    if json == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return 0
    if json is not None:
        with _named("--json", json):
            replace(json, text.encode())
    from tilewise.lab.report.measure_compare import comparison_tables

    show(comparison_tables(comparison, verbose))
    return 0
