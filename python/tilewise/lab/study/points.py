"""From a study to its points: axes crossed or zipped, constraints, command lines, what is out of reach.

axes  ranks = [1, 4]   size = [64, 128]   zip of [ranks, threads] …
        └── product of all groups, in the order of the file ──┘
constraints drop what makes no sense; those over the machine, and limits, mark it "not run" with the reason
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import math
import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import bytes_text, listing, nearest, plural
from tilewise.lab.study.expression import Expression, Missing, Scope, scope_of, short
from tilewise.lab.study.inputs import PreparedInput, plain_name, resolve
from tilewise.lab.study.schema import Run, condition_of
from tilewise.lab.study.study import Study, expression, line_of
from tilewise.machine.allocation import read_hosts
from tilewise.operations.operation import NOWHERE

MACHINE = {
    "cores": "core",
    "cpus": "processor",
    "gpus": "device",
    "hosts": "host",
    "memory": "free memory",
    "disk": "free disk space",
}
"""What limits may ask of a machine, with its name in sentences; `memory` and `disk` are in bytes."""

_MOST_OF_ANYTHING = 1 << 62  # that a machine could have
_MOST_COMBINATIONS = 100_000  # of one run: more than anybody waits for
_WORD = 1 << 63
_LEAST = {"--ranks": 1, "--threads": 1}  # other flags are checked by their command
_OURS = ("--json", "--output", "-o", "--trace", "--quiet", "-q", "--verbose", "-v", "--schema")
HOLE = re.compile(r"\{([^{}]+)\}")

# The flags of a command, such as {"--ranks": int, "--sync": bool}; UsageError for what is no command.
FlagsOf = Callable[[str], Mapping[str, Any]]


class StudyPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One command line of a study. `key` names it whatever the machine; `reason`: why it is not run."""

    key: str
    run: str
    axes: dict[str, Any]
    words: list[str]
    inputs: list[PreparedInput]
    output: str
    timeout: float | None
    reason: str = ""

    def line(self) -> str:
        """The command line as a user would type it in the work folder."""
        return shlex.join(["tilewise", *self.words])


def expand(study: Study, machine: Mapping[str, float], flags_of: FlagsOf) -> list[StudyPoint]:
    """All points of all runs, in the order of the file.

    `machine` has the values of MACHINE, `disk` and `memory` in bytes; `gpus` is 0 and `hosts` 1 if not said,
    and a run that names a file of hosts has those. Raises UsageError for flags that the command lacks, for
    names that mean nothing, and where constraints leave no point of a run.
    """
    points: list[StudyPoint] = []
    for run in study.runs:
        points += _of_run(study, run, machine, flags_of)
    seen: set[str] = set()
    for point in points:
        if point.key in seen:
            raise UsageError(f"{study.path}: runs {point.run}: two points are the same: {point.line()}")
        seen.add(point.key)
    return points


def combinations(run: Run) -> list[dict[str, Any]]:
    """Every combination of axis values: zipped axes go together, all else is crossed."""
    zipped = {axis: tuple(group) for group in run.zip or () for axis in group}
    groups: list[tuple[str, ...]] = []
    for axis in run.axes:
        group = zipped.get(axis, (axis,))
        if group not in groups:
            groups.append(group)
    rows = [list(zip(*(run.axes[axis] for axis in group), strict=True)) for group in groups]
    made = []
    for picked in itertools.product(*rows):
        values = {
            axis: value
            for group, row in zip(groups, picked, strict=True)
            for axis, value in zip(group, row, strict=True)
        }
        made.append({axis: values[axis] for axis in run.axes})
    return made


