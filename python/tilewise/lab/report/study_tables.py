"""Tables of a study: figures with their bases, claims with their verdicts, points and what was not run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from tilewise.base.units import plural
from tilewise.lab.report.study_format import (
    Scales,
    base_of,
    base_place,
    date,
    digits_of,
    is_further,
    labels,
    last,
    look,
    named,
    number,
    plain,
    reach_of,
    reasons,
    short,
    worded,
)
from tilewise.lab.report.table import (
    NONE,
    Cell,
    Column,
    Footnotes,
    Table,
    number_columns,
    quantity,
    reach_text,
    text_columns,
)
from tilewise.lab.statistics.summary import aggregate
from tilewise.lab.study import tables as study
from tilewise.lab.study.cells import FigureCell
from tilewise.lab.study.checks import words_of
from tilewise.lab.study.claims import FAILS, HOLDS, UNDECIDED, UNTESTABLE, VERDICTS, Verdict, spelled
from tilewise.lab.study.evaluation import Evaluated
from tilewise.lab.study.observations import figure_of
from tilewise.lab.study.results import MeasuredPoint, Results, labels_of
from tilewise.lab.study.schema import Reference, StudyClaim, TableWanted
from tilewise.lab.study.store import Entry

_PHASES = ("input", "compute", "exchange", "output", "total")


def figures(studies: Sequence[Evaluated], place: int) -> list[Table]:
    """The study's table number `place`, the results side by side, and the source's own beside it."""
    mine = [each.tables[place] for each in studies]
    wanted = studies[0].results.study.file.tables[place]
    made = _joined(studies, mine, wanted)
    return [made, *([_reference(mine[0], mine[0].reference)] if mine[0].reference else [])]


def _told_once(studies: Sequence[Evaluated]) -> tuple[set[str], list[str]]:
    """Labels of all points, which the page tells at its top, and those of all figures: one sign for each."""
    points = [labels_of(point) for each in studies for point in each.results.points if point.entries]
    rows = [row for each in studies for table in each.tables for row in table.cells]
    every = set.intersection(*map(set, points)) if points else set()
    return every, sorted({label for row in rows for cell in row for label in cell.labels} - every)


def _joined(studies: Sequence[Evaluated], mine: Sequence[study.FigureTable], wanted: TableWanted) -> Table:
    names, (told, known) = labels(studies), _told_once(studies)
    rows = _union([table.rows for table in mine])
    columns = _union([table.columns for table in mine])
    chosen_by = _chosen_by(mine)
    table = Table(f"study-{wanted.name}", mine[0].title, [])
    table.title += "" if mine[0].aggregate == "median" else f" ({mine[0].aggregate})"
    table.title += f"; in brackets: {plain(chosen_by)}" if chosen_by else ""
    table.columns = text_columns(*map(plain, mine[0].row_names))
    scales = Scales(mine, wanted, plainly=wanted.reference is not None)
    places = [base_place(each) if wanted.base else "" for each in mine]
    if len(mine) == 1 and places[0] == "title":
        table.title += f"; {scales.compared(mine[0])}"
    else:
        places = ["row" if each == "title" else each for each in places]
        table.title += f"; compared with {mine[0].base}" if "column" in places else ""
    for name, where in zip(names, places, strict=True):
        if where == "row":
            heading = f"base: {mine[0].base}"
            table.columns.append(scales.base(f"{name}: {heading}" if name else heading))
    for column in columns:
        for each, name, where in zip(mine, names, places, strict=True):
            heading = column[0] if is_further(each, column) else named(each.column_names, column)
            heading = f"{heading} · {name}" if name and heading else heading or name or "value"
            table.columns.append(scales.column(each, column, heading))
            if where == "cell" and not is_further(each, column):
                table.columns.append(scales.base(f"its base{f' · {name}' if name else ''}"))
    marks, everywhere = Footnotes(known), _everywhere(mine)
    for row in rows:
        cells = [_label(value, name) for name, value in zip(mine[0].row_names, row, strict=True)]
        for each, where in zip(mine, places, strict=True):
            cells += [scales.base_cell(base_of(each, row))] if where == "row" else []
        for column in columns:
            for each, where in zip(mine, places, strict=True):
                cell = look(each, row, column)
                figure = _figure(cell, each, column, scales, chosen_by)
                sign = marks.sign(*(label for label in cell.labels if label not in everywhere))
                cells.append(dataclasses.replace(figure, mark=sign))
                if where == "cell" and not is_further(each, column):
                    cells.append(scales.base_cell(cell.base))
        table.rows.append(cells)
    table.notes = list(dict.fromkeys(note for each in mine for note in each.notes))
    more = [label for label in everywhere if label not in told]
    table.notes += [f"all figures: {', '.join(more)}"] if more else []
    table.notes += [*marks.notes(), *reasons(mine)]
    return table


def _everywhere(mine: Sequence[study.FigureTable]) -> list[str]:
    """Labels that all figures have: these are said once."""
    every = [cell for each in mine for row in each.cells for cell in row[: len(row) - len(each.also)]]
    figures = [cell.labels for cell in every if cell.value is not None]
    first = figures[0] if figures else []
    return [label for label in first if all(label in each for each in figures)]


def _chosen_by(tables: Sequence[study.FigureTable]) -> str:
    """The one axis that tells the chosen points of all cells apart; empty where there are several."""
    chosen = {cell.chosen for each in tables for row in each.cells for cell in row if cell.chosen}
    axes = {each.partition(" = ")[0] for each in chosen}
    return axes.pop() if len(axes) == 1 and all(each.count(" = ") == 1 for each in chosen) else ""


def _union(lists: Sequence[list[list[Any]]]) -> list[list[Any]]:
    return list({repr(label): label for each in lists for label in each}.values())


def _label(value: Any, name: str = "") -> Cell:
    counts = isinstance(value, (int, float)) and not isinstance(value, bool)
    return Cell(worded(name, value), value if counts else None)


def _figure(
    cell: FigureCell, table: study.FigureTable, column: list[Any], scales: Scales, chosen_by: str
) -> Cell:
    if cell.value is None:
        return Cell(short(cell), hint=cell.reason, tone="faint")
    text = scales.text(cell.value, table, column, digits_of(cell))
    if is_further(table, column):
        made_of = table.also[table.columns.index(column) - len(table.columns)]
        return Cell(text, cell.value, f"{column[0]} = {made_of}")
    hint = [f"{table.aggregate} of {plural(cell.n, 'sample')}"]
    if cell.low is not None and cell.high is not None and cell.low < cell.high:
        ends = (scales.text(end, table, column) for end in (cell.low, cell.high))
        whose = "launches" if cell.base is None else "launches of both"
        hint.append(f"95 % interval over {whose} {' – '.join(ends)}")
    if cell.base is not None:
        hint.append(f"base {scales.base_text(cell.base)} ({table.base})")
    text += f" ({cell.chosen.removeprefix(f'{chosen_by} = ')})" if cell.chosen else ""
    reach = reach_of(cell)
    return Cell(text, cell.value, "; ".join(hint), spread="" if reach is None else reach_text(reach))


def _reference(beside: study.FigureTable, told: Reference) -> Table:
    """The source's own figures, in the shape of the table that they stand beside."""
    labels_of = [row if isinstance(row, list) else [row] for row in told.rows]
    width = max((len(label) for label in labels_of), default=1)
    heads = [*_heads(beside, told, labels_of), *[""] * width][:width]
    columns = text_columns(*heads)
    table = Table(f"{beside.name}-reference", f"{told.source}: {beside.title}", columns, beside=True)
    units = {repr(title): unit for title, unit in zip(beside.columns, beside.units, strict=True)}
    labels_there = [repr(each if isinstance(each, list) else [each]) for each in told.columns]
    # Values of an axis beyond ours have the unit that all of ours have.
    alike = beside.column_names and len(set(units.values())) == 1 and any(map(units.get, labels_there))
    rest = beside.units[0] if alike else ""
    for column in told.columns:
        values = column if isinstance(column, list) else [column]
        names = beside.column_names if len(beside.column_names) == len(values) else []
        unit = units.get(repr(values), rest)
        table.columns.append(Column(named(names, values), unit, base=unit))
    for label, line in zip(labels_of, told.values, strict=False):
        cells = [_label(value, name) for name, value in zip(heads, label, strict=False)]
        cells += [Cell("")] * (width - len(label))
        cells += map(_label, line[: len(told.columns)])
        table.add(*cells, *[""] * (len(table.columns) - len(cells)))
    table.notes = [told.note] if told.note else []
    return table


