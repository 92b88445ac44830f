"""Classic NetCDF: scipy reads the header, and the numbers are found where its views of the file point."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO

from tilewise.base.errors import UsageError
from tilewise.files.checks import (
    byte_order,
    missing,
    not_applied,
    number_type,
    numbers_bytes,
    pick,
    printable,
    require_room,
)
from tilewise.files.region import Source
from tilewise.files.slices import part_of, where, write_part
from tilewise.files.stacks import Selection

if TYPE_CHECKING:
    import numpy

    from tilewise.files.contents import Content

    Array = numpy.ndarray[Any, numpy.dtype[Any]]


def inspect(path: str, name: str, member: str, size: int, selection: Selection | None = None) -> Source:
    """The variable called `member`, or the only matrix; record variables between others are decoded."""
    with _Bounded(path, size) as file:
        variables = _variables(file)
        views = _views(variables)
        matrices = [key for key, view in views.items() if view.ndim == 2 and view.dtype.kind in "iuf"]
        if member and member not in views:
            raise missing(name, "variable", member, matrices)
        chosen = member or pick(name, path, "variable", matrices or (list(views) if len(views) == 1 else []))
        view = views[chosen]
        number = number_type(view.dtype, name)
        part = part_of(view.shape, name, selection)
        numbers_bytes(1, view.size, number, name, view.shape)
        in_place = bool(view.flags.c_contiguous)
        offset = _offset(view) if in_place and view.size else 0
        order = byte_order(view.dtype)
        warnings = not_applied(variables[chosen]._attributes)
    if in_place:
        require_room(name, size, offset, 1, view.size, number, view.shape)
    why = (
        "" if in_place else f"the variable {printable(chosen)} is a record variable, interleaved with others"
    )
    return Source(
        path=path,
        name=name,
        dtype=number,
        file_bytes=size,
        format="nc",
        member=chosen,
        warnings=warnings,
        **where(part, offset, number, order, why),
    )


def decode(source: Source, out: BinaryIO) -> None:
    """Copies panels of rows out of the mapped file."""
    part = source.part
    assert part is not None
    with _Bounded(source.path, source.file_bytes) as file:
        view = _views(_variables(file))[source.member]
        if view.shape != part.shape:
            raise UsageError(f"{source.name} changed while it was read")
        write_part(part, view, out)


def contents(path: str, name: str) -> list[Content]:
    """All variables."""
    from tilewise.files.contents import content

    with _Bounded(path, os.path.getsize(path)) as file:
        return [
            content(key, view.shape, view.dtype, "in one piece" if view.flags.c_contiguous else "in records")
            for key, view in _views(_variables(file)).items()
        ]


class _Bounded:
    """A file whose reads end where it ends, so that a length that lies makes nobody ask for its memory."""

    def __init__(self, path: str, size: int) -> None:
        self._file = open(path, "rb")  # noqa: SIM115 - closed by __exit__
        self._size = size

    def __enter__(self) -> _Bounded:
        return self

    def __exit__(self, *what: object) -> None:
        self._file.close()

    def read(self, count: int = -1) -> bytes:
        left = max(0, self._size - self._file.tell())
        if count < 0 or count > left:
            raise ValueError
        return self._file.read(count)

    def seek(self, *where: int) -> int:
        return self._file.seek(*where)

    def tell(self) -> int:
        return self._file.tell()

    def fileno(self) -> int:
        return self._file.fileno()

    @property
    def closed(self) -> bool:
        return self._file.closed

    def flush(self) -> None:
        """The library flushes before it closes."""

    def close(self) -> None:
        """The library closes what it was given, we do so ourselves."""


def _variables(file: _Bounded) -> dict[str, Any]:
    """Every variable, whose data are views into the mapped file, which stays open as long as a view does."""
    from scipy.io import netcdf_file  # type: ignore[import-untyped,unused-ignore]

    try:
        return dict(netcdf_file(file, "r", mmap=True).variables)
    except ValueError:  # numpy's, of views that reach beyond the end
        raise ValueError("its header promises more than the file holds: it is truncated or broken") from None


def _views(variables: dict[str, Any]) -> dict[str, Array]:
    return {key: variable.data for key, variable in variables.items()}


def _offset(view: Array) -> int:
    """Bytes from the begin of the mapped file to the first number of `view`."""
    import numpy

    whole: Any = view
    while isinstance(whole.base, numpy.ndarray):
        whole = whole.base
    return int(view.__array_interface__["data"][0] - whole.__array_interface__["data"][0])
