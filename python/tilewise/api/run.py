"""Any command by its words, as a function call that returns its record.

import tilewise
record = tilewise.run("multiply", "A.npy", "B.npy", out="C.npy", ranks=4)
record.seconds.total.max
"""

from __future__ import annotations

import contextlib
import inspect
import numbers
import operator
import os
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, overload

import msgspec

from tilewise.base.errors import RunError, TilewiseError, TilewiseWarning, UsageError
from tilewise.base.units import bytes_text, plural, seconds_text
from tilewise.engine.child import Ended, run_words
from tilewise.engine.planned import Planned
from tilewise.lab.measurement.result import Measurement
from tilewise.lab.report.progress import notebook_line
from tilewise.launch.record import RankSeconds, Record

if TYPE_CHECKING:
    from tilewise.api.options import Job
    from tilewise.lab.report.table import Table

    View = tuple[str, list[str], list[Table], list[str]]  # title, lines, tables, warnings

_PHASES = ("input", "compute", "exchange", "output", "verify", "total")
_LISTED = ("each",)  # flags that take several values in one word
_REPEATED = ("hint", "missing")  # flags that are given once for each value
_EXTENTS = ("shape", "grid")  # flags of two numbers with an x between them
_TALKS = ("info", "show", "plan", "study", "report", "doctor")  # what they say is for people


class _Shown:
    """Notebook view of a result, everything in it escaped: HTML, or Markdown for documents."""

    def _view(self) -> View:
        raise NotImplementedError

    def _brief(self) -> str:
        """The title, and two more lines of the view."""
        title, lines, tables, warned = self._view()
        notes = [note for table in tables for note in table.notes][:1]
        return "\n".join([f"<{title}", *(f" {line}" for line in [*lines, *notes, *warned][:2])]) + ">"

    def _repr_html_(self) -> str:
        from tilewise.lab.report.render import html_cell

        return html_cell(*self._view())

    def _repr_markdown_(self) -> str:
        from tilewise.lab.report.render import markdown_cell

        return markdown_cell(*self._view())


class JobRecord(Record, _Shown, kw_only=True):
    """The record of a job, which a notebook shows as a table of its phases."""

    def __repr__(self) -> str:
        seconds, proof = self.seconds, self.verification
        named = [
            ", ".join(f"{os.path.basename(each.path)} ({'×'.join(map(str, each.shape))})" for each in several)
            for several in (self.inputs, self.outputs)
        ]
        names = " → ".join(each for each in named if each)
        verdict = "not verified" if proof is None else f"verified: {proof.verdict()}"
        took = f"{seconds_text(seconds.total.max)} s, with its start {seconds_text(seconds.wall)} s"
        return f"<{self.command}: {names}\n {self._how()}\n {took}; {verdict}>"

    def _how(self) -> str:
        variant = self.variant
        size = f"{plural(variant.ranks, 'rank')} × {plural(variant.threads, 'thread')}"
        return f"{variant.algorithm}, {variant.exchange}, io {variant.io}, {size}"

    def _view(self) -> View:
        """Files, variant, phases over ranks, verdict and warnings."""
        from tilewise.lab.report.table import Table, number_columns, text_columns

        matrices = (*self.inputs, *self.outputs)
        names = ", ".join(f"{each.path} ({'×'.join(map(str, each.shape))})" for each in matrices)
        table = Table("", "", text_columns("seconds") + number_columns("min", "mean", "max"))
        for name in _PHASES:
            spread: RankSeconds = getattr(self.seconds, name)
            table.add(name, *map(seconds_text, (spread.min, spread.mean, spread.max)))
        table.add("wall", "", "", seconds_text(self.seconds.wall))
        proof = self.verification
        table.notes = ["not verified" if proof is None else f"verified: {proof.method}, {proof.verdict()}"]
        return f"tilewise {self.command}", [names, self._how()], [table], self.warnings


