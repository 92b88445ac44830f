"""Checks before anything runs: command lines, figures in records, and the names that claims ask for."""

from __future__ import annotations

import itertools
import keyword
import re
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from tilewise.base.errors import UsageError
from tilewise.lab.measurement.result import Line, Measurement
from tilewise.lab.study.expression import FUNCTIONS, Called, Expression
from tilewise.lab.study.points import HOLE, StudyPoint
from tilewise.lab.study.schema import AGGREGATES, FigureColumn, Run, StudyClaim, TableWanted, condition_of
from tilewise.lab.study.study import Study, expression, line_of
from tilewise.launch.record import Record

_OWN = ("run", "launch", "command_seconds")
_OF_LINES = ("rate", "rank", "partner", "number", "item")  # of lines, besides a measurement's fields
_TOGETHER = ("--algorithm", "--ranks")  # flags of which one may refuse a value of the other


def check_lines(study: Study, points: list[StudyPoint], check: Callable[[list[str]], None]) -> None:
    """Raises UsageError for the first command line that `check` refuses, with the point's own words.

    `check` looks at the words alone, not at files. Of each run as many points are checked as it takes to see
    every pair of neighbouring words: every value of every flag once, though not with all values of others
    but for an algorithm's ranks.
    """
    tried: set[tuple[str, str]] = set()
    for point in points:
        names = {point.output, *(made.word for made in point.inputs)}
        plain = [point.run, *(word if word not in names else "" for word in point.words)]
        together = [value for flag, value in itertools.pairwise(plain) if flag in _TOGETHER]
        pairs = {*itertools.pairwise(plain), (point.run, " ".join(together))}
        if pairs <= tried:
            continue
        tried |= pairs
        try:
            check(point.words)
        except UsageError as error:
            where = f"{study.path}: runs {point.run}"
            raise UsageError(f"{where}: {point.line()}: {error.message}", error.advice) from None


def check_stops(study: Study) -> None:
    """Raises UsageError where the figure that is to end the launches of a run is in no record of it."""
    for run in study.runs:
        if run.stop is None:
            continue
        what = f"runs {run.name}: stop.metric"
        for name in sorted(expression(study, run.stop.metric, what).names):
            if name in _OWN or name in run.axes:
                continue
            missing = _missing(_kind_of(run), name.split("."))
            if missing:
                raise UsageError(
                    f"{study.path}: {what} asks for {name!r}{line_of(study.text, name)}, but a record of"
                    f" {run.command} has {missing}"
                )


def check_figure(study: Study, text: str, what: str, runs: list[Run], lines: bool) -> None:
    """Raises UsageError where a figure asks for what is in no record of `runs`, nor in a line of one."""
    for name in sorted(expression(study, text, what).names):
        if name in _OWN or any(name in run.axes for run in runs) or (lines and name in _OF_LINES):
            continue
        kinds = [_kind_of(run) for run in runs]
        missing = [_missing(kind, name.split(".")) for kind in kinds]
        if lines and Measurement in kinds:
            missing.insert(0, _missing(Line, name.removeprefix("line.").split(".")))
        if missing and all(missing):
            place = line_of(study.text, name)
            raise UsageError(f"{study.path}: {what} asks for {name!r}{place}, but there is {missing[0]}")


def _kind_of(run: Run) -> Any:
    return Measurement if str(run.command).split()[:1] == ["measure"] else Record


def _missing(kind: Any, names: list[str], walked: str = "") -> str:
    """Say what is wrong with the path `names` in a value of type `kind`; empty where it may be a number."""
    origin = typing.get_origin(kind)
    inner = typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return min((_missing(each, names, walked) for each in inner if each is not type(None)), key=len)
    if origin in (list, tuple):
        return _missing(inner[0], names, walked)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if not names:
            return f"no number at {walked}"
        fields = typing.get_type_hints(kind)
        if names[0] in fields:
            return _missing(fields[names[0]], names[1:], f"{walked}.{names[0]}".lstrip("."))
        return f"no {walked}.{names[0]}".replace("no .", "no ") + f"; expected one of {', '.join(fields)}"
    if origin is dict:
        return _missing(inner[1], names[1:], walked) if names else f"no number at {walked}"
    if kind is Any:
        return ""
    return f"nothing below {walked}" if names else f"no number at {walked}" if kind is str else ""


_BOUND = r"figure (>=|<=|>|<) (-?[0-9.]+)"
_SIGNS = {">": "above", "<": "below", ">=": "at least", "<=": "at most"}


class _Function(NamedTuple):
    """Signature of a function of claims: `arguments`, of which the first `least` must be there."""

    arguments: tuple[str, ...]
    least: int
    labels: bool  # whether it takes axes by their names


_FUNCTIONS = {
    "at": _Function(("table",), 1, True),
    "axis": _Function(("name",), 1, True),
    "cell": _Function(("table", "row", "column"), 2, False),
    "cells": _Function(("table",), 1, False),
    "column": _Function(("table", "label"), 2, False),
    "row": _Function(("table", "label"), 2, False),
    "value": _Function(("path", "aggregate"), 1, True),
}
CLAIM_FUNCTIONS = tuple(_FUNCTIONS)


