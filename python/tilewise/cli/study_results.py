"""`tilewise study compare` and `export`, and what is told at the end of a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from tilewise.base.declare import FOLDER, JSON, SHOW, WHAT, Parameter, Value
from tilewise.base.errors import UsageError, clean
from tilewise.base.units import plural
from tilewise.cli.answers import write_file, write_json
from tilewise.cli.parse import parse

if TYPE_CHECKING:
    from tilewise.lab.study.claims import Verdict
    from tilewise.lab.study.compare import Comparison
    from tilewise.lab.study.run import Outcome

CSV = Value("FILE", (".csv",))


def tell(folder: str, outcome: Outcome) -> None:
    """Tables, claims, and where everything is."""
    show_results(folder)
    counts = ["1 launch" if outcome.launched == 1 else f"{outcome.launched} launches"]
    if outcome.reused:
        counts.append(f"{outcome.reused} reused")
    counts.append(f"{plural(outcome.done, 'point')} done")
    counts += [f"{plural(outcome.left, 'launch')} left to other parts"] if outcome.left else []
    counts += [f"{outcome.failed} failed"] if outcome.failed else []
    counts += [f"{outcome.not_run} not run"] if outcome.not_run else []
    print(f"\n{', '.join(counts)}; results are in {folder}")


def show_results(folder: str) -> None:
    """All tables of a results folder with notes and reasons, and the verdicts on its claims."""
    from tilewise.lab.report.render.terminal import Screen, show
    from tilewise.lab.report.study_tables import figures
    from tilewise.lab.study.evaluation import load
    from tilewise.lab.study.labels import band

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
    show(screen)


def _said(verdict: Verdict) -> str:
    from tilewise.lab.report.study_claims import figure_text
    from tilewise.lab.study.claims import VERDICTS

    figure = "" if verdict.figure is None else f" [{figure_text(verdict)}]"
    reason = f": {verdict.reason}" if verdict.reason else ""
    note = f"; {verdict.note}" if verdict.note else ""
    return f"{VERDICTS[verdict.verdict]}{figure}{reason}: {verdict.text}{note}"


def tell_notes(notes: list[str], before: str = "") -> None:
    """Says on stderr what was left out or stands out, apart from what may be read by a program."""
    for note in notes:
        print(clean(f"tilewise: note: {before}{note}"), file=sys.stderr)


def compare(words: list[str]) -> int:
    """Compares two results; returns the exit code."""
    asked = parse("study compare", compare_request, words)
    if asked is None:
        return 0
    from tilewise.lab.study import outputs, results
    from tilewise.lab.study.compare import compare as compared
    from tilewise.lab.study.devices import environments_of, refuse_mixture

    old, new, metric, json = asked
    outputs.check([old, new], {"--json": json})
    loaded = results.load(old), results.load(new)
    for name, result in zip((old, new), loaded, strict=True):
        tell_notes(result.notes, f"{name}: " if old != new else "")
    ran = [entry for result in loaded for point in result.points for entry in point.entries]
    refuse_mixture(f"{old} {new}", environments_of(ran))
    comparison = compared(*loaded, metric or "")
    if not comparison.changes:
        raise UsageError(f"{old} and {new} have no point in common")
    if json is not None:
        write_json(json, comparison, "--json", indent=1)
    if json == "-":
        return 0
    _show(comparison)
    return 0


def _show(comparison: Comparison) -> None:
    """A row for each point, and what else is different."""
    from tilewise.lab.report.render.terminal import Screen, show
    from tilewise.lab.report.table import Table, number_columns, quantity, text_columns

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


def compare_request(
    old: Annotated[str, Parameter(name="OLD", value=FOLDER, group=WHAT, help="A results folder.")],
    new: Annotated[
        str, Parameter(name="NEW", value=FOLDER, group=WHAT, help="Another results folder of the same study.")
    ],
    /,
    *,
    metric: Annotated[
        str | None,
        Parameter(
            name="--metric",
            value=Value("PATH"),
            group=WHAT,
            help="Figure to compare: a path in the record.",
            default="seconds.total.max",
        ),
    ] = None,
    json: Annotated[
        str | None,
        Parameter(
            name="--json", value=JSON, stream=True, group=SHOW, help="File to write; - for standard output."
        ),
    ] = None,
) -> tuple[str, str, str | None, str | None]:
    """Say for each point whether it is faster or slower, or cannot be told apart.

    Examples:
        tilewise study compare results/old results/new
            Two results of the same study.
    """
    return old, new, metric, json


def export(words: list[str]) -> int:
    """Writes flat files; returns the exit code."""
    asked = parse("study export", export_request, words)
    if asked is None:
        return 0
    folder, csv, parquet = asked
    if csv is None and parquet is None:
        raise UsageError("export needs a file to write", "--csv FILE, or --parquet FILE")
    from tilewise.lab.study import export as exporting
    from tilewise.lab.study import outputs, store

    where = store.newest(folder)
    outputs.check([where], {"--csv": csv, "--parquet": parquet})
    entries, notes = store.load_entries(where)
    tell_notes(notes)
    made = exporting.rows_of(entries)
    parquet_file = exporting.as_parquet(made) if parquet is not None else b""  # which may not be possible
    if csv is not None:
        write_file(csv, exporting.as_csv(made), "--csv")
    if parquet is not None:
        write_file(parquet, parquet_file, "--parquet")
    return 0


def export_request(
    folder: Annotated[str, Parameter(name="DIR", value=FOLDER, group=WHAT, help="A results folder.")],
    /,
    *,
    csv: Annotated[
        str | None,
        Parameter(
            name="--csv",
            value=CSV,
            stream=True,
            group=WHAT,
            help="CSV file to write; - for standard output.",
        ),
    ] = None,
    parquet: Annotated[
        str | None,
        Parameter(
            name="--parquet",
            value=Value("FILE", (".parquet",)),
            group=WHAT,
            help="Parquet file to write (needs pyarrow).",
        ),
    ] = None,
) -> tuple[str, str | None, str | None]:
    """Write all launches as flat rows to CSV or Parquet.

    Examples:
        tilewise study export results/quick --csv launches.csv
            A row for each launch, a column for each field of its record.
    """
    return folder, csv, parquet
