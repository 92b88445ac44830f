"""A study as it will be run: the file read, checked, and its runs put together for one scale.

Design: docs/design/measuring.md.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import nearest
from tilewise.lab.study.expression import Expression
from tilewise.lab.study.schema import (
    AGGREGATES,
    KINDS,
    LOGS,
    SCALES,
    Figures,
    File,
    PlotWanted,
    Run,
    Scale,
    Settings,
    StopRule,
)

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_RESERVED = {"run", "output", "cores", "cpus", "gpus", "memory", "disk", "value", "base", "launch"}
_ANYWHERE = "main"
_JOINED: dict[str, tuple[str, ...]] = {
    "runs": ("axes", "flags", "inputs", "scales"),
    "tables": ("lines", "reference"),
    "plots": ("lines",),
    "claims": (),
}
"""What one may be `like` another, or has defaults, with the tables in it that are put together key by key."""
_LONGEST = 1e9  # seconds of a timeout: what the system's clocks can wait for, and then some


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is the file's name without its ending; `text` the file as it was read; `runs` as scaled."""

    name: str
    path: str
    text: str
    scale: str
    file: File
    runs: list[Run]
    skipped: dict[str, str]

    @property
    def minutes(self) -> float | None:
        """Minutes that it takes at its scale on two quiet cores, if its file says that."""
        return self.file.scales.get(self.scale, Scale()).minutes


def read(path: str, scale: str = "default") -> Study:
    """The study at `path`; raises UsageError with the file's name, table and line for every mistake."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", "tilewise study list") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text, as a TOML file must be") from None
    name = os.path.basename(path).removesuffix(".toml")
    if not NAME.fullmatch(name):
        raise UsageError(f"{path}: a study's name has letters, digits, '.', '-' and '_', not {name!r}")
    return parse(text, path, name, scale)


def parse(text: str, path: str, name: str, scale: str = "default") -> Study:
    """The study in `text`; `path` stands in messages. Raises UsageError as `read` does."""
    try:
        plain = _inherited(msgspec.toml.decode(text), path)
        _check_axes(plain, path, text)
        file = msgspec.convert(plain, File)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {_sentence(str(error), text)}", "tilewise study show quick") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from None
    if scale not in SCALES:
        raise UsageError(f"--scale {scale!r} is unknown; expected one of {', '.join(SCALES)}")
    for scales in (file.scales, *(run.scales for run in file.runs)):
        for each in scales:
            if each not in SCALES:
                raise UsageError(f"{path}: scales.{each} is unknown; expected one of {', '.join(SCALES)}")
    runs, skipped = _scaled(file, scale, path)
    study = Study(name=name, path=path, text=text, scale=scale, file=file, runs=runs, skipped=skipped)
    _check(study)
    return study


def _inherited(plain: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the file with each run, table, plot and claim made whole by what it is `like` or by defaults."""
    defaults = plain.pop("defaults", {})
    for kind, given in defaults.items() if isinstance(defaults, dict) else [("", None)]:
        if kind not in _JOINED or not isinstance(given, dict):
            raise UsageError(f"{path}: defaults {kind} is unknown; expected tables {', '.join(_JOINED)}")
    above: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in _JOINED}
    for kind, joined in _JOINED.items():
        listed = plain.get(kind)
        for each in listed if isinstance(listed, list) else []:
            if not isinstance(each, dict) or not isinstance(like := each.get("like", ""), str):
                continue  # which is said when types are checked
            name = each.get("name")
            whole = defaults.get(kind, {})
            if like:
                known = {**above["tables"], **above[kind]} if kind == "plots" else above[kind]
                if said := _unknown("like", [like], known):
                    raise UsageError(f"{path}: {kind} {name}: {said}")
                of_tables = () if like in above[kind] else ("rows", "columns", "also", "reference")
                whole = {key: value for key, value in known[like].items() if key not in of_tables}
            each.update(_over(whole, each, joined))
            above[kind][str(name)] = dict(each)
    return plain


