"""Figures out of a record: a dotted path, or an expression over such paths, axes and the entry's own numbers.

seconds.total.max      samples.compute (a list: one a repetition)      seconds.input.max / seconds.total.max
"""

from __future__ import annotations

import math
import statistics as plain
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tilewise.base.errors import UsageError
from tilewise.lab.study.expression import Expression, IncomputableError, Missing, Scope, short
from tilewise.lab.study.store import Entry


def follow(value: Any, path: str) -> Any:
    """What lies at `path`; a list on the way is gone through item by item. Missing where nothing is."""
    walked = ""
    for name in path.split("."):
        walked = f"{walked}.{name}".lstrip(".")
        if isinstance(value, list):
            value = [follow(each, name) for each in value]
        elif isinstance(value, Mapping) and name in value:
            value = value[name]
        else:
            raise Missing(f"the record has no {walked}")
    if value is None:
        raise Missing(f"the record has no figure at {path}")
    return value


def scope_for(
    entry: Entry, line: Mapping[str, Any] | None = None, more: Mapping[str, Any] | None = None
) -> Scope:
    """Names in an expression: `more`, axes, the entry's own, then fields of the line and of the record."""
    own = {"run": entry.run, "launch": entry.launch, "command_seconds": entry.seconds}

    def look(name: str) -> Any:
        if name.startswith("line.") and line is not None:
            return follow(line, name.removeprefix("line."))
        for values in (more or {}, entry.axes, own):
            if name in values:
                return values[name]
        head = name.partition(".")[0]
        if line is not None and (head in line or name == "rate"):
            return _rate(line) if name == "rate" else follow(line, name)
        return follow(entry.record or {}, name)

    return look


def _rate(line: Mapping[str, Any]) -> float:
    """What a line of a measurement moves or computes in a second."""
    return float(follow(line, "amount")) / float(follow(line, "summary.median"))


def lines_of(entry: Entry, wanted: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The lines of a measurement whose fields are as wanted; a list stands for any of its values.

    The kind `matrix` has a line for each two ranks of a measured table of pairs. `each` is the path of a
    list, which has a line for each `item`, with its `number` from 1.
    """
    record = entry.record or {}
    cells = record.get("lines")
    if "each" in wanted:
        cells = _items(record, wanted["each"])
    elif wanted.get("kind") == "matrix":
        cells = _pairs(record.get("matrices"))
    lines = [line for line in cells if isinstance(line, Mapping)] if isinstance(cells, list) else []
    return [line for line in lines if all(_fits(line.get(key), value) for key, value in wanted.items())]


def _items(record: Mapping[str, Any], path: str) -> list[Mapping[str, Any]]:
    try:
        items = follow(record, path)
    except Missing:
        return []
    items = items if isinstance(items, list) else [items]
    return [
        {"each": path, "key": f"{path}/{number}", "series": "", "number": number, "item": item}
        for number, item in enumerate(items, 1)
    ]


def _pairs(matrices: Any) -> list[Mapping[str, Any]]:
    """The cells of tables of pairs as lines: `summary.median` are seconds of a message, one way."""
    made: list[Mapping[str, Any]] = []
    for matrix in matrices if isinstance(matrices, list) else []:
        own = {"kind": "matrix", "series": "", "level": matrix["level"] or "core", "bytes": matrix["bytes"]}
        for rank, row in enumerate(matrix["seconds"]):
            for partner, seconds in enumerate(row):
                if rank != partner and seconds is not None:
                    key = f"matrix/{own['level']}/{matrix['bytes']}B/{rank}/{partner}"
                    pair = {"key": key, "rank": rank, "partner": partner}
                    made.append({**own, **pair, "summary": {"median": seconds}})
    return made


def _fits(value: Any, wanted: Any) -> bool:
    return value in wanted if isinstance(wanted, list) else bool(value == wanted)


FIGURE = "the figure"  # the place that messages name


@lru_cache(maxsize=512)
def parsed(text: str) -> Expression:
    """An expression that was checked when its study was read."""
    return Expression(text, FIGURE)


def reason_of(error: Missing | UsageError, where: str = "") -> str:
    """Why there is no figure, for a cell or a verdict: without the place and the expression."""
    said = f"it cannot be computed: {error.reason}" if isinstance(error, IncomputableError) else str(error)
    return said.removeprefix(f"{where}: ").removeprefix(f"{FIGURE}: ")


def numbers(value: Any) -> list[float]:
    """A figure's numbers, one or many; Missing where it is something else, or is not finite."""
    if isinstance(value, list):
        return [number for each in value for number in numbers(each)]
    try:
        if isinstance(value, (int, float)) and math.isfinite(value):
            return [float(value)]
    except OverflowError:  # more digits than a float's exponent has
        pass
    raise Missing(
        f"{short(value)} is not a finite number" if _counts(value) else f"{short(value)} is not a number"
    )


def _counts(value: Any) -> bool:
    return isinstance(value, (int, float))


def figure_of(text: str, entry: Entry) -> float | None:
    """The figure of one launch, the median where the launch has several; None where it has none.

    So it is where the figure cannot be computed of this launch; UsageError is for what is no expression.
    """
    figure = parsed(text)
    try:
        samples = numbers(figure.value(scope_for(entry)))
    except (Missing, UsageError):
        return None
    return plain.median(samples) if samples else None
