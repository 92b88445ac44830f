"""`tilewise study list`, `show`, `compare` and `export`, and the results that are shown after `run`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

from tilewise.base.declare import FOLDER, JSON, SHOW, Flag, Flags, Value
from tilewise.base.errors import UsageError, clean
from tilewise.base.units import plural
from tilewise.cli import SUBCOMMANDS, page_of
from tilewise.cli.help import page
from tilewise.cli.parse import parse
from tilewise.launch.join import Join

if TYPE_CHECKING:
    from tilewise.lab.study.claims import Verdict
    from tilewise.lab.study.compare import ResultsComparison

SCALES = ("tiny", "default", "report")


def _shipped() -> tuple[str, ...]:
    """Names of the studies that come with the package."""
    from tilewise.lab.study import shipped

    return tuple(shipped.names())


STUDY = Value("STUDY", (".toml",), _shipped)


class StudyFlags(Flags, frozen=True, kw_only=True):
    """Sweep, tabulate, compare. A study is a TOML file that lists jobs, the values of their flags,
    and the tables and plots of the results.

    Examples:
        tilewise study list
            The studies that come with the package.
        tilewise study run quick
            Run one, and show its tables.
    """

    subcommand: Annotated[str, Flag("The subcommand.", choices=tuple(SUBCOMMANDS["study"]), place=True)]
    arguments: Annotated[tuple[str, ...], Flag("Its arguments.", name="ARGUMENT", place=True)] = ()


class StudyListFlags(Flags, frozen=True, kw_only=True):
    """List the built-in studies.

    Examples:
        tilewise study list
            Names and titles.
    """


class StudyShowFlags(Flags, frozen=True, kw_only=True):
    """Show what a study runs and reports, or the tables of a results folder.

    Examples:
        tilewise study show quick
            What the study quick would run here.
        tilewise study show results/quick
            The tables of its newest results.
    """

    name: Annotated[str, Flag("A built-in study, a TOML file, or a results folder.", value=STUDY, place=True)]
    scale: Annotated[str, Flag("Size of the study.", choices=SCALES)] = "default"


class StudyCompareFlags(Flags, frozen=True, kw_only=True):
    """Test whether each point became faster or slower, or neither.

    Examples:
        tilewise study compare results/old results/new
            Two results of the same study.
    """

    old: Annotated[str, Flag("A results folder.", value=FOLDER, place=True)]
    new: Annotated[str, Flag("Another results folder of the same study.", value=FOLDER, place=True)]
    metric: Annotated[
        str,
        Flag("Figure to compare: a path in the record.", value=Value("PATH"), default="seconds.total.max"),
    ] = ""
    json: Annotated[
        str | None, Flag("File to write; - for standard output.", SHOW, value=JSON, stream=True)
    ] = None


class StudyExportFlags(Flags, frozen=True, kw_only=True):
    """Write all launches as flat rows to CSV or Parquet.

    Examples:
        tilewise study export results/quick --csv launches.csv
            A row for each launch, a column for each field of its record.
    """

    folder: Annotated[str, Flag("A results folder.", name="DIR", value=FOLDER, place=True)]
    csv: Annotated[
        str | None,
        Flag("CSV file to write; - for standard output.", value=Value("FILE", (".csv",)), stream=True),
    ] = None
    parquet: Annotated[
        str | None, Flag("Parquet file to write (needs pyarrow).", value=Value("FILE", (".parquet",)))
    ] = None


def main(words: list[str], joined: Join | None) -> int:
    """Run the command; return its exit code."""
    if not words:
        print(page(page_of("study")))
        return 0
    if joined is not None:
        raise UsageError("a study starts its own ranks", "tilewise study … without mpiexec")
    from tilewise.cli import study_run

    known = {
        "list": list_all,
        "show": show_study,
        "run": study_run.run,
        "compare": compare,
        "export": export,
    }
    if words[0] not in known:
        raise UsageError(
            f"study has no subcommand {words[0]!r}; choose from {', '.join(known)}", "tilewise study --help"
        )
    return known[words[0]](words[1:])


def list_all(words: list[str]) -> int:
    """Show a line for each built-in study; return the exit code."""
    parse("study list", StudyListFlags, words)
    from tilewise.lab.report.terminal import Screen, show
    from tilewise.lab.study import shipped
    from tilewise.lab.study.study import read

    screen = Screen()
    screen.pairs((name, read(shipped.path_of(name)).file.title) for name in shipped.names())
    show(screen)
    return 0


def show_study(words: list[str]) -> int:
    """Show a study's points, what is out of reach here, its tables and its file; return the exit code."""
    flags = parse("study show", StudyShowFlags, words)
    from tilewise.cli.study_run import check_words, flags_of
    from tilewise.lab.study import shipped, store

    holds = store.points_in(store.newest(flags.name))
    if holds or (os.path.isdir(flags.name) and flags.name not in shipped.names()):
        show_results(flags.name)
        return 0
    from tilewise.lab.study.local_points import points_of
    from tilewise.lab.study.run import foretold, left_of
    from tilewise.lab.study.study import read

    study = read(shipped.path_of(flags.name), flags.scale)
    environment, points = points_of(study, ".", "", flags_of, check_words)
    there = sum(not point.reason for point in points)
    print(clean(f"{study.name}: {study.file.title}\n{study.file.description.strip()}".rstrip() + "\n"))
    print(clean(f"source: {study.file.source}")) if study.file.source else None
    print(f"scale {study.scale}: {plural(there, 'point')} to run here, {len(points) - there} out of reach")
    launches = left_of(study, points, [], environment)
    print(foretold(launches, launches, there, study.minutes, os.getloadavg()[0]))
    for run in study.runs:
        own = [point for point in points if point.run == run.name]
        axes = "; ".join(f"{axis}: {', '.join(map(str, values))}" for axis, values in run.axes.items())
        print(clean(f"  {run.name}: {run.command}, {plural(len(own), 'point')}; {axes}"))
    for kind in ("tables", "plots"):
        for each in getattr(study.file, kind):
            print(clean(f"  {kind[:-1]} {each.name}: {each.title or each.name}"))
    for claim in study.file.claims:
        print(clean(f"  claim: {claim.text}"))
    print(f"\n{study.path}")
    return 0


