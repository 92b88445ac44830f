"""Tables of a study's page: figures with their bases, what was not run, all points."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from tilewise.base.units import plural
from tilewise.lab.report.numbers import NONE, within
from tilewise.lab.report.study_format import (
    Scales,
    base_of,
    base_place,
    digits_of,
    is_further,
    look,
    plain,
    reach_of,
    reasons,
    short,
)
from tilewise.lab.report.study_labels import date, labels, last, named, worded
from tilewise.lab.report.table import Cell, Column, Marks, Table, number_columns, quantity, text_columns
from tilewise.lab.statistics.summary import aggregate
from tilewise.lab.study import tables as study
from tilewise.lab.study.cells import Cell as Figure
from tilewise.lab.study.evaluation import Evaluated
from tilewise.lab.study.labels import labels_of
from tilewise.lab.study.paths import figure_of
from tilewise.lab.study.results import Measured, Results
from tilewise.lab.study.schema import Reference, TableWanted
from tilewise.lab.study.store import Entry

_PHASES = ("input", "compute", "exchange", "output", "total")


def figures(studies: Sequence[Evaluated], place: int) -> list[Table]:
    """The study's table number `place`, the results side by side, and the source's own beside it."""
    mine = [each.tables[place] for each in studies]
    wanted = studies[0].results.study.file.tables[place]
    made = _joined(mine, wanted, labels(studies))
    return [made, *([_reference(mine[0], mine[0].reference)] if mine[0].reference else [])]


def _joined(mine: Sequence[study.Table], wanted: TableWanted, names: Sequence[str]) -> Table:
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
    marks, everywhere = Marks(), _everywhere(mine)
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
    table.notes += [f"all figures: {', '.join(everywhere)}"] if everywhere else []
    table.notes += [*marks.notes(), *reasons(mine)]
    return table


def _everywhere(mine: Sequence[study.Table]) -> list[str]:
    """Labels that all figures have: these are said once."""
    every = [cell for each in mine for row in each.cells for cell in row[: len(row) - len(each.also)]]
    figures = [cell.labels for cell in every if cell.value is not None]
    first = figures[0] if figures else []
    return [label for label in first if all(label in each for each in figures)]


def _chosen_by(tables: Sequence[study.Table]) -> str:
    """The one axis that tells the chosen points of all cells apart; empty where there are several."""
    chosen = {cell.chosen for each in tables for row in each.cells for cell in row if cell.chosen}
    axes = {each.partition(" = ")[0] for each in chosen}
    return axes.pop() if len(axes) == 1 and all(each.count(" = ") == 1 for each in chosen) else ""


def _union(lists: Sequence[list[list[Any]]]) -> list[list[Any]]:
    return list({repr(label): label for each in lists for label in each}.values())


def _label(value: Any, name: str = "") -> Cell:
    counts = isinstance(value, (int, float)) and not isinstance(value, bool)
    return Cell(worded(name, value), value if counts else None)


def _figure(cell: Figure, table: study.Table, column: list[Any], scales: Scales, chosen_by: str) -> Cell:
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
    return Cell(text, cell.value, "; ".join(hint), spread="" if reach is None else within(reach))


def _reference(beside: study.Table, told: Reference) -> Table:
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


def _heads(beside: study.Table, told: Reference, rows: list[list[Any]]) -> list[str]:
    """What the source's rows are called: as it says, else as ours where theirs are such values."""
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


def _median(point: Measured, path: str) -> Cell:
    value = phase_seconds(point, path)
    return Cell(NONE, tone="faint") if value is None else quantity(value)


def phase_seconds(point: Measured, path: str) -> float | None:
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
