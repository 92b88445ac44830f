"""What every launch of a point would refuse, or what would never stop them, found before anything runs."""

from __future__ import annotations

import itertools
import types
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.lab.measurement.result import Line, Measurement
from tilewise.lab.study.points import Point
from tilewise.lab.study.schema import Run
from tilewise.lab.study.study import Study, expression, line_of
from tilewise.launch.record import Record

_OWN = ("run", "launch", "command_seconds")
_OF_LINES = ("rate", "rank", "partner", "number", "item")  # of lines, besides a measurement's fields
_TOGETHER = ("--algorithm", "--ranks")  # flags of which one may refuse a value of the other


def check_lines(study: Study, points: list[Point], check: Callable[[list[str]], None]) -> None:
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
    """What is wrong with the path `names` in a value of type `kind`; empty where it may be a number."""
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