def read_claim(text: str, place: str) -> Expression:
    """An expression of claims, to look at and not to compute; raises UsageError where it is none."""
    functions: dict[str, Callable[..., Any]] = dict.fromkeys(CLAIM_FUNCTIONS, lambda: None)
    return Expression(text, place, functions)


def words_of(claim: StudyClaim) -> str:
    """Say where the claim's figure must be, `above 2 and below 3`; empty where only the study can say it."""
    if claim.words or not re.fullmatch(f"{_BOUND}( (and|or) {_BOUND})*", claim.holds):
        return claim.words
    return re.sub(_BOUND, lambda bound: f"{_SIGNS[bound[1]]} {bound[2]}", claim.holds)


def check_names(study: Study) -> None:
    """Raises UsageError for names of expressions that cannot be, or ask for what is not above them."""
    known = ["cores"]
    for name, text in study.file.names.items():
        where = f"{study.path}: names {name}"
        if not name.isidentifier() or name.startswith("_") or keyword.iskeyword(name):
            raise UsageError(f"{where}: a name has letters, digits and '_'")
        if name in ("cores", "figure", *CLAIM_FUNCTIONS, *FUNCTIONS):
            raise UsageError(f"{where}: {name!r} has a meaning already")
        _check(study, text, where, known)
        known.append(name)


def check_claim(study: Study, claim: StudyClaim, where: str) -> None:
    """Raises UsageError for expressions that are none, and for names in them that the study does not have."""
    known = ["cores", *study.file.names]
    needs = condition_of(claim.needs)
    _among(f"{where}, needs", "there is no name", HOLE.findall(needs.words), known)
    for key in ("needs", "figure", "holds"):
        if key == "holds":
            known.append("figure")
        text = needs.holds if key == "needs" else getattr(claim, key)
        if not text:
            continue
        _check(study, text, f"{where}{line_of(study.text, text)}, {key}", known)
    if claim.holds and not claim.figure:
        raise UsageError(f"{where} needs a figure to decide it by", "figure = …, and holds = 'figure > 1'")
    if claim.holds and not words_of(claim):
        raise UsageError(
            f"{where}: holds = {claim.holds!r}{line_of(study.text, claim.holds)} lacks words for readers",
            'words = "above 1", or other words for the condition of the figure',
        )


def _check(study: Study, text: str, place: str, known: list[str]) -> None:
    made = read_claim(text, place)
    _among(place, "there is no name", made.names, [*known, "functions"])
    for call in made.calls:
        if call.function in _FUNCTIONS:
            _check_call(study, call, place)


def _check_call(study: Study, call: Called, place: str) -> None:
    function = _FUNCTIONS[call.function]
    given = dict(zip(function.arguments, call.positions, strict=False))
    labels: dict[str, Any] = {}
    for name, value in call.named.items():
        (given if name in function.arguments else labels)[name] = value
    lacking = [name for name in function.arguments[: function.least] if name not in given]
    if lacking or len(call.positions) > len(function.arguments) or (labels and not function.labels):
        said = ", ".join((*function.arguments, *(["AXIS=VALUE"] if function.labels else [])))
        raise UsageError(f"{place}: {call.function} is called as {call.function}({said})")
    axes = sorted({axis for run in study.runs for axis in run.axes})
    if call.function in ("axis", "value"):
        _among(place, "no run has an axis", labels, [*axes, "run"])
        _constant(place, "there is no run", labels.get("run"), [run.name for run in study.runs])
    if call.function == "axis":
        _constant(place, "no run has an axis", given["name"], [*axes, "run"])
    elif call.function == "value":
        _constant(place, "there is no aggregate", given.get("aggregate"), AGGREGATES)
        if given["path"] is not None:
            Expression(given["path"], place)
            runs = [run for run in study.runs if labels.get("run") in (None, run.name)]
            check_figure(study, given["path"], place.removeprefix(f"{study.path}: "), runs, lines=True)
    else:
        tables = {table.name: table for table in study.file.tables}
        _constant(place, "there is no table", given["table"], tables)
        if call.function == "at" and given["table"] is not None:
            _check_labels(place, tables[given["table"]], labels)


def _check_labels(place: str, table: TableWanted, labels: Iterable[str]) -> None:
    """`at` names exactly the rows and columns that its table has."""
    columns = [table.columns] if isinstance(table.columns, str) else table.columns
    wanted = [table.rows] if isinstance(table.rows, str) else list(table.rows)
    wanted += [each for each in columns if isinstance(each, str)]
    wanted += ["column"] if any(isinstance(each, FigureColumn) for each in columns) else []
    _among(place, f"table {table.name} has no axis", labels, wanted)
    for name in wanted:
        if name not in labels:
            raise UsageError(f"{place}: table {table.name} also has {name!r}")


def _among(place: str, said: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in sorted(names):
        if name not in known:
            raise UsageError(f"{place}: {said} {name!r}; expected one of {', '.join(known)}")


def _constant(place: str, said: str, value: Any, known: Iterable[str]) -> None:
    """Checks an argument that is written out; what is computed is known only later."""
    if value is not None and value not in known:
        raise UsageError(f"{place}: {said} {value!r}; expected one of {', '.join(known) or 'none'}")