def _over(base: dict[str, Any], own: dict[str, Any], joined: Iterable[str]) -> dict[str, Any]:
    """Return `own` with what it lacks from `base`; tables called as one of `joined` are put together."""
    both = [key for key in joined if isinstance(base.get(key), dict) and isinstance(own.get(key), dict)]
    return {**base, **own, **{key: _over(base[key], own[key], own[key]) for key in both}}


def _check_axes(plain: dict[str, Any], path: str, text: str) -> None:
    """Raises UsageError for an axis that is no list, by its name: types alone tell only that there is one."""
    runs = plain.get("runs")
    for number, table in enumerate([plain, *(runs if isinstance(runs, list) else [])]):
        where = f"runs {number}, " if number else ""
        axes = table.get("axes") if isinstance(table, dict) else None
        for name, values in axes.items() if isinstance(axes, dict) else ():
            if not isinstance(values, list):
                line = line_of(text, f"axes.{name}") or line_of(text, f"{name} =")
                said = f"{path}: {where}axes.{name}: expected a list, not {values!r}{line}"
                raise UsageError(said, f"axes.{name} = [{values!r}]")


def line_of(text: str, needle: str) -> str:
    """`, line 12` where `needle` stands in the file, or nothing."""
    for number, line in enumerate(text.splitlines(), 1):
        if needle and needle in line:
            return f", line {number}"
    return ""


def expression(study: Study, text: str, what: str) -> Expression:
    """An expression of the file; its messages name file, line and `what` it is for."""
    return Expression(text, f"{study.path}{line_of(study.text, text)}, {what}")


def _sentence(said: str, text: str) -> str:
    """msgspec's sentence in our words: `Object contains unknown field `x` - at `$.runs[0]``."""
    message, _, place = said.partition(" - at ")
    table = place.strip("`").removeprefix("$").removeprefix(".") or "the top of the file"
    table = re.sub(r"\[\.\.\.\]", "", table)
    table = re.sub(r"\[(\d+)\]", lambda number: f" {int(number[1]) + 1}", table)
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message)
    if unknown:
        key = unknown[1]
        near = nearest(key, _keys())
        hint = f"; did you mean {near!r}?" if near else ""
        return f"unknown key {key!r} in {table}{line_of(text, key)}{hint}"
    missing = re.fullmatch(r"Object missing required field `(.*)`", message)
    if missing:
        return f"{table} lacks {missing[1]!r}"
    words = {"str": "a text", "int": "a whole number", "float": "a number", "bool": "true or false"}
    words |= {"array": "a list", "object": "a table", "null": ""}

    def ours(match: re.Match[str]) -> str:
        said = [words.get(each, each) for each in match[1].split(" | ")]
        return " or ".join(each for each in said if each)

    message = re.sub(r"`([^`]*)`", ours, message)
    return f"{table}: {message[:1].lower()}{message[1:]}"


def _keys() -> set[str]:
    from tilewise.lab.study import schema

    structs = [each for each in vars(schema).values() if isinstance(each, type)]
    return {key for each in structs for key in getattr(each, "__struct_fields__", ())}


