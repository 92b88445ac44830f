"""The commands as functions: paths or arrays in, an array out, or a record where `out` names a file.

    product = tilewise.multiply(a, b)                      # numpy arrays
    record = tilewise.multiply("A.npy", b, out="C.npy", ranks=4, memory="4GiB")

Options are the flags of the command, with `_` for `-`. Each call runs ranks in processes of its own, so that
it may be made in threads, and in programs that use MPI themselves. UsageError, RunError, VerificationError
and Stopped have the message of the command, and its warnings are TilewiseWarnings; a KeyboardInterrupt
arrives when all ranks are gone. With `each=0` they work on every slice of a stack of matrices.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from tilewise.api.arrays import Arrays, arrays, is_transpose, load
from tilewise.api.run import (
    JobRecord,
    MeasurementRecord,
    PlanRecord,
    command_words,
    recorded,
    run,
    run_shown,
    said,
    warn,
)
from tilewise.api.signature import refuse_unknown
from tilewise.base.errors import UsageError
from tilewise.operations import OPERATIONS, options_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from tilewise.api.options import (
        ConvertOptions,
        GenerateOptions,
        MeasureOptions,
        MultiplyOptions,
        NormOptions,
        StencilOptions,
        SvdOptions,
        TransposeOptions,
    )
    from tilewise.lab.report.style import Plot
    from tilewise.operations.norm import Norms

    Path = str | os.PathLike[str]
    Matrix = Path | ArrayLike
    Array = NDArray[Any]

_collected: ContextVar[list[JobRecord] | None] = ContextVar("collected", default=None)


@contextmanager
def records() -> Iterator[list[JobRecord]]:
    """The records of all calls within, in their sequence, also of those that return arrays.

    with tilewise.records() as done:
        tilewise.multiply(a, b)
    done[0].seconds.total.max
    """
    collected: list[JobRecord] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)


@overload
def multiply(a: Matrix, b: Matrix, out: None = None, **options: Unpack[MultiplyOptions]) -> Array: ...
@overload
def multiply(a: Matrix, b: Matrix, out: Path, **options: Unpack[MultiplyOptions]) -> JobRecord: ...
def multiply(a: Any, b: Any, out: Any = None, **options: Any) -> Any:
    """The product A·B, verified.

    `a` is m×k and `b` k×n, of floats, complex or whole numbers; the latter are multiplied in 64 bits.
    Arrays of one dimension mean what they mean to `a @ b`. Of `a.T` and `a` half is computed, and the result
    is symmetric. With `each` one or both are stacks, and so is the product. Returns an array, or with `out` a
    record.
    """
    if options.get("each") is None and is_transpose(a, b):  # one matrix, passed once, as it lies
        a, b, turned = (b, b, "transpose_a") if b.flags.c_contiguous else (a, a, "transpose_b")
        options = {**options, turned: not options.get(turned, False)}
    made = _job("multiply", {"a": a, "b": b}, out, options)
    if out is not None or options.get("each") is not None:
        return made
    import numpy

    rows, columns = (0 if numpy.ndim(each) == 1 else slice(None) for each in (a, b))
    return made[rows, columns]


@overload
def transpose(a: Matrix, out: None = None, **options: Unpack[TransposeOptions]) -> Array: ...
@overload
def transpose(a: Matrix, out: Path, **options: Unpack[TransposeOptions]) -> JobRecord: ...
def transpose(a: Any, out: Any = None, **options: Any) -> Any:
    """The transpose of `a`, of any type; as an array, row by row, or with `out` its record."""
    return _job("transpose", {"a": a}, out, options)


@overload
def stencil(a: Matrix, out: None = None, **options: Unpack[StencilOptions]) -> Array: ...
@overload
def stencil(a: Matrix, out: Path, **options: Unpack[StencilOptions]) -> JobRecord: ...
def stencil(a: Any, out: Any = None, **options: Any) -> Any:
    """`a` after `steps` sweeps of weighted sums; `weights` are named, or a square array with an odd side.

    Returns the last state as an array, or with `out` its record.
    """
    return _job("stencil", {"a": a}, out, options)


@overload
def svd(
    a: Matrix, out: None = None, *, values_only: Literal[False] = False, **options: Unpack[SvdOptions]
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    a: Matrix, out: None = None, *, values_only: Literal[True], **options: Unpack[SvdOptions]
) -> Array: ...
@overload
def svd(
    a: Matrix, out: None = None, *, values_only: bool, **options: Unpack[SvdOptions]
) -> Array | tuple[Array, Array, Array]: ...
@overload
def svd(a: Matrix, out: Path, *, values_only: bool = False, **options: Unpack[SvdOptions]) -> JobRecord: ...
def svd(a: Any, out: Any = None, *, values_only: bool = False, **options: Any) -> Any:
    """The singular value decomposition of `a`, an m×n matrix of real numbers.

    Returns (U, s, Vt) with min(m, n) or `components` columns, values and rows, so that (U * s) @ Vt is `a` or
    its best approximation; with `values_only` the values alone. With `out` the factors are files of that
    folder, and their record is returned.
    """
    options = {**options, "values_only": values_only}
    if out is not None:
        return _job("svd", {"a": a}, out, options)
    with arrays({"a": a}) as call:
        folder = call.result("svd")
        _run(call, "svd", ("a",), folder, options)
        values = load(os.path.join(folder, "s.npy"))
        if values_only:
            return values
        return load(os.path.join(folder, "U.npy")), values, load(os.path.join(folder, "Vt.npy"))


@overload
def convert(a: Matrix, out: None = None, **options: Unpack[ConvertOptions]) -> Array: ...
@overload
def convert(a: Matrix, out: Path, **options: Unpack[ConvertOptions]) -> JobRecord: ...
def convert(a: Any, out: Any = None, **options: Any) -> Any:
    """`a` in another format, type or order of storage.

    Returns it as an array, which reads files of any format; or with `out` its record.
    """
    return _job("convert", {"a": a}, out, options)


@overload
def generate(out: None = None, **options: Unpack[GenerateOptions]) -> Array: ...
@overload
def generate(out: Path, **options: Unpack[GenerateOptions]) -> JobRecord: ...
def generate(out: Any = None, **options: Any) -> Any:
    """A matrix made by rule, the same on any number of ranks; as an array, or with `out` its record."""
    return _job("generate", {}, out, options)


def norm(a: Matrix, **options: Unpack[NormOptions]) -> Norms:
    """The norms of `a`: `frobenius`, `one` (of columns), `infinity` (of rows) and `max`, as floats.

    With `each` they are arrays, with a number for each slice.
    """
    from tilewise.operations.norm import norms_of

    with arrays({"a": a}) as call:
        record = _run(call, "norm", ("a",), None, {**options})
        return norms_of(record.result, record.variant.each)


def info(
    a: Matrix,
    *,
    stats: bool = False,
    header_rows: int | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    missing: str | Sequence[str] | None = None,
) -> dict[str, Any]:
    """Describe a matrix without reading its numbers: shape, dtype, format, order and more.

    `stats` reads all numbers: smallest, largest, mean, and how many are not finite. The others say how a text
    is read.
    """
    flags = {
        "stats": stats,
        "header_rows": header_rows,
        "separator": separator,
        "decimal": decimal,
        "missing": missing,
    }
    with arrays({"a": a}) as call:
        words = command_words("info", (call.word("a"),), None, None, flags)
        facts: dict[str, Any] = said(words, dict[str, Any], call.named)
        return {key: call.named(value) if isinstance(value, str) else value for key, value in facts.items()}


def plan(command: str, *inputs: Matrix, out: Path | None = None, **options: Any) -> PlanRecord:
    """Plan a job without running it: `plan("multiply", a, b, memory="4GiB")`.

    Takes what the function of that name takes. UsageError for what that would refuse.
    """
    operation = options_of(command) if command in OPERATIONS else None
    named = dict(zip(operation.operands if operation else ("a", "b"), inputs, strict=False))
    with arrays(_with_weights(named, options)) as call:
        path = out
        if out is None and operation is not None and operation.writes:
            path = call.result("result" if operation.several else "result.npy")
        words = (*_words(call, command, named), *inputs[len(named) :])
        planned: PlanRecord = said(
            ["plan", *command_words(command, words, path, None, _passed(call, options))],
            PlanRecord,
            call.named,
        )
        planned.outputs[:] = map(call.named, planned.outputs)
        return planned


def measure(kind: str | None = None, **options: Unpack[MeasureOptions]) -> MeasurementRecord:
    """Measure this machine at one kind of work, ping, file, memory or compute, or at all of them."""
    return run("measure", *([] if kind is None else [kind]), **options)


def _job(command: str, inputs: dict[str, Any], out: Any, options: dict[str, Any]) -> Any:
    """Runs the command; returns its record, or the array that it made where `out` is None."""
    with arrays(_with_weights(inputs, options)) as call:
        if out is not None:
            return _run(call, command, inputs, out, options)
        path = call.result("result.npy")
        _run(call, command, inputs, path, options)
        return load(path)


def _run(call: Arrays, command: str, names: Iterable[str], out: Any, options: dict[str, Any]) -> JobRecord:
    refuse_unknown(command, options)
    flags = _passed(call, options)
    timeout = flags.pop("timeout", None)
    words = tuple(_words(call, command, names))
    record: JobRecord = recorded(command, words, out, timeout, flags, call.named)
    call.rename_record(record)
    if (collected := _collected.get()) is not None:
        collected.append(record)
    return record


def _words(call: Arrays, command: str, names: Iterable[str]) -> list[Any]:
    return [call.word(name, row=(command, name) == ("multiply", "a")) for name in names]


def _with_weights(inputs: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """All that may be an array."""
    return {**inputs, "weights": options["weights"]} if "weights" in options else inputs


def _passed(call: Arrays, options: dict[str, Any]) -> dict[str, Any]:
    """The options as the command line has them."""
    return {**options, "weights": call.word("weights")} if "weights" in options else {**options}


class StudyPlots(dict[str, "Plot"]):
    """The plots of a study by name, each with `title`, `caption` and a matplotlib `figure`.

    A notebook shows all of them, with their captions.
    """

    def _ipython_display_(self) -> None:
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

        for plot in self.values():
            display(plot)  # type: ignore[no-untyped-call, unused-ignore]
            words = {"text/markdown": plot.caption, "text/plain": plot.caption}
            display(words, raw=True)  # type: ignore[no-untyped-call, unused-ignore]


def run_study(
    name: Path,
    *,
    scale: Literal["tiny", "default", "report"] = "default",
    results: Path = "results",
    only: Mapping[str, Sequence[Any] | str | float] | None = None,
    resume: bool = False,
) -> str:
    """Runs a study, a shipped one by its name or a TOML file, and returns the folder of its results.

    The folder lies in `results`. `only` restricts axes to some of their values: `{"ranks": [1, 2]}`. With
    `resume` the newest results of this study are completed. Raises UsageError, or RunError where points have
    failed; the others are kept.
    """
    from tilewise.lab.study import shipped, store
    from tilewise.lab.study.study import read

    if only is not None and not isinstance(only, Mapping):
        raise UsageError(f"only expects values of axes, not {only!r}", 'only={"ranks": [1, 2]}')
    study = read(shipped.path_of(os.fspath(name)), scale)
    folder = store.folder_for(os.fspath(results), study.name, resume)
    words = ["study", "run", os.fspath(name), f"--scale={scale}", f"--into={folder}"]
    for axis, values in (only or {}).items():
        listed = [values] if isinstance(values, (str, int, float)) else values
        words.append(f"--only={axis}={','.join(map(str, listed))}")
    ended = run_shown(words, whole=True)
    if ended.exit_code:
        ended.fail()
    return folder


def load_study(folder: Path) -> Any:
    """All launches of a study's results: a pandas DataFrame where pandas is installed, else a list of dicts.

    `folder` is the results folder, or the one above it, of which the newest results are taken. A row is a
    launch, or a line of a measurement; the reference names the columns. UsageError where there are none; a
    warning for what was left out.
    """
    from tilewise.lab.study.export import rows

    notes: list[str] = []
    made = rows(os.fspath(folder), notes)
    warn(notes)
    try:
        import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return made
    return pandas.DataFrame(made)


def plots(folder: Path) -> StudyPlots:
    """The plots that a study declares, drawn from its results; `folder` as in `load_study`.

    UsageError where there are no results.
    """
    from tilewise.lab.report.study_plots import declared
    from tilewise.lab.study import evaluation

    study = evaluation.load(os.fspath(folder))
    drawn = StudyPlots()
    for place, plot in enumerate(study.plots):
        for figure in declared([study], place):
            drawn[plot.name] = figure
    return drawn
