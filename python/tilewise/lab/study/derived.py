"""Columns made out of the other columns of a row, by names that an expression can say.

write time   write          also = [{ title = "GB", value = "write * write_time" }]
    2 s      3 GB/s   ──▶   6
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.lab.study.expression import Missing
from tilewise.lab.study.paths import parsed
from tilewise.lab.study.schema import Change, Further, Reference, Settings, TableWanted, Value
from tilewise.lab.study.study import Study, expression, line_of

_MOST_LABELS = 10_000  # combinations of column axes that names are checked against


def name_of(axes: Sequence[str], label: Sequence[Any]) -> str:
    """`MPI-IO, split` is called MPI_IO_split, 4 of the axis ranks ranks_4; a column without a label value."""
    parts = []
    for place, value in enumerate(label):
        text = re.sub(r"\W+", "_", str(value)).strip("_")
        bare = isinstance(value, str) and not text[:1].isdigit()
        parts.append(text if bare or place >= len(axes) else f"{axes[place]}_{text}")
    return unicodedata.normalize("NFKC", "_".join(parts) or "value")  # as Python spells names


def names(axes: Sequence[str], labels: Sequence[Sequence[Any]]) -> dict[str, int]:
    """The place of each column by its name; of two that are called alike, none."""
    called = [name_of(axes, label) for label in labels]
    return {name: place for place, name in enumerate(called) if called.count(name) == 1}


def check(study: Study, wanted: TableWanted) -> None:
    """Raises UsageError, before anything runs, for names that no column has and for a title twice.

    Columns that are fields of lines are known only once they are measured: of these only titles are checked.
    """
    where = f"{study.path}: tables {wanted.name}"
    columns = [wanted.columns] if isinstance(wanted.columns, str) else wanted.columns
    axes = [each for each in columns if isinstance(each, str)]
    titles = [[each.title] for each in columns if isinstance(each, Value)]
    known: list[list[Any]] = titles or [[]]
    if axes:
        known = [] if wanted.lines else labels(study, axes)
    certain = bool(known)
    rows = [wanted.rows] if isinstance(wanted.rows, str) else wanted.rows
    for each in wanted.also:
        if [each.title] in known:
            raise UsageError(
                f"{where}: two columns are named {each.title!r}{line_of(study.text, each.title)}"
            )
        rule = expression(study, each.value, f"tables {wanted.name}, also {each.title!r}")
        there = {*names(axes, known), *rows}
        lacking = sorted(rule.names - there)
        if lacking and certain:
            raise UsageError(
                f"{rule.where} asks for {lacking[0]!r}; expected one of {', '.join(sorted(there))}"
            )
        known = [*known, [each.title]]


def labels(study: Study, axes: list[str]) -> list[list[Any]]:
    """Every label that columns over `axes` may have at any scale; none where these are too many."""
    file = study.file
    changes = [*file.scales.values(), *(each for run in file.runs for each in run.scales.values())]
    places: list[Settings | Change] = [file, *file.runs, *changes]
    values = []
    for axis in axes:
        values_of_axis = [value for place in places for value in place.axes.get(axis, [])]
        values_of_axis += [run.name for run in study.runs] if axis == "run" else []
        values.append(list({repr(value): value for value in values_of_axis}.values()))
    if math.prod(len(each) for each in values) > _MOST_LABELS:
        return []
    return [list(label) for label in itertools.product(*values)]


def beside(told: Reference, rows: Sequence[str], also: Sequence[Further]) -> Reference:
    """The source's figures with the same further columns, where it has what these are made of."""
    columns, values = list(told.columns), [list(line) for line in told.values]
    for each in also:
        rule = parsed(each.value)
        places = names([], [label if isinstance(label, list) else [label] for label in columns])
        if not rule.names <= {*places, *rows}:
            continue
        for label, line in zip(told.rows, values, strict=True):
            scope = dict(zip(rows, label if isinstance(label, list) else [label], strict=False))
            scope |= {name: line[place] for name, place in places.items()}
            try:
                line.append(float(f"{rule.number(scope.__getitem__):.3g}"))
            except (Missing, UsageError, KeyError):
                line.append("")
        columns.append(each.title)
    return msgspec.structs.replace(told, columns=columns, values=values)