def _of_run(study: Study, run: Run, machine: Mapping[str, float], flags_of: FlagsOf) -> list[StudyPoint]:
    where = f"{study.path}: runs {run.name}"
    template = _Template(study, run, flags_of(str(run.command)), where)
    constraints = [expression(study, text, f"constraint of runs {run.name}") for text in run.constraints]
    limits = [condition_of(each) for each in run.limits]
    bounds = [(expression(study, each.holds, f"limit of runs {run.name}"), each.words) for each in limits]
    bounds = [*((each, "") for each in constraints), *bounds]
    needed = {name for each, words in bounds for name in (*each.names, *HOLE.findall(words))}
    for name in needed - {*run.axes, *MACHINE, "input_bytes"}:
        known = ", ".join([*run.axes, *MACHINE, "input_bytes"])
        raise UsageError(
            f"{where}: a constraint asks for {name!r}{line_of(study.text, name)}; expected one of {known}"
        )
    _check_count(run, where)
    here = {"gpus": 0, "hosts": 1, **machine}
    if "hosts" in needed and run.launcher is not None and run.launcher.hosts:
        folder = os.path.dirname(os.path.abspath(study.path))
        here["hosts"] = len(read_hosts(os.path.join(folder, run.launcher.hosts)))
    points = []
    for axes in combinations(run):
        scope = scope_of({**here, **axes, "input_bytes": 0}, where)
        if not all(_holds(each, scope) for each in constraints if not each.names & {*MACHINE, "input_bytes"}):
            continue
        point = template.point(axes)
        values = {**here, **axes, "input_bytes": sum(made.bytes for made in point.inputs)}
        reason = study.skipped.get(run.name, "") or _beyond(bounds, values, where)
        points.append(msgspec.structs.replace(point, reason=reason))
    if not points:
        raise UsageError(f"{where}: the constraints leave no point: {' and '.join(run.constraints)}")
    return points


def _beyond(limits: list[tuple[Expression, str]], values: dict[str, Any], where: str) -> str:
    """Why a point is out of reach, in the words of the limit or ours; empty where it is not."""
    scope = scope_of(values, where)
    for limit, words in limits:
        if not _holds(limit, scope):
            return unmet(limit, words, scope)
    return ""


def unmet(condition: Expression, words: str, scope: Scope) -> str:
    """Say what a condition that does not hold in `scope` lacks: `needs 4 cores; this machine has 2`.

    Without `words` of its own that is the least amount of one thing of the machine that makes it hold, or
    else the condition itself with the values of its names. Raises Missing and UsageError as its value does.
    """
    if words:
        return "needs " + HOLE.sub(lambda hole: short(scope(hole[1])), words)
    for name, noun in MACHINE.items():
        enough = _enough(condition, name, scope) if name in condition.names else 0
        if enough and name in ("memory", "disk"):
            asked, there = bytes_text(enough), bytes_text(scope(name))
            if asked == there:
                asked, there = f"{enough} bytes", f"{scope(name)} bytes"
            return f"needs {asked} of {noun}; this machine has {there}"
        if enough:
            return f"needs {plural(enough, noun)}; {_there(name, scope(name))}"
    values = [f"{name} is {short(scope(name))}" for name in sorted(condition.names)]
    return f"needs {condition.text}" + (f"; here {listing(values)}" if values else "")


def _enough(condition: Expression, name: str, scope: Scope) -> int:
    """Return the least amount of `name` that makes the condition hold; 0 where none does."""

    def holds(amount: int) -> bool:
        return condition.holds(lambda asked: amount if asked == name else scope(asked))

    most = max(1, int(scope(name)))
    while most < _MOST_OF_ANYTHING and not holds(most):
        most *= 2
    return bisect.bisect_left(range(most), True, 1, key=holds) if holds(most) else 0


def _there(name: str, amount: int) -> str:
    if name == "gpus":
        return f"{amount} here" if amount else "there is no device here"
    if name == "hosts":
        return f"there {'is' if amount == 1 else 'are'} {amount} here"
    return f"this machine has {amount or 'none'}"


def _holds(limit: Expression, scope: Scope) -> bool:
    """Evaluate a limit in which nothing may be missing, so that a division by zero is a mistake."""
    try:
        return limit.holds(scope)
    except Missing as missing:
        raise UsageError(f"{limit.where}: {missing}") from None