class PlanRecord(Planned, _Shown, frozen=True, kw_only=True):
    """A plan, which a notebook shows as what was chosen and why, with all variants below."""

    __repr__ = _Shown._brief

    def _view(self) -> View:
        """The reasons, and a folded table of all variants."""
        from tilewise.lab.report.planned import variants

        table = variants(self)
        table.folded = True
        chosen = next(each for each in self.variants if each.chosen)
        needed = f"needs {bytes_text(chosen.memory_bytes)} of memory"
        return f"plan of {self.command}", [needed, *self.reasons], [table], self.warnings


class MeasurementRecord(Measurement, _Shown, kw_only=True):
    """A measurement, which a notebook shows as its tables."""

    __repr__ = _Shown._brief

    def _view(self) -> View:
        """The tables of `tilewise measure`."""
        from tilewise.lab.report.measure import everything

        words = [f"{plural(len(self.lines), 'line')} in {self.seconds:.0f} s"]
        tables = [table for table in everything(self, brief=True) if table.rows]
        return " ".join(self.command), words, tables, self.warnings


@overload
def run(
    command: Job, *arguments: Any, out: Any = None, timeout: float | None = None, **flags: Any
) -> JobRecord: ...
@overload
def run(
    command: Literal["measure"], *arguments: Any, timeout: float | None = None, **flags: Any
) -> MeasurementRecord: ...
@overload
def run(
    command: str, *arguments: Any, out: Any = None, timeout: float | None = None, **flags: Any
) -> Any: ...
def run(command: str, *arguments: Any, out: Any = None, timeout: float | None = None, **flags: Any) -> Any:
    """Run a job or `measure` in processes of its own, and return its record.

    `arguments` are its positions, names of files or words; `out` is `--output`. Every other flag goes by its
    name, with `_` for `-`: `ranks=4`, `sync=True`, `hint=["a=1", "b=2"]`, `grid=(2, 3)`, `rows=slice(5)`, of
    `measure` also `bytes=[8, 64]`; None and False are not said. Returns a JobRecord, or of `measure` a
    MeasurementRecord. Raises UsageError, RunError, VerificationError or Stopped with the words of the
    command, and its warnings are TilewiseWarnings; a KeyboardInterrupt first ends all ranks.
    """
    if not isinstance(command, str):
        raise UsageError(f"tilewise.run expects the name of a command first, not {command!r}")
    if command in _TALKS:
        raise UsageError(
            f"tilewise.run runs jobs and measure, which have a record to return, not {command!r}"
        )
    for name, why in (("json", "run returns the record"), ("help", "help(tilewise.run) is")):
        if name in flags:
            raise UsageError(f"tilewise.run takes no {name!r}: {why}")
    return recorded(command, arguments, out, timeout, flags)


def recorded(
    command: str,
    arguments: tuple[Any, ...],
    out: Any,
    timeout: float | None,
    flags: dict[str, Any],
    named: Callable[[str], str] = str,
) -> Any:
    """The record of a job or of `measure`; `named` has warnings speak of files as the caller does."""
    words = command_words(command, arguments, out, timeout, flags)
    return said(words, _type_of(command), named)


def command_words(
    command: str, arguments: tuple[Any, ...], out: Any, timeout: float | None, flags: dict[str, Any]
) -> list[str]:
    """The command line that says the same; UsageError for values that none can say."""
    words = [command, *(_word(each, f"position {n}") for n, each in enumerate(arguments, 1))]
    for word in words:
        if word.startswith("-"):
            raise UsageError(f"{word!r} is not a file or an argument", "flags as keywords: ranks=4")
    if out is not None:
        words.append(f"--output={_word(out, 'out')}")
    if timeout is not None:
        if isinstance(timeout, bool) or not isinstance(timeout, numbers.Real):
            raise UsageError(f"timeout is a number of seconds, not {timeout!r}")
        words.append(f"--timeout={float(timeout):g}")
    for name, value in flags.items():
        if name == "verify" and value is False:  # what is not said is verified
            raise UsageError("verify cannot be False", 'verify="off"')
        words += _flag(command, name, value)
    return words