def _heads(beside: study.FigureTable, told: Reference, rows: list[list[Any]]) -> list[str]:
    """Names of the source's rows: as it says, else as ours where theirs are such values."""
    if told.heads:
        return told.heads
    if any(len(row) != len(beside.row_names) for row in rows):
        return []
    kinds = [{isinstance(value, str) for value in values} for values in zip(*beside.rows, strict=True)]
    theirs = [{isinstance(value, str) for value in values} for values in zip(*rows, strict=True)]
    return [
        plain(name) if not kinds or theirs[place] <= kinds[place] else ""
        for place, name in enumerate(beside.row_names)
    ]


def missing(studies: Sequence[Evaluated]) -> Table | None:
    """Points that were not run or that failed, with the reason; None where there is none."""
    names = labels(studies)
    where = text_columns("where") if names[0] else []
    table = Table("missing", "Points without a result", text_columns("run", "point", "reason") + where)
    for each, name in zip(studies, names, strict=True):
        for point in each.results.points:
            if point.reason:
                axes = ", ".join(f"{axis.replace('_', ' ')} {value}" for axis, value in point.axes.items())
                tone = "bad" if point.reason.startswith("failed") else ""
                table.add(point.run, axes, Cell(point.reason, tone=tone), *([name] if name else []))
    table.folded = len(table.rows) > 12
    return table if table.rows else None