def show_results(folder: str) -> None:
    """All tables of a results folder with notes and reasons, and the verdicts on its claims."""
    from tilewise.lab.report.study_tables import figures
    from tilewise.lab.report.terminal import Screen, show
    from tilewise.lab.study.evaluation import load
    from tilewise.lab.study.results import band
    from tilewise.lab.study.run import nothing_decided

    evaluated = load(folder)
    screen = Screen()
    for note in evaluated.results.notes:
        screen.line(f"note: {note}")
    if told := band(evaluated.results.points):
        screen.line(f"note: {told}")
    for place in range(len(evaluated.tables)):
        screen.table(figures([evaluated], place)[0])
        screen.line()
    for own in (False, True):
        mine = [verdict for verdict in evaluated.verdicts if verdict.own == own]
        if mine and own:
            screen.line()
            screen.line("of the source's own numbers:")
        for verdict in mine:
            screen.line(_said(verdict))
    if undecided := nothing_decided(evaluated):
        screen.line(f"\n{undecided}")
    show(screen)


def _said(verdict: Verdict) -> str:
    from tilewise.lab.report.study_tables import figure_text, reason_text
    from tilewise.lab.study.claims import VERDICTS

    figure = "" if verdict.figure is None else f" [{figure_text(verdict)}]"
    reason = f": {said}" if (said := reason_text(verdict)) else ""
    note = f"; {verdict.claim.note}" if verdict.claim.note else ""
    return f"{VERDICTS[verdict.verdict]}{figure}{reason}: {verdict.claim.text}{note}"


def tell_notes(notes: list[str], before: str = "") -> None:
    """Says on stderr what was left out or stands out, apart from what may be read by a program."""
    for note in notes:
        print(clean(f"tilewise: note: {before}{note}"), file=sys.stderr)


def compare(words: list[str]) -> int:
    """Compares two results; returns the exit code."""
    flags = parse("study compare", StudyCompareFlags, words)
    from tilewise.cli.streams import write_json
    from tilewise.lab.study import results, store
    from tilewise.lab.study.compare import compare as compared
    from tilewise.lab.study.results import environments_of, refuse_mixture

    old, new, json = flags.old, flags.new, flags.json
    store.check_outputs([old, new], {"--json": json})
    loaded = results.load(old), results.load(new)
    for name, result in zip((old, new), loaded, strict=True):
        tell_notes(result.notes, f"{name}: " if old != new else "")
    ran = [entry for result in loaded for point in result.points for entry in point.entries]
    refuse_mixture(f"{old} {new}", environments_of(ran))
    comparison = compared(*loaded, flags.metric)
    if not comparison.changes:
        raise UsageError(f"{old} and {new} have no point in common")
    if json is not None:
        write_json(json, comparison, "--json", indent=1)
    if json == "-":
        return 0
    _show(comparison)
    return 0


def _show(comparison: ResultsComparison) -> None:
    """A row for each point, and what else is different."""
    from tilewise.lab.report.table import Table, number_columns, quantity, text_columns
    from tilewise.lab.report.terminal import Screen, show

    title = f"{comparison.metric}, new over old; changes under 5 % are not named"
    columns = text_columns("verdict") + number_columns("new/old")
    table = Table("compared", title, columns + text_columns("95 %", "run", "point", "line", "reason"))
    for each in comparison.changes:
        axes = ", ".join(f"{axis} = {value}" for axis, value in each.axes.items())
        span = "" if each.low is None or each.high is None else f"{each.low:.3f}–{each.high:.3f}"
        ratio = quantity(each.ratio, lambda ratio: f"{ratio:.3f}")
        table.add(each.verdict, ratio, span, each.run, axes, each.line, each.reason)
    table.notes = [f"another environment: {difference}" for difference in comparison.differences]
    if comparison.only_old or comparison.only_new:
        table.notes.append(f"only in the old: {comparison.only_old}, only in the new: {comparison.only_new}")
    screen = Screen()
    screen.table(table)
    show(screen)


def export(words: list[str]) -> int:
    """Writes flat files; returns the exit code."""
    flags = parse("study export", StudyExportFlags, words)
    csv, parquet = flags.csv, flags.parquet
    if csv is None and parquet is None:
        raise UsageError("export needs a file to write", "--csv FILE, or --parquet FILE")
    from tilewise.cli.streams import write_file
    from tilewise.lab.study import export as exporting
    from tilewise.lab.study import store

    where = store.newest(flags.folder)
    store.check_outputs([where], {"--csv": csv, "--parquet": parquet})
    entries, notes = store.load_entries(where)
    tell_notes(notes)
    made = exporting.rows_of(entries)
    parquet_file = exporting.as_parquet(made) if parquet is not None else b""  # which may not be possible
    if csv is not None:
        write_file(csv, exporting.as_csv(made), "--csv")
    if parquet is not None:
        write_file(parquet, parquet_file, "--parquet")
    return 0