def _scaled(file: File, scale: str, path: str) -> tuple[list[Run], dict[str, str]]:
    """Every run with what the file and the scale say; and why runs are left out, by their names."""
    runs = file.runs or [Run(name=_ANYWHERE)]
    names = [run.name for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path}: two runs are named {name!r}")
        if not NAME.fullmatch(name):
            raise UsageError(f"{path}: a run's name has letters, digits, '.', '-' and '_', not {name!r}")
    made, skipped = [], {}
    everywhere = file.scales.get(scale, Scale())
    for run in runs:
        joined = _join(file, run)
        own = run.scales.get(scale, Scale())
        for change, strict in ((everywhere, False), (own, True)):
            joined = _change(joined, change, strict, f"{path}: runs {run.name}, scales.{scale}")
            if change.skip:
                skipped[run.name] = change.skip
        made.append(joined)
    for run in runs:
        for name, change in run.scales.items():
            if change.minutes is not None:
                raise UsageError(
                    f"{path}: runs {run.name}, scales.{name}: minutes are those of all runs together",
                    f"[scales.{name}] at the top of the file",
                )
    for name, change in file.scales.items():
        if change.minutes is not None and not 0 < change.minutes <= _LONGEST:
            raise UsageError(f"{path}: scales.{name}: minutes = {change.minutes:g} makes no sense")
    known = {axis for run in made for axis in run.axes}
    for name, change in file.scales.items():
        for axis in change.axes:
            if axis not in known:
                raise UsageError(f"{path}: scales.{name} changes the axis {axis!r}, which no run has")
    return made, skipped


def _join(file: Settings, run: Run) -> Run:
    def either(name: str) -> object:
        own = getattr(run, name)
        return own if own is not None else getattr(file, name)

    joined = {name: {**getattr(file, name), **getattr(run, name)} for name in ("flags", "axes", "inputs")} | {
        name: [*getattr(file, name), *getattr(run, name)] for name in ("constraints", "limits")
    }
    rest = [name for name in Settings.__struct_fields__ if name not in joined]
    if run.stop is not None or run.launches is not None:  # each stands for the other
        rest = [name for name in rest if name not in ("stop", "launches")]
    return msgspec.structs.replace(run, **joined, **{name: either(name) for name in rest})


def _change(run: Run, change: Scale, strict: bool, where: str) -> Run:
    for axis in change.axes:
        if strict and axis not in run.axes:
            raise UsageError(f"{where} changes the axis {axis!r}, which this run lacks")
    axes = {axis: change.axes.get(axis, values) for axis, values in run.axes.items()}
    scalars = {
        name: getattr(change, name)
        for name in ("limits", "launches", "warmup_launches", "stop", "timeout", "trace")
        if getattr(change, name) is not None
    }
    if change.stop is not None or change.launches is not None:
        scalars = {"stop": None, "launches": None, **scalars}
    return msgspec.structs.replace(
        run,
        axes=axes,
        flags={**run.flags, **change.flags},
        inputs={**run.inputs, **change.inputs},
        **scalars,
    )


def _check(study: Study) -> None:
    for said in (*_mistakes_of_runs(study), *_mistakes_of_figures(study.file, {r.name for r in study.runs})):
        raise UsageError(f"{study.path}: {said}")


def _mistakes_of_runs(study: Study) -> Iterator[str]:
    for run in study.runs:
        said = next(_mistakes_of_run(run, study.text), "")
        if said:
            yield f"runs {run.name}: {said}"


def _mistakes_of_run(run: Run, text: str) -> Iterator[str]:
    if not run.command:
        yield 'command is missing, such as command = "multiply"'
    for axis, values in run.axes.items():
        if not values:
            yield f"the axis {axis!r} has no values{line_of(text, axis)}"
        if not _WORD.fullmatch(axis) or axis in _RESERVED:
            yield f"an axis cannot be named {axis!r}{line_of(text, axis)}"
        if not all(map(_is_value, values)):
            yield f"the axis {axis!r} has values that are not texts, numbers or booleans"
    yield from _mistakes_of_zip(run)
    zipped = {axis: group for group in run.zip or () for axis in group}
    for axis in run.axes:
        together = [run.axes[each] for each in zipped.get(axis, [axis])]
        rows = [" ".join(map(_plain, row)) for row in zip(*together, strict=True)]
        if len(set(rows)) < len(rows):
            yield f"the axis {axis!r} has a value twice"
    for name, each in run.inputs.items():
        if not _WORD.fullmatch(name) or name in _RESERVED or name in run.axes:
            yield f"an input cannot be named {name!r}"
        if bool(each.shape) == bool(each.path):
            yield f"the input {name!r} needs either a shape or a path"
    if run.launches is not None and run.launches < 1:
        yield f"launches = {run.launches} makes no sense; it must be 1 or more"
    if (run.warmup_launches or 0) < 0:
        yield f"warmup_launches = {run.warmup_launches} makes no sense"
    if run.timeout is not None and not 0 < run.timeout <= _LONGEST:
        yield f"timeout = {run.timeout:g} makes no sense; it is in seconds"
    if run.stop is not None and run.launches is not None:
        yield "launches and stop contradict each other; stop has least and most"
    if run.stop is not None and not (run.stop.relative > 0 and 2 <= run.stop.least <= run.stop.most):
        yield "stop needs relative > 0 and 2 <= least <= most"


