"""What to call each of several results of one study, and names of axes and values in words."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilewise.lab.report.numbers import size_text
from tilewise.lab.study.evaluation import Evaluated
from tilewise.lab.study.paths import parsed
from tilewise.lab.study.results import Results
from tilewise.lab.study.schema import Figures, TableWanted, Value
from tilewise.lab.study.store import Session

SIZES = ("block", "bytes", "buffer")  # axes whose numbers are bytes
_BARE = 1000  # bytes: fewer need no unit to be read
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(-\d+)?")  # a folder's name


def labels(studies: Sequence[Evaluated]) -> list[str]:
    """The shortest that tells them apart: the machine, the day, the time, both, else the folder.

    One alone needs no name.
    """
    if len(studies) == 1:
        return [""]
    machines = [_machine(each.results) for each in studies]
    stamps = [date(each.results) for each in studies]
    if all(map(_STAMP.fullmatch, stamps)):
        days = [stamp[:10] for stamp in stamps]
        times = [stamp[11:16].replace("-", ":") for stamp in stamps]
        moments = [f"{day[5:]} {time}" for day, time in zip(days, times, strict=True)]
        both = [f"{machine} {moment}" for machine, moment in zip(machines, moments, strict=True)]
        candidates = [machines, days, times if len(set(days)) == 1 else moments, moments, both, stamps]
    else:
        candidates = [machines, stamps]
    for names in candidates:
        if len(set(names)) == len(studies) and all(names):
            return names
    return [each.results.folder for each in studies]


def date(results: Results) -> str:
    """When it was measured, as its folder says."""
    return os.path.basename(os.path.abspath(results.folder))


def last(results: Results) -> Session | None:
    """The newest session, whose environment is told."""
    return results.sessions[-1] if results.sessions else None


def _machine(results: Results) -> str:
    session = last(results)
    return session.environment.machine if session else ""


def named(names: Sequence[str], values: Sequence[Any]) -> str:
    """`ranks 2, io root`; of a figure's column, which has no names, its title."""
    if not names:
        return " ".join(map(str, values))
    return ", ".join(said(name, value) for name, value in zip(names, values, strict=True))


def said(name: str, value: Any) -> str:
    """`ranks 2`, but `root` for itself: words tell what they are."""
    plain = name.replace("_", " ").removeprefix("line.")
    return f"{plain} {worded(name, value)}" if isinstance(value, (int, float)) else str(value)


def worded(name: str, value: Any) -> str:
    """A value of an axis: `16 MB` for 16000000 bytes, `yes` of a switch that is on, else as it is."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    size = name.removeprefix("line.") in SIZES and isinstance(value, int) and value >= _BARE
    return size_text(value) if size else str(value)


def telling(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """The axes that tell `points` apart, in their order: those with one value, or that follow another, go."""
    kept: list[str] = []
    told = 1
    for axis in dict.fromkeys(axis for point in points for axis in point):
        there = {repr([point.get(each) for each in (*kept, axis)]) for point in points}
        if len(there) > told:
            kept.append(axis)
            told = len(there)
    return kept


def base_unit(wanted: Figures) -> str:
    """The unit of what a ratio is made of, where paths (to times, or sums of them) or the study tell it."""
    columns = wanted.columns if isinstance(wanted, TableWanted) else []
    values = [each.value for each in columns if isinstance(each, Value)] or [wanted.value]
    if all(map(_is_time, values)):
        return "s"
    return "" if wanted.cell or wanted.unit == "×" else wanted.unit


def _is_time(value: str) -> bool:
    times = [name.startswith(("seconds.", "samples.", "command_seconds")) for name in parsed(value).names]
    return bool(times) and all(times) and not set("*/<>=%[") & set(value)
