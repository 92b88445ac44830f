"""The .mat format of MATLAB, versions 5 to 7.3: uncompressed real numbers are read and written in place."""

from __future__ import annotations

import os
import re
import struct
from typing import TYPE_CHECKING, Any, BinaryIO

from tilewise.base.errors import UsageError
from tilewise.files.dtypes import ALL, ITEMSIZE
from tilewise.files.formats import Format, h5_elsewhere, mat_elements, mat_hdf5, split_name
from tilewise.files.formats.mat_cursor import STORED, padded
from tilewise.files.formats.mat_variables import CLASSES, Variable, real_of
from tilewise.files.headed import put_head, raw_beside
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular
from tilewise.files.stacks import Selection

if TYPE_CHECKING:
    from tilewise.files.contents import Content

FORMAT = Format(
    numbers=tuple(dtype for dtype in ALL if dtype != "float16"),
    member="variable",
    orders=("F",),
    sliced=True,
)
_DEFAULT = "matrix"
others = h5_elsewhere.others  # of version 7.3
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_TEXT = b"MATLAB 5.0 MAT-file, created by tilewise"
_LARGEST = (1 << 31) - 1  # bytes of a variable, and extents, in a file of version 5
_TYPES = {dtype: number for number, dtype in STORED.items()}
_CHUNK = 1 << 20  # numbers


def inspect(path: str, name: str, member: str, selection: Selection | None = None) -> Source:
    """The variable called `member`, or the only matrix."""
    file, size = open_regular(path, name)
    with file:
        if _is_hdf5(file, size, name):
            return mat_hdf5.inspect(path, name, member, size, selection)
        return mat_elements.inspect(path, name, member, file, size, selection)


def decode(source: Source, out: BinaryIO) -> None:
    """Writes the numbers column by column."""
    with open(source.path, "rb") as file:
        version_7_3 = _is_hdf5(file, source.file_bytes, source.name)
    (mat_hdf5 if version_7_3 else mat_elements).decode(source, out)


def contents(path: str, name: str) -> list[Content]:
    """All variables."""
    from tilewise.files.contents import Content

    with open(path, "rb") as file:
        size = os.path.getsize(path)
        found: list[Variable]
        if _is_hdf5(file, size, name):
            found = mat_hdf5.variables(path, name)
        else:
            found = mat_elements.variables(file, size, name)
    return [
        Content(each.name, each.shape, each.dtype or each.kind, each.layout or "in one piece", each.is_matrix)
        for each in found
    ]


def create(new: New) -> Region:
    """A file of version 5, or 7.3 where the variable is too large for that."""
    name = _variable_name(new.member, new.name)
    if _needs_hdf5(new.shape, new.bytes):
        return mat_hdf5.create(new, name)
    if new.dtype.startswith("complex"):  # real and imaginary parts do not lie side by side
        return raw_beside(new)
    head = _head(name, new.shape, new.dtype)
    put_head(new.path, head)
    size = padded(len(head) + new.bytes)
    os.truncate(new.path, size)
    return new.region(offset=len(head), order="F", file_bytes=size)


def encode(raw: Region, path: str, planes: int) -> None:
    """Writes the real parts of complex numbers, and then the imaginary ones."""
    import numpy

    numbers: Any = numpy.memmap(raw.path, numpy.dtype(raw.dtype).newbyteorder("<"), "r") if raw.bytes else []
    with open(path, "r+b") as out:
        out.write(
            _head(_variable_name(split_name(raw.name)[1], raw.name), (raw.rows, raw.columns), raw.dtype)
        )
        for number, what in enumerate(("real", "imag")):
            if number:
                out.write(_tag(_TYPES[real_of(raw.dtype)], raw.bytes // 2))
            for first in range(0, raw.rows * raw.columns, _CHUNK):
                out.write(numpy.ascontiguousarray(getattr(numbers[first : first + _CHUNK], what)).data)
            out.write(bytes(padded(out.tell()) - out.tell()))


def written_warnings(name: str, shape: tuple[int, int], dtype: str, order: str) -> tuple[str, ...]:
    """A warning where readers of the older versions cannot read the file."""
    if not _needs_hdf5(shape, shape[0] * shape[1] * ITEMSIZE[dtype]):
        return ()
    return ("it is of version 7.3, because of its size; scipy.io.loadmat does not read that",)


def _is_hdf5(file: BinaryIO, size: int, name: str) -> bool:
    """Whether a file is of version 7.3; UsageError unless it is that or older, down to 5."""
    file.seek(0)
    head = file.read(mat_elements.HEAD)
    if head.startswith(b"\x89HDF\r\n\x1a\n") or head[124:128] in (b"\x00\x02IM", b"\x02\x00MI"):
        return True
    if head[124:128] in (b"\x00\x01IM", b"\x01\x00MI"):
        return False
    if size == 0:
        raise UsageError(f"{name} is empty, but a .mat file was expected")
    if len(head) >= 20 and 0 in head[:4]:
        raise UsageError(
            f"{name} is a MATLAB file of version 4, or none; versions 5 to 7.3 are read",
            "load it and save it again, with MATLAB, Octave or scipy.io.savemat",
        )
    raise UsageError(f"{name} has no header of a MATLAB file, but a .mat file was expected")


def _needs_hdf5(shape: tuple[int, int], size: int) -> bool:
    return max(*shape, size + 1024) > _LARGEST


def _variable_name(member: str, name: str) -> str:
    if _NAME.fullmatch(member or _DEFAULT):
        return member or _DEFAULT
    raise UsageError(
        f"the output {name} names no variable of MATLAB's: a letter, then at most 62 letters, digits and _"
    )


def _head(name: str, shape: tuple[int, int], dtype: str) -> bytes:
    """All before the first number."""
    real = real_of(dtype)
    is_complex = real != dtype
    size = shape[0] * shape[1] * ITEMSIZE[real]
    flags = mat_elements.NUMBERED.index(CLASSES[real]) | (mat_elements.COMPLEX << 8) * is_complex
    inside = (
        _element("uint32", struct.pack("<II", flags, 0))
        + _element("int32", struct.pack("<ii", *shape))
        + _element("int8", name.encode())
        + _tag(_TYPES[real], size)
    )
    whole = padded(len(inside) + size)
    if is_complex:
        whole += padded(len(_tag(0, size)) + size)
    version = struct.pack("<HH", 0x0100, 0x4D49)
    return _TEXT.ljust(116) + bytes(8) + version + struct.pack("<II", mat_elements.MATRIX, whole) + inside


def _element(dtype: str, data: bytes) -> bytes:
    whole = _tag(_TYPES[dtype], len(data)) + data
    return whole.ljust(padded(len(whole)), b"\0")


def _tag(kind: int, size: int) -> bytes:
    """What at most four bytes say lies in the tag itself."""
    return struct.pack("<HH", kind, size) if 0 < size <= 4 else struct.pack("<II", kind, size)
