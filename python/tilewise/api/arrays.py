"""Arrays on their way to ranks and back: as files of a folder in shared memory, which both sides map.

    caller's array ──copy──▶ a.npy ──mapped by ranks──▶ result.npy ──mapped──▶ the array that the caller gets
    numpy.memmap of a file ────────▶ the file itself, without a copy

Where shared memory has too little space, the folder lies where `tempfile` puts files.
"""

from __future__ import annotations

import contextlib
import mmap
import numbers
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from tilewise.base.errors import TilewiseError, UsageError, disk_failure
from tilewise.launch import cleanup
from tilewise.launch.record import Record

_SPARE = 2  # so many times the inputs must be free where they are put: results lie there too


class Arrays:
    """The inputs of one call, by the names that the caller knows, and the folder of what has to be copied."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        self._inputs = {name: _as_array(value, name) for name, value in inputs.items()}
        self._folder = ""
        self._held = -1  # keeps the folder from being swept
        self._names: dict[str, str] = {}  # path: what the caller calls it
        self._saved: dict[int, str] = {}  # an array by its identity: where it was copied to

    def word(self, name: str, row: bool = False) -> Any:
        """Return the word of the command line for an input: an array's file, all else as it is.

        An array of one dimension is a column, or a `row`.
        """
        value = self._inputs[name]
        if not hasattr(value, "ndim"):
            return value
        import numpy

        if value.ndim == 1:
            value = value.reshape(1, -1) if row else value.reshape(-1, 1)
        if path := _file_of(value):
            return path
        path = self._path(f"{name}.npy", name)
        whole = value is self._inputs[name]  # not a column or a row just made of it
        try:
            if whole and id(value) in self._saved:
                os.link(self._saved[id(value)], path)
            else:
                numpy.save(path, value)
        except OSError as error:
            raise disk_failure(
                f"{name} cannot be passed to the ranks in {os.path.dirname(path)}", error
            ) from None
        if whole:
            self._saved.setdefault(id(value), path)
        return path

    def result(self, name: str) -> str:
        """Return the path of a result that the caller wants as an array."""
        return self._path(name, "the result")

    def _path(self, file: str, name: str) -> str:
        if not self._folder:
            cleanup.sweep()
            needed = _SPARE * sum(getattr(value, "nbytes", 0) for value in self._inputs.values())
            where = cleanup.FOLDER if _room(cleanup.FOLDER) >= needed else None
            self._folder, self._held = cleanup.new_folder(where)
        path = os.path.join(self._folder, file)
        self._names[path] = name
        return path

    def named(self, text: str) -> str:
        """`text` with the caller's names in the place of paths that only this call has."""
        for path, name in self._names.items():
            text = text.replace(path, name)
        return text

    def rename(self, error: TilewiseError) -> None:
        """Has the error speak of files in the caller's words."""
        error.message, error.advice = self.named(error.message), self.named(error.advice)
        error.args = (error.message,)
        if error.record is not None:
            self.rename_record(error.record)

    def rename_record(self, record: Record) -> None:
        """Has the record call arrays what the caller does: their files are about to be removed."""
        lists: tuple[list[Any], ...] = (record.inputs, record.outputs, record.environment.storage)
        for files in lists:
            files[:] = [msgspec.structs.replace(each, path=self.named(each.path)) for each in files]
        for texts in (record.warnings, record.reasons):
            texts[:] = map(self.named, texts)

    def remove(self) -> None:
        """Nothing is left but what somebody has mapped."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._held)
            self._folder = ""


@contextmanager
def arrays(inputs: dict[str, Any]) -> Iterator[Arrays]:
    """Around a call: errors speak of its inputs as the caller does, and no file of them is left."""
    call = Arrays(inputs)
    try:
        yield call
    except TilewiseError as error:
        call.rename(error)
        raise
    finally:
        call.remove()


def is_transpose(a: Any, b: Any) -> bool:
    """Return whether both are 2-D arrays in the same memory, and one is the other's transpose."""
    import numpy

    if not (isinstance(a, numpy.ndarray) and isinstance(b, numpy.ndarray)) or a.ndim != 2:
        return False
    where, there = a.T.__array_interface__, b.__array_interface__
    return all(where[key] == there[key] for key in ("data", "typestr", "shape")) and a.T.strides == b.strides


def load(path: str) -> Any:
    """The array of a `.npy` file that is about to be removed: its memory stays as long as somebody has it."""
    import numpy

    if path.startswith(cleanup.FOLDER):
        with contextlib.suppress(ValueError):  # a file without numbers cannot be mapped
            return numpy.asarray(numpy.load(path, mmap_mode="r+"))
    return numpy.load(path)


def _as_array(value: Any, name: str) -> Any:
    """`value` if it can name a file, else as an array of numbers; UsageError where it is neither."""
    if value is None or isinstance(value, (str, bytes, bool, int, float, os.PathLike)):
        return value
    import numpy

    if isinstance(value, numpy.ma.MaskedArray) and numpy.ma.is_masked(value):
        raise UsageError(f"{name} masks some of its numbers", f"{name}.filled(numpy.nan)")
    try:
        array = value if isinstance(value, numpy.memmap) else numpy.asarray(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} is neither a path nor an array: {error}") from None
    if array.dtype.hasobject:
        raise _no_numbers(array, name, value)
    return array


def _no_numbers(array: Any, name: str, value: Any) -> UsageError:
    """The error for Python objects: of an array or a table of them, which of them is no number."""
    for place, each in enumerate(array.flat):
        if not isinstance(each, numbers.Number):
            word = repr(each) if len(repr(each)) <= 40 else type(each).__name__
            if array.ndim == 0:
                return UsageError(f"{name} is neither a path nor an array of numbers, but {word}")
            where = ", ".join(map(str, divmod(place, array.shape[1]) if array.ndim == 2 else [place]))
            return UsageError(
                f"{name} is {_kind(value)} of Python objects, and {name}[{where}] is {word}, not a number",
                "leave out what holds no numbers, then .astype(float)",
            )
    return UsageError(f"{name} is {_kind(value)} of Python objects", f"{name}.astype(float)")


def _kind(value: Any) -> str:
    kind = type(value).__name__
    return "an array" if kind == "ndarray" else f"a {kind}"


def _file_of(array: Any) -> str:
    """The `.npy` file that `array` maps from its first number to its last; empty where it is none."""
    import numpy

    if not (isinstance(array, numpy.memmap) and isinstance(array.base, mmap.mmap) and array.filename):
        return ""
    path = os.fsdecode(array.filename)
    if not path.endswith(".npy") or array.mode == "c":  # changes to a private map are in memory alone
        return ""
    try:
        again = numpy.load(path, mmap_mode="r")
    except (OSError, ValueError):
        return ""
    same = (again.shape, again.dtype, again.offset) == (array.shape, array.dtype, array.offset)
    if not same or again.flags.f_contiguous != array.flags.f_contiguous:
        return ""
    array.flush()
    return path


def _room(folder: str) -> int:
    try:
        facts = os.statvfs(folder)
    except OSError:
        return -1
    return facts.f_bavail * facts.f_frsize