def points(studies: Sequence[Evaluated]) -> Table:
    """Every point that was run: its axes, launches, median seconds of each phase over all samples."""
    axes = list(
        dict.fromkeys(axis for each in studies for point in each.results.points for axis in point.axes)
    )
    names = labels(studies)
    table = Table("points", "All points", [], folded=True)
    table.columns = text_columns("run", *(axis.replace("_", " ") for axis in axes))
    table.columns += text_columns("where") if names[0] else []
    table.columns += number_columns("launches") + number_columns("command", *_PHASES, unit="s")
    table.columns += text_columns("labels")
    for each, name in zip(studies, names, strict=True):
        for point in each.results.points:
            if point.entries:
                table.add(
                    point.run,
                    *[_label(point.axes.get(axis, ""), axis) for axis in axes],
                    *([name] if name else []),
                    len(point.entries),
                    quantity(aggregate([entry.seconds for entry in point.entries], "median")),
                    *[_median(point, f"seconds.{phase}.max") for phase in _PHASES],
                    ", ".join(labels_of(point)),
                )
    return table


def _median(point: MeasuredPoint, path: str) -> Cell:
    value = phase_seconds(point, path)
    return Cell(NONE, tone="faint") if value is None else quantity(value)


def phase_seconds(point: MeasuredPoint, path: str) -> float | None:
    """The median of a figure of the record over the launches of `point`; None where it has none."""
    seen = (figure_of(path, entry) for entry in point.entries)
    there = [value for value in seen if value is not None]
    return aggregate(there, "median") if there else None


def environment(studies: Sequence[Evaluated]) -> Table:
    """A column for each of the results: machine, versions, scale, when."""
    names = labels(studies)
    table = Table("environment", "Environment", text_columns("what", *names))
    told = [dict(_told_of(each)) for each in studies]
    for what in dict.fromkeys(key for each in told for key in each):
        table.add(what, *[each.get(what, "") for each in told])
    return table


def _told_of(each: Evaluated) -> Iterator[tuple[str, str]]:
    results = each.results
    yield "results", results.folder
    session = last(results)
    if session is not None:
        of = session.environment
        yield from (("machine", of.machine), ("processor", of.cpu), ("cores", str(of.cores)))
        yield from [("file system", of.storage)] if of.storage else []
        yield from [("MPI", library)] if (library := _library(results)) else []
        names = {"mpi": "MPI of the build", "version": "version of the build"}
        yield from ((names.get(name, name.replace("_", " ")), str(value)) for name, value in of.mpi.items())
        yield from (("tilewise", of.tilewise), ("scale", session.scale), ("measured", session.time))
        if len(results.sessions) > 1:
            yield "sessions", f"{len(results.sessions)}, from {results.sessions[0].time}"
    else:
        yield "measured", date(results)


def _library(results: Results) -> str:
    """The MPI library that the newest launch found, in the words before its copyright."""
    around = (entry.record or {}).get("environment") if (entry := _newest(results)) is not None else None
    told = around.get("mpi_library") if isinstance(around, dict) else None
    return " ".join(str(told or "").split("\n")[0].split()[:4]).rstrip(",")


def _newest(results: Results) -> Entry | None:
    return next((point.entries[-1] for point in reversed(results.points) if point.entries), None)


_TONE = {HOLDS: "good", FAILS: "bad", UNDECIDED: "strong", UNTESTABLE: "faint"}
_DIGITS = 3
_CONDITION = "condition"