def _mistakes_of_zip(run: Run) -> Iterator[str]:
    seen: set[str] = set()
    for group in run.zip or ():
        for axis in group:
            if axis not in run.axes:
                yield f"zip names {axis!r}, which is not an axis; axes: {', '.join(run.axes)}"
            if axis in seen:
                yield f"zip names the axis {axis!r} twice"
            seen.add(axis)
        lengths = {axis: len(run.axes[axis]) for axis in group}
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{axis} has {count}" for axis, count in lengths.items())
            yield f"zipped axes need the same number of values, but {said}"


def _mistakes_of_figures(file: File, runs: Collection[str]) -> Iterator[str]:
    every: list[tuple[str, Sequence[Figures]]] = [("tables", file.tables), ("plots", file.plots)]
    for kind, all_figures in every:
        given = [figures.name for figures in all_figures]
        for figures in all_figures:
            if given.count(figures.name) > 1:
                yield f"two {kind} are named {figures.name!r}"
            choices: list[tuple[str, Sequence[str], Collection[str]]] = [
                ("runs", figures.runs or (), runs),
                ("aggregate", [figures.aggregate], AGGREGATES),
                ("best", [figures.best], ("", "min", "max")),
            ]
            if isinstance(figures, PlotWanted):
                choices += [("kind", [figures.kind], KINDS), ("log", [figures.log], LOGS)]
            for key, values, known in choices:
                if said := _unknown(key, values, known):
                    yield f"{kind} {figures.name}: {said}"
    for plot in file.plots:
        for curve in plot.references:
            x, y = len(curve.x), len(curve.y)
            if x != y:
                yield f"plots {plot.name}: the reference {curve.label!r} has {x} x and {y} y"
    for table in file.tables:
        told = table.reference
        rows, columns = (len(told.rows), len(told.columns)) if told is not None else (0, 0)
        if told is not None and [len(row) for row in told.values] != [columns] * rows:
            yield (
                f"tables {table.name}: the reference needs {rows} lists of {columns} values, as it has rows"
                " and columns"
            )
    for number, claim in enumerate(file.claims, 1):
        if bool(claim.holds) == bool(claim.untestable):
            yield f"claims {number} needs either 'holds' or the reason why it is 'untestable'"


def launches_of(run: Run) -> tuple[int, int, StopRule | None]:
    """The least and the most launches of a point, and when to stop between them."""
    if run.stop is not None:
        return run.stop.least, run.stop.most, run.stop
    count = run.launches or 1
    return count, count, None


def _unknown(key: str, values: Iterable[str], known: Collection[str]) -> str:
    """Say which of `values` is not `known`; empty where all are."""
    wrong = next((value for value in values if value not in known), None)
    if wrong is None:
        return ""
    return f"{key} {wrong!r} is unknown; expected one of {', '.join(filter(None, known))}"


def _is_value(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_value(each) for each in value)
    return isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))


def warmups_of(run: Run) -> int:
    """Launches before those that count; the last of them keeps the timeline where one is wanted."""
    return (run.warmup_launches or 0) + bool(run.trace)


def _plain(value: object) -> str:
    return f"{type(value).__name__} {value!r}"
