"""Losses: what is said of numbers in texts that no float can hold as they are written."""

from __future__ import annotations

from tilewise.base.units import plural


def loss_text(kind: str, count: int, line: int, column: int, dtype: str) -> str:
    """One sentence, which stands behind a file's name; the place is that of the first number."""
    where = f"the first is in line {line}, column {column}"
    verb = "was" if count == 1 else "were"
    if kind == "rounded":
        advice = "" if dtype.startswith("complex") else "; convert --dtype int64 keeps integers exact"
        return f"{plural(count, 'integer')} beyond 2^53 {verb} rounded to {dtype}; {where}{advice}"
    return f"{plural(count, 'number')} too large for {dtype} became infinite; {where}"
