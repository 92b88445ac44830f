"""The circumstances of a job or a measurement as a table: one row for each thing that is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilewise.lab.report.numbers import significant, size_text
from tilewise.lab.report.table import Table, text_columns


def environment_table(told: dict[str, Any]) -> Table | None:
    """Every circumstance by its name; None where nothing is told."""
    table = Table("environment", "Environment", text_columns("what", ""))
    for name, value in flat(told):
        table.add(name, value)
    return table if table.rows else None


def flat(told: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """What is inside of dictionaries and of lists of them, by names that lead there."""
    items = told.items() if isinstance(told, dict) else enumerate(told, 1)
    for name, value in items:
        plain = str(name) if before == "variables" else str(name).replace("_", " ")
        whole = f"{before} {plain}".strip()
        if isinstance(value, dict) or (
            isinstance(value, list) and any(isinstance(part, dict) for part in value)
        ):
            yield from flat(value, whole)
        else:
            parts = value if isinstance(value, list) else [value]
            sizes = before == "caches" and all(isinstance(part, int | float) for part in parts)
            shown = map(size_text if sizes else _said, parts)
            yield whole, " ".join(", ".join(shown).split())


def _said(value: Any) -> str:
    """A value for people: `–` for none, `yes` and `no` for a switch."""
    if value is None or isinstance(value, bool):
        return "–" if value is None else "yes" if value else "no"
    return significant(value, 4) if isinstance(value, float) else str(value)
