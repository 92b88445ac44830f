"""A measurement as a notebook shows it: the tables of `tilewise measure` as plain HTML."""

from __future__ import annotations

import html

from tilewise.errors import clean
from tilewise.measure.result import Measurement
from tilewise.report.measure import everything
from tilewise.report.table import Table
from tilewise.units import plural


def measurement_html(measurement: Measurement) -> str:
    """Every table that has rows, the long one folded, and the warnings; all words are escaped."""
    count = plural(len(measurement.lines), "line")
    command = " ".join(measurement.command)
    parts = [f"<p><b>{_safe(command)}</b><br>{count} in {measurement.seconds:.0f} s</p>"]
    parts += [_table(table) for table in everything(measurement, brief=True) if table.rows]
    if measurement.warnings:
        parts.append(f"<ul>{''.join(f'<li>{_safe(each)}</li>' for each in measurement.warnings)}</ul>")
    return "".join(parts)


def _table(table: Table) -> str:
    heads = [f"{column.title} ({column.unit})" if column.unit else column.title for column in table.columns]
    rows = [[cell.text + cell.mark for cell in row] for row in table.rows]
    head = "".join(f"<th>{_safe(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{_safe(each)}</td>' for each in row)}</tr>" for row in rows)
    notes = "".join(f"<p>{_safe(note)}</p>" for note in table.notes)
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"
    title = _safe(table.title)
    return (
        f"<details><summary>{title}</summary>{whole}</details>" if table.folded else f"<p>{title}</p>{whole}"
    )


def _safe(text: str) -> str:
    return html.escape(clean(text), quote=True)
