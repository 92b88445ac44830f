"""What becomes of a measurement: figures on the terminal first, which no full disk costs, then files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from tilewise.cli import side_files
from tilewise.cli.measure_flags import MeasureFlags
from tilewise.errors import RunError
from tilewise.machine.replacing import replace
from tilewise.measure import stored
from tilewise.measure.result import Measurement


def tell(found: Measurement, flags: MeasureFlags, stored_text: str, chatter: Sequence[str]) -> None:
    """Prints `found` and writes it wherever the flags say. Raises RunError where a file cannot be written."""
    shown = not flags.quiet and flags.json != "-"
    if not flags.quiet and not flags.verbose:  # with -v it was shown when it came
        for line in chatter:
            print(line, file=sys.stderr)
    if shown:
        from tilewise.report.measure import measure_tables
        from tilewise.report.terminal import show

        show(measure_tables(found, flags.verbose))
        sys.stdout.flush()
    _write(found, flags)
    if shown:
        for name, text in (
            ("all figures", flags.json),
            ("page", flags.html),
            ("plots", flags.plots),
            ("tables", flags.tables),
            ("stored", stored_text),
        ):
            if text:
                print(f"{name:<11}  {text}")


def _write(found: Measurement, flags: MeasureFlags) -> None:
    if flags.json == "-":
        sys.stdout.write(stored.encode(found).decode())
        sys.stdout.flush()
    elif flags.json is not None:
        stored.write(found, flags.json)
    if flags.html is not None:
        from tilewise.report.measure_page import write_page

        with _named("--html", flags.html):
            write_page(found, flags.html)
    if flags.tables is not None:
        from tilewise.report.measure_tables import write_tables

        with _named("--tables", flags.tables):
            write_tables(found, flags.tables)
    if flags.plots is not None:
        from tilewise.report.measure_plots import write_plots

        with _named("--plots", flags.plots):
            write_plots(found, flags.plots)


@contextmanager
def _named(flag: str, path: str) -> Iterator[None]:
    """Errors of files become a sentence that names the flag. Raises RunError."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{flag} {path} cannot be written: {error.strerror or error}") from None


def compare_files(before: str, after: str, json: str | None, verbose: bool) -> int:
    """Compares two measurements in files; returns the exit code, 0 whatever changed."""
    from tilewise.measure.compare import compare

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
    from tilewise.report.measure_compare import comparison_tables
    from tilewise.report.terminal import show

    show(comparison_tables(comparison, verbose))
    return 0
