"""The MatrixMarket format: dense arrays, a number a line, column by column."""

from __future__ import annotations

import re
from typing import BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import shape_text
from tilewise.files.checks import numbers_bytes, printable
from tilewise.files.dtypes import ALL, is_integer
from tilewise.files.formats import Format
from tilewise.files.formats.text_lines import check_encoding
from tilewise.files.headed import put_head
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular

FORMAT = Format(numbers=ALL, orders=("F",), lines="number")
_DTYPES = {
    "real": "float64",
    "double": "float64",
    "integer": "int64",
    "unsigned-integer": "uint64",
    "complex": "complex128",
}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
_SIZE = re.compile(rb"\s*([0-9]{1,18})\s+([0-9]{1,18})\s*")
_LINE_MAX = 64 << 10  # bytes of a header line
_HEADER_MAX = 8 << 20  # bytes of all comments


def inspect(path: str, name: str, member: str) -> Source:
    """The array at `path`; sparse matrices are refused, symmetric ones must be decoded."""
    file, size = open_regular(path, name)
    with file:
        check_encoding(file.read(64), name)
        file.seek(0)
        field, symmetry = _banner(file.readline(_LINE_MAX), name)
        rows, columns = _extents(_next_line(file, name), name)
        # What follows may still be a comment or a blank line.
        offset = file.tell()
        while (line := file.readline(_LINE_MAX)) and (not line.strip() or line.startswith(b"%")):
            offset = file.tell()
    dtype = _DTYPES[field]
    numbers_bytes(rows, columns, dtype, name)
    if symmetry == "skew-symmetric" and field == "unsigned-integer":
        raise UsageError(f"{name} is skew-symmetric, which unsigned integers cannot represent")
    if symmetry != "general" and rows != columns:
        raise UsageError(f"{name} declares its {shape_text(rows, columns)} matrix {symmetry}")
    count = rows * columns
    if symmetry != "general":
        count = rows * (rows - 1) // 2 if symmetry == "skew-symmetric" else rows * (rows + 1) // 2
    line_numbers = 2 if field == "complex" else 1
    least = count * 2 * line_numbers - 1  # a digit and a line end or blank for each
    if size - offset < least:
        raise UsageError(
            f"{name} promises {shape_text(rows, columns)} numbers, which {size} bytes cannot hold: "
            "it is truncated"
        )
    return Source(
        path=path,
        name=name,
        offset=offset,
        rows=rows,
        columns=columns,
        dtype=dtype,
        order="F" if symmetry == "general" else "C",
        encoding="text" if symmetry == "general" else "binary",
        separator=" " if symmetry == "general" else "",
        line_numbers=line_numbers if symmetry == "general" else 0,
        pairs=symmetry == "general" and line_numbers == 2,
        hash_comments=False,
        file_bytes=size,
        format="mtx",
        encoded=symmetry != "general",
        notes=()
        if symmetry == "general"
        else (f"the array is stored as {symmetry}, with one half of its elements",),
    )


def decode(source: Source, out: BinaryIO) -> None:
    """Completes the half that a symmetric array stores; memory for all numbers is needed."""
    import numpy

    from tilewise.files.formats.text_parsing import numbers_of_text

    with open(source.path, "rb") as file:
        _, symmetry = _banner(file.readline(_LINE_MAX), source.name)
    size = source.rows
    skew = symmetry == "skew-symmetric"
    count = size * (size - 1) // 2 if skew else size * (size + 1) // 2
    # The same text, seen as one column.
    pairs = source.dtype == "complex128"
    column = msgspec.structs.replace(
        source, rows=count, columns=1, separator=" ", line_numbers=1 + pairs, pairs=pairs
    )

    def refuse(said: str) -> None:
        raise UsageError(f"{source.name}: {said}", "the same in an array that is general is a warning")

    half = numpy.concatenate([numpy.empty(0, source.dtype), *numbers_of_text(column, warn=refuse)])
    full = numpy.zeros((size, size), numpy.dtype(source.dtype).newbyteorder("<"))
    begin = 0
    for index in range(size):
        first = index + 1 if skew else index
        part = half[begin : begin + size - first]
        begin += part.size
        if skew and source.dtype == "int64" and (part == numpy.iinfo("int64").min).any():
            raise UsageError(
                f"{source.name} is skew-symmetric, but int64 cannot hold 2^63, the negative of -2^63"
            )
        mirrored = -part if skew else part.conj() if symmetry == "hermitian" else part
        full[index, first:] = mirrored
        full[first:, index] = part
    out.write(full.data)


def create(new: New) -> Region:
    """Writes banner and extents; numbers follow column by column."""
    field = "integer" if is_integer(new.dtype) else "complex" if new.dtype.startswith("complex") else "real"
    if new.dtype == "uint64":
        field = "unsigned-integer"  # what scipy writes for numbers beyond int64
    head = f"%%MatrixMarket matrix array {field} general\n{new.shape[0]} {new.shape[1]}\n".encode()
    put_head(new.path, head)
    return new.region(
        offset=len(head),
        order="F",
        encoding="text",
        separator=" ",
        line_numbers=2 if field == "complex" else 1,
        pairs=field == "complex",
    )


def _banner(line: bytes, name: str) -> tuple[str, str]:
    """The field and the symmetry that the first line says."""
    if not line.lower().startswith(b"%%matrixmarket"):
        what = "is empty" if not line else "does not begin with %%MatrixMarket"
        raise UsageError(f"{name} {what}, but a .mtx file was expected")
    words = line.decode("latin1").lower().split()
    if len(words) != 5 or words[1] != "matrix" or words[2] not in ("array", "coordinate"):
        raise UsageError(
            f"{name} begins with {printable(line.decode('latin1').strip())!r}, but "
            "%%MatrixMarket matrix array real general was expected"
        )
    _, _, layout, field, symmetry = words
    if layout == "coordinate":
        raise UsageError(
            f"{name} is a sparse matrix (coordinate), but a dense one (array) was expected",
            "write it densely: scipy.io.mmwrite('dense.mtx', scipy.io.mmread('sparse.mtx').toarray())",
        )
    if field not in _DTYPES or symmetry not in _SYMMETRIES:
        raise UsageError(
            f"{name} is an array of {printable(field)} {printable(symmetry)}; expected one of "
            f"{', '.join(_DTYPES)} and {', '.join(_SYMMETRIES)}"
        )
    return field, symmetry


def _extents(line: bytes, name: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(line)
    if match is None:
        raise UsageError(
            f"{name} says {printable(line.decode('latin1').strip())!r} where rows and columns were expected"
        )
    return int(match[1]), int(match[2])


def _next_line(file: BinaryIO, name: str) -> bytes:
    """The first line that is neither blank nor a comment."""
    seen = 0
    while seen < _HEADER_MAX:
        line = file.readline(_LINE_MAX)
        seen += len(line)
        if not line:
            raise UsageError(f"{name} is truncated: it has no line with rows and columns")
        if line.strip() and not line.startswith(b"%"):
            return line
    raise UsageError(f"{name} has no line with rows and columns in its first 8 MiB")