def said(words: list[str], kind: Any, named: Callable[[str], str] = str) -> Any:
    """Return what a command writes to `--json`, decoded as `kind`; raise its error, with any record.

    The warnings that it prints are warnings here, with what `named` makes of their words.
    """
    ended = run_shown([*words, "--json", "-"])
    found = [named(each) for each in ended.warnings()]
    try:
        if ended.exit_code:
            ended.fail()
    except TilewiseError as error:
        with contextlib.suppress(msgspec.MsgspecError):
            error.record = msgspec.json.decode(ended.output, type=kind)
        with contextlib.suppress(TilewiseWarning):  # where warnings are errors, this one is worse
            warn(found)
        raise
    try:
        value = msgspec.json.decode(ended.output, type=kind)
    except msgspec.MsgspecError as error:
        raise RunError(f"{words[0]} wrote no readable record: {error}") from None
    warn(found)
    return value


def warn(texts: Iterable[str]) -> None:
    """A TilewiseWarning of each, which names the line that called tilewise."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tilewise."):
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(text, TilewiseWarning, stacklevel=level)


def run_shown(words: list[str], whole: bool = False) -> Ended:
    """Runs a command here, and returns how it ended; a notebook shows its progress meanwhile.

    With `whole` shares are of everything, as in a study, and not of a phase. A KeyboardInterrupt is raised
    when the command and its ranks are gone.
    """
    try:
        here = os.getcwd()
    except OSError as error:
        raise RunError(
            f"the current folder: {error.strerror or error}", "os.chdir to an existing folder"
        ) from None
    line = notebook_line(whole)
    try:
        return run_words(words, here, hear=line.update if line is not None else None)
    except KeyboardInterrupt as interrupt:
        raise interrupt.with_traceback(None) from None  # where we waited says nothing
    finally:
        if line is not None:
            line.close()


def _flag(command: str, name: str, value: Any) -> list[str]:
    spelt = f"--{name.rstrip('_').replace('_', '-')}"  # `as_`, as Python keeps `as` for itself
    if value is None or value is False:
        return []
    if value is True:
        return [spelt]
    if isinstance(value, slice):
        return [f"{spelt}={_range(value, spelt)}"]
    if isinstance(value, (list, tuple)):
        words = [_word(each, spelt) for each in value]
        if name in _REPEATED or not words:
            return [f"{spelt}={word}" for word in words]
        if name in _EXTENTS and len(words) == 2:
            return [f"{spelt}={'x'.join(words)}"]
        if command != "measure" and name not in _LISTED:
            raise UsageError(f"{spelt} takes one value, not a {type(value).__name__}: {value!r}")
        return [f"{spelt}={','.join(words)}"]
    return [f"{spelt}={_word(value, spelt)}"]


def _range(value: slice, what: str) -> str:
    """A slice as a word, `100:200`; UsageError for a step, or for ends that are not whole numbers."""
    try:
        ends = ["" if end is None else str(operator.index(end)) for end in (value.start, value.stop)]
    except TypeError:
        raise UsageError(f"{what} expects a slice of whole numbers, not {value!r}") from None
    if value.step not in (None, 1):
        raise UsageError(f"{what} takes no steps, such as the one of {value!r}")
    return ":".join(ends)


def _word(value: Any, what: str) -> str:
    """A text, a path or a number as a word of the command line; UsageError for all else, such as an array."""
    if isinstance(value, (str, os.PathLike)):
        word = os.fsdecode(value)
        if "\0" in word:
            raise UsageError(f"{what} has a null character in it: {word!r}")
        return word
    if isinstance(value, numbers.Real):
        return str(value)
    matrix = hasattr(value, "shape") or isinstance(value, (list, tuple))
    raise UsageError(
        f"{what} must be a file name, a word or a number, not {type(value).__name__}",
        "numpy.save for a matrix in memory" if matrix else "",
    )


def _type_of(command: str) -> Any:
    if command != "measure":
        return JobRecord
    return MeasurementRecord
