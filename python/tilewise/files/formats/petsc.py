"""PETSc's binary format: dense matrices in big endian, real or complex as PETSc was built."""

from __future__ import annotations

import struct

from tilewise.base.errors import UsageError
from tilewise.base.units import shape_text
from tilewise.files.checks import numbers_bytes, require_size
from tilewise.files.formats import Format
from tilewise.files.headed import create_headed
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular

FORMAT = Format(numbers=("float64", "complex128"), byte_order="big")
_MATRIX = 1211216  # PETSc's number for "a matrix follows"
_DENSE = -1
_HEAD = struct.Struct(">iiii")
_WIDE_HEAD = struct.Struct(">qqqq")  # of a PETSc with 64-bit indices


def inspect(path: str, name: str, member: str) -> Source:
    """The dense matrix at `path`; the file's size says whether its numbers are complex."""
    file, size = open_regular(path, name)
    with file:
        head = file.read(_WIDE_HEAD.size)
    wide = head[:8] == _MATRIX.to_bytes(8, "big")
    form = _WIDE_HEAD if wide else _HEAD
    if len(head) < form.size:
        raise UsageError(
            f"{name} has {size} bytes, but a .petsc file begins with {form.size} bytes of header"
        )
    magic, rows, columns, kind = form.unpack_from(head)
    if magic != _MATRIX:
        raise UsageError(f"{name} begins with {magic}, but a PETSc matrix begins with {_MATRIX}")
    if kind != _DENSE:
        what = "is a sparse PETSc matrix" if kind >= 0 else f"is a PETSc matrix of unknown kind {kind}"
        raise UsageError(
            f"{name} {what}, but a dense one was expected", "MatConvert(A, MATDENSE, …) before MatView"
        )
    real = numbers_bytes(rows, columns, "float64", name)
    if real and size == form.size + real // 2:
        raise UsageError(
            f"{name} has the size of {shape_text(rows, columns)} single-precision numbers, or is truncated",
            f"- --from 'raw:{rows}x{columns}:>float32:{form.size}' < {name} reads such numbers",
        )
    dtype = "complex128" if real and size == form.size + 2 * real else "float64"
    require_size(name, size, form.size, rows, columns, dtype)
    return Source(
        path=path,
        name=name,
        offset=form.size,
        rows=rows,
        columns=columns,
        dtype=dtype,
        byte_order="big",
        file_bytes=size,
        format="petsc",
        notes=()
        if dtype == "complex128"
        else ("complex numbers in single precision would have the same size; it is read as float64",),
    )


def create(new: New) -> Region:
    """Writes the header with 32-bit extents and gives the file its size."""
    if max(new.shape) >= 1 << 31:
        raise UsageError(
            f"{new.name} cannot hold {shape_text(*new.shape)}: a .petsc file stores its extents in 32 bits"
        )
    return create_headed(new, _HEAD.pack(_MATRIX, *new.shape, _DENSE), "big")
