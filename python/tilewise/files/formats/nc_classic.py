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
    two_dimensions,
)
from tilewise.files.region import Source

if TYPE_CHECKING:
    import numpy

    from tilewise.files.contents import Content

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

_PANEL = 32 << 20


def inspect(path: str, name: str, member: str, size: int) -> Source:
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
        rows, columns = two_dimensions(view.shape, name)
        numbers_bytes(rows, columns, number, name)
        in_place = bool(view.flags.c_contiguous)
        offset = _offset(view) if in_place and view.size else 0
        order = byte_order(view.dtype)
        warnings = not_applied(variables[chosen]._attributes)
    if in_place:
        require_room(name, size, offset, rows, columns, number)
    note = f"the variable {printable(chosen)} grows with records, which lie between those of others"
    return Source(
        path=path,
        name=name,
        offset=offset,
        rows=rows,
        columns=columns,
        dtype=number,
        byte_order=order if in_place else "little",
        file_bytes=size,
        format="nc",
        member=chosen,
        encoded=not in_place,
        notes=() if in_place else (note,),
        warnings=warnings,
    )


def decode(source: Source, out: BinaryIO) -> None:
    """Copies panels of rows out of the mapped file."""
    import numpy

    native = numpy.dtype(source.dtype).newbyteorder("<")
    high = max(1, _PANEL // max(1, source.columns * native.itemsize))
    with _Bounded(source.path, source.file_bytes) as file:
        view = _views(_variables(file))[source.member]
        if view.shape != (source.rows, source.columns):
            raise UsageError(f"{source.name} changed while it was read")
        for row in range(0, source.rows, high):
            out.write(numpy.ascontiguousarray(view[row : row + high], native).data)


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