def _check_count(run: Run, where: str) -> None:
    zipped = {axis: tuple(group) for group in run.zip or () for axis in group}
    lengths = {zipped.get(axis, (axis,)): len(values) for axis, values in run.axes.items()}
    count = math.prod(lengths.values())
    if count > _MOST_COMBINATIONS:
        raise UsageError(
            f"{where}: its axes have {count} combinations; at most {_MOST_COMBINATIONS} are allowed"
        )


class _Template:
    """A run's command line with holes, and what fills them."""

    def __init__(self, study: Study, run: Run, flags: Mapping[str, Any], where: str) -> None:
        self._study, self._run, self._flags, self._where = study, run, flags, where
        self._folder = os.path.dirname(os.path.abspath(study.path))
        self._holes: dict[tuple[str, str], Expression] = {}
        self._fixed = {name: self._spelt(name) for name in run.flags}
        self._axes = {name: spelt for name in run.axes if (spelt := self._found(name))}
        for name, spelt in self._axes.items():
            self._check_ours(name, spelt)
        both = [axis for axis in self._axes if self._axes[axis] in self._fixed.values()]
        if both:
            raise UsageError(
                f"{where}: {both[0]!r} is both an axis and a fixed flag{line_of(study.text, both[0])}"
            )
        self._check_used()
        if run.trace and "--trace" not in flags:
            raise UsageError(f"{where}: {run.command} has no timeline; omit trace")
        for axis, spelt in self._axes.items():
            for value in run.axes[axis]:
                self._check_kind(spelt, value, f"the axis {axis!r}")
        for name, value in run.flags.items():
            if not (isinstance(value, str) and HOLE.search(value)):
                self._check_kind(self._fixed[name], value, f"flags.{name}")

    def point(self, axes: dict[str, Any]) -> StudyPoint:
        run = self._run
        inputs = {
            name: resolve(name, each, lambda text: self._fill(text, axes), self._study.path)
            for name, each in run.inputs.items()
        }
        words = self._words(axes, {name: made.word for name, made in inputs.items()}, self._folder)
        # A file is what it holds, not where it lies.
        plain = self._words(axes, {name: f"{{{name}}}" for name in inputs}, "")
        key = digest([run.name, axes, plain, [made.identity for made in inputs.values()]])
        kept = run.output and run.output != NOWHERE
        output = plain_name(self._fill(str(run.output), axes), self._where) if kept else ""
        if output:
            stem, ending = os.path.splitext(output)
            output = f"{stem}-{key[:8]}{ending}"
            words = [word if word != "{output}" else output for word in words]
        return StudyPoint(
            key=key,
            run=run.name,
            axes=axes,
            words=words,
            inputs=list(inputs.values()),
            output=output,
            timeout=run.timeout,
        )

    def _words(self, axes: dict[str, Any], names: Mapping[str, str], folder: str) -> list[str]:
        run = self._run
        positions = run.words if run.words is not None else [f"{{{name}}}" for name in names]
        words = [*str(run.command).split(), *(self._fill(word, axes, names) for word in positions)]
        if run.output:
            words += ["-o", NOWHERE if run.output == NOWHERE else "{output}"]
        for name, spelt in self._axes.items():
            words += _flag(spelt, axes[name])
        for name, value in run.flags.items():
            for each in value if isinstance(value, list) else [value]:
                filled = self._fill(each, axes, names) if isinstance(each, str) else each
                words += _flag(self._fixed[name], filled)
        for name in ("launcher", "hosts") if run.launcher is not None else ():
            if value := getattr(run.launcher, name):
                words += [f"--{name}", os.path.join(folder, value) if name == "hosts" else value]
        return words

    def _found(self, name: str) -> str:
        spelt = f"--{name.replace('_', '-')}"
        return spelt if spelt in self._flags else ""

    def _spelt(self, name: str) -> str:
        spelt = self._found(name.lstrip("-"))
        if not spelt:
            near = nearest(f"--{name}", self._flags)
            hint = f"; did you mean {near}?" if near else ""
            raise UsageError(
                f"{self._where}: {self._run.command} has no flag --{name.replace('_', '-')}"
                f"{line_of(self._study.text, name)}{hint}"
            )
        self._check_ours(name, spelt)
        return spelt

    def _check_ours(self, name: str, spelt: str) -> None:
        if spelt in _OURS:
            raise UsageError(
                f"{self._where}: {spelt} is set by the study itself{line_of(self._study.text, name)}"
            )

    def _check_used(self) -> None:
        """Raises UsageError for an axis that changes nothing: neither a flag, nor in a hole, nor zipped."""
        run = self._run
        texts = [*(run.words or ()), run.output or "", *(str(value) for value in run.flags.values())]
        for each in run.inputs.values():
            texts += [each.shape, each.kind, each.dtype, str(each.seed), each.format, each.path]
        holes = [Expression(hole, self._where) for text in texts for hole in HOLE.findall(text)]
        used = {name for hole in holes for name in hole.names}
        zipped = {axis for group in run.zip or () for axis in group if len(group) > 1}
        for axis in run.axes:
            if axis not in self._axes and axis not in used | zipped:
                raise UsageError(
                    f"{self._where}: the axis {axis!r} is not a flag of {run.command}, and nothing has "
                    f"{{{axis}}} in it{line_of(self._study.text, axis)}"
                )

    def _check_kind(self, spelt: str, value: Any, what: str) -> None:
        kind = self._flags[spelt]
        wants = {bool: "true or false", int: "whole numbers", float: "numbers"}.get(kind)
        fits = {
            bool: isinstance(value, bool),
            int: isinstance(value, int),
            float: isinstance(value, (int, float)),
        }
        wrong = not fits.get(kind, not isinstance(value, dict)) or (kind is not bool and value is True)
        if wrong:
            wants = wants or "a text or a number"
        elif isinstance(value, int) and not _LEAST.get(spelt, -_WORD) <= value < _WORD:
            wrong, wants = True, f"whole numbers from {_LEAST.get(spelt, -_WORD)} to {_WORD - 1}"
        if wrong:
            said = f"{spelt} expects {wants}"
            raise UsageError(
                f"{self._where}: {what} has {value!r}, but {said}{line_of(self._study.text, str(value))}"
            )

    def _fill(self, text: str, axes: Mapping[str, Any], names: Mapping[str, str] = {}) -> str:
        """`text` with each {expression} replaced by what it comes to."""
        if "{" not in text:
            return text
        scope = scope_of({**axes, **names}, f"{self._where}: {text!r}")

        def filled(match: re.Match[str]) -> str:
            try:
                value = self._parsed(match[1], text).value(scope)
            except Missing as missing:
                raise UsageError(
                    f"{self._where}: {text!r}: {missing}{line_of(self._study.text, text)}"
                ) from None
            return str(int(value) if isinstance(value, float) and value.is_integer() else value)

        return HOLE.sub(filled, text)

    def _parsed(self, hole: str, text: str) -> Expression:
        """Parsed once for all points, of which there may be very many."""
        expression = self._holes.get((hole, text))
        if expression is None:
            expression = self._holes[hole, text] = Expression(hole, f"{self._where}: {text!r}")
        return expression


def _flag(spelt: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [spelt] if value else []
    if isinstance(value, list):
        return [word for each in value for word in _flag(spelt, each)]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return [spelt, str(value)] if str(value) and not str(value).startswith("-") else [f"{spelt}={value}"]


def digest(value: Any) -> str:
    """Names a value by what it holds: 128 bits as hexadecimal digits, the same in every process."""
    return hashlib.blake2b(msgspec.json.encode(value, order="sorted"), digest_size=16).hexdigest()