def claims(studies: Sequence[Evaluated], own: bool = False) -> Table | None:
    """Every claim of the source with its verdict and the figure that decides; None without any.

    `own`: those that follow from the source's own numbers, or do not.
    """
    verdicts = [each.verdicts for each in studies]
    places = [place for place, each in enumerate(verdicts[0]) if each.own == own]
    if not places:
        return None
    names = labels(studies)
    title = "What the source says of its own numbers" if own else f"What the source claims{_scales(studies)}"
    table = Table("claims-own" if own else "claims", title, text_columns("claim"))
    for name in names:
        table.columns += text_columns(name or "verdict", "figure" + (f" · {name}" if name else ""))
    table.columns += text_columns(_CONDITION, "place in the source, notes")
    file = studies[0].results.study.file
    for place in places:
        first = verdicts[0][place].claim
        nothing = Verdict(claim=first, verdict=UNTESTABLE)
        ours = [each[place] if place < len(each) else nothing for each in verdicts]
        cells = [Cell(first.text)]
        for verdict in ours:
            data = {"claim": first.text, "verdict": verdict.verdict}
            said = _said(verdict, own or bool(names[0]))
            shown = {"label": "figure"} if verdict.figure is not None else {}
            cells.append(Cell(said, hint=verdict.reason, tone=_TONE[verdict.verdict], data=data))
            cells.append(Cell(figure_text(verdict), verdict.figure, hint=_launches(verdict), data=shown))
        reason = next(filter(None, map(reason_text, ours)), "")
        hint = "\n".join(spelled(file, first.figure))
        hint = "\n".join(filter(None, (f"holds if {first.holds}" if first.holds else "", hint)))
        where = {"label": _CONDITION} if first.holds else {}
        cells.append(Cell(condition(first) if first.holds else "", hint=hint, data=where))
        table.add(*cells, _sentences(first.source, reason, first.note))
    if not own:
        table.notes = [
            "in brackets: the 95 % interval, and the launches of the point with fewest; undecided: the"
            " condition holds in part of that interval only, or n = 1 does not show how launches differ"
        ]
    return table


def condition(claim: StudyClaim) -> str:
    """A claim's condition in words, `above 2 and below 3 ×`, without how a figure is picked (`at most`)."""
    return f"{words_of(claim) or 'as computed'} {claim.unit.partition(', at ')[0]}".rstrip()


def _sentences(*parts: str) -> str:
    """`Part 2, results. Needs 16 cores. On two hosts.`"""
    said = (f"{part[:1].upper()}{part[1:].rstrip('.')}." for part in parts if part)
    return " ".join(said)


def figure_text(verdict: Verdict) -> str:
    """`2.04 × (1.85 to 2.22, n = 3)`; empty where a claim has no figure."""
    if verdict.figure is None:
        return ""
    unit = f" {verdict.claim.unit}" if verdict.claim.unit else ""
    told = []
    if verdict.low is not None and verdict.high is not None and verdict.low < verdict.high:
        far = verdict.verdict == UNDECIDED and verdict.high - verdict.figure > abs(verdict.figure)
        ends = f"{number(verdict.low, _DIGITS)} to {number(verdict.high, _DIGITS)}"
        told.append("> ±100 %" if far else ends)
    told += [f"n = {verdict.n}"] if verdict.n is not None else []
    bracketed = f" ({', '.join(told)})" if told else ""
    return f"{number(verdict.figure, _DIGITS)}{unit}{bracketed}"


def reason_text(verdict: Verdict) -> str:
    """Why nothing is decided; empty where `n = 1` beside the figure tells it."""
    return "" if verdict.verdict == UNDECIDED and verdict.n == 1 else verdict.reason


def _launches(verdict: Verdict) -> str:
    if verdict.n is None:
        return ""
    return (
        f"{plural(verdict.n, 'launch')} of the point with fewest, of {plural(len(verdict.points), 'point')}"
    )


def _scales(studies: Sequence[Evaluated]) -> str:
    """`, at scale tiny`, where all results have one."""
    sessions = [last(each.results) for each in studies]
    scales = {session.scale for session in sessions if session is not None}
    return f", at scale {scales.pop()}" if len(scales) == 1 else ""


def _said(verdict: Verdict, short: bool) -> str:
    return VERDICTS[verdict.verdict].removesuffix(" here") if short else VERDICTS[verdict.verdict]


def counts(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """How many claims about the machine have each verdict."""
    return {name: sum(each.verdict == name and not each.own for each in verdicts) for name in VERDICTS}
