"""The table of fitted costs: up to three pieces each, and how far they miss what was left out of the fit."""

from __future__ import annotations

from tilewise.base.units import rate_text
from tilewise.lab.report.numbers import finite, giga, percent, significant, size_text, time_text
from tilewise.lab.report.table import Cell, Column, Table, number_columns, quantity, text_columns
from tilewise.machine.model import Cost, Model


def model_table(model: Model) -> Table | None:
    """One row for each piece: seconds of one operation = α + bytes / β."""
    if not model.costs and model.injection is None and model.copy_rate is None:
        return None
    table = Table("model", "Cost model: seconds = α + bytes / β; errors on sizes left out of the fit", [])
    table.columns = [*text_columns("cost"), *number_columns("from", "α"), Column("β", "GB/s")]
    table.columns += number_columns("median", "largest", unit="error")
    for cost in model.costs:
        _rows(table, cost)
    if model.costs:
        table.notes.append("of a message one way, a collective, or one call on a block of a file")
    injection, copying = finite(model.injection), finite(model.copy_rate)
    if injection is not None:
        table.notes.append(f"all pairs between two nodes together: {rate_text(injection, 'B/s')} at most")
    if copying is not None:
        table.notes.append(f"memory copy on all cores, read and written: {rate_text(copying, 'B/s')}")
    return table


def _rows(table: Table, cost: Cost) -> None:
    for place, piece in enumerate(cost.pieces):
        beta = Cell("∞")
        if piece.beta > 0:
            beta = quantity(1 / piece.beta, giga, f"{significant(piece.beta * 1e9)} ns/B")
        told = (cost.median_error, cost.largest_error) if place == 0 else (None, None)
        table.add(
            cost.key if place == 0 else "",
            quantity(piece.begin, lambda size: size_text(size) if size > 0 else "0 B"),
            quantity(piece.alpha, time_text),
            beta,
            *[quantity(error, percent) for error in told],
        )
