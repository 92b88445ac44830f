"""The .mat format of MATLAB, versions 5 to 7.3: uncompressed real numbers are read and written in place.

Versions 5 to 7 have a header of 128 bytes, and then an element for each variable, which zlib may have packed:

    ┌ tag ┬ flags ┬ extents ┬ name ┬ tag ┬ real parts ┬ tag ┬ imaginary parts ┐

Only the front of an element is read here; numbers that cannot be read in place scipy decodes. Version 7.3 is
HDF5 behind a header of 512 bytes, with all extents in reverse: row by row there is column by column here.
"""

from __future__ import annotations

import math
import os
import re
import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.files.checks import choose, number_type, numbers_bytes, printable, require_room
from tilewise.files.dtypes import ALL, ITEMSIZE
from tilewise.files.formats import Format, h5, h5_links, split_name
from tilewise.files.formats.h5_links import find
from tilewise.files.headed import put_head, raw_beside
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular
from tilewise.files.slices import ArrayPart, Selection, copy_out, part_of, where, write_part, write_slices

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped,unused-ignore]

    from tilewise.files import Content

FORMAT = Format(
    numbers=tuple(dtype for dtype in ALL if dtype != "float16"),
    member="variable",
    orders=("F",),
    sliced=True,
)
others = h5_links.others  # of version 7.3
_DEFAULT = "matrix"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_LARGEST = (1 << 31) - 1  # bytes of a variable, and extents, in a file of version 5
_MOST = 100_000  # variables that are listed
_PANEL = 1 << 20  # numbers that are packed at once

_HEAD = 128  # bytes before the first variable
_MATRIX, _PACKED = 14, 15  # types of elements
_COMPLEX, _LOGICAL = 0x08, 0x02  # flags of a variable
_FRONT = 16 << 10  # bytes of an element in which its name and extents must lie
_STORED = {  # numbers by their types in tags
    **{1: "int8", 2: "uint8", 3: "int16", 4: "uint16", 5: "int32", 6: "uint32", 7: "float32"},
    **{9: "float64", 12: "int64", 13: "uint64"},
}
_TYPES = {dtype: number for number, dtype in _STORED.items()}
_CLASSES = (  # by their numbers in flags
    *("", "cell", "struct", "object", "char", "sparse", "double", "single", "int8", "uint8", "int16"),
    *("uint16", "int32", "uint32", "int64", "uint64", "function", "opaque"),
)
_NUMBERS = {  # of the classes that hold numbers; all but these are refused
    "double": "float64",
    "single": "float32",
    **{each: each for each in _CLASSES if "int" in each},
    "logical": "uint8",
}
_CLASS_OF = {dtype: kind for kind, dtype in _NUMBERS.items() if kind != "logical"}
_REFUSED = {
    "char": ("text", "double(x) in MATLAB gives the codes of its characters"),
    "sparse": ("a sparse matrix", "x = full(x) in MATLAB, and save it again"),
    "cell": ("a cell array", "cell2mat(x) in MATLAB, if all cells hold numbers"),
    "struct": ("a structure", "save one of its fields as a variable of its own"),
}
_DIMENSIONS = 64  # of an empty array in version 7.3
_USER_BLOCK = 512  # bytes before HDF5's own


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A variable: `kind` is its class in MATLAB, `dtype` ours, empty where it does not hold numbers.

    `layout` says why its numbers cannot be read in place; where they can, they begin at byte `offset`.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    layout: str = ""
    offset: int = 0
    byte_order: str = "little"

    @property
    def is_matrix(self) -> bool:
        """True for numbers in two dimensions."""
        return bool(self.dtype) and len(self.shape) == 2


def inspect(path: str, name: str, member: str, selection: Selection | None = None) -> Source:
    """Find the variable called `member`, or the only matrix."""
    file, size = open_regular(path, name)
    with file:
        if _is_hdf5(file, size, name):
            return _inspect_hdf5(path, name, member, size, selection)
        found = _choose(_variables(file, size, name), name, path, member)
    part = part_of(found.shape, name, selection, fortran=True)
    why = found.layout and f"the variable {printable(found.name)} is {found.layout}"
    place = where(part, found.offset, found.dtype, found.byte_order, why)
    return Source(
        path=path, name=name, dtype=found.dtype, file_bytes=size, format="mat", member=found.name, **place
    )


def decode(source: Source, out: BinaryIO) -> None:
    """Write the numbers column by column, or all slices of a stack."""
    part = source.part
    assert part is not None
    with open(source.path, "rb") as file:
        if _is_hdf5(file, source.file_bytes, source.name):
            return _decode_hdf5(source, part, out)
        found = _choose(_variables(file, source.file_bytes, source.name), source.name, "", source.member)
    if found.shape != part.shape:
        raise UsageError(f"{source.name} changed while it was read")
    import numpy

    if not found.layout:
        stored = numpy.dtype(found.dtype).newbyteorder(">" if found.byte_order == "big" else "<")
        return copy_out(part, source.path, found.offset, stored, out)
    import scipy.io

    array = scipy.io.loadmat(source.path, variable_names=[found.name])[found.name]
    write_part(
        part, array.astype(found.dtype, copy=False), out
    )  # whole numbers may be stored as smaller ones


def contents(path: str, name: str) -> list[Content]:
    """List all variables."""
    from tilewise.files import Content

    with open(path, "rb") as file:
        size = os.path.getsize(path)
        if _is_hdf5(file, size, name):
            with h5.opened(path, "r") as book:
                found = _variables_hdf5(book, name)
        else:
            found = _variables(file, size, name)
    return [
        Content(each.name, each.shape, each.dtype or each.kind, each.layout or "in one piece", each.is_matrix)
        for each in found
    ]


def create(new: New) -> Region:
    """Make a file of version 5, or 7.3 where the variable is too large for that."""
    name = _variable_name(new.member, new.name)
    if _needs_hdf5(new.shape, new.bytes):
        return _create_hdf5(new, name)
    if new.dtype.startswith("complex"):  # real and imaginary parts do not lie side by side
        return raw_beside(new)
    head = _head(name, new.shape, new.dtype)
    put_head(new.path, head)
    size = _padded(len(head) + new.bytes)
    os.truncate(new.path, size)
    return new.region(offset=len(head), order="F", file_bytes=size)


def encode(raw: Region, path: str, planes: int) -> None:
    """Write the real parts of complex numbers, and then the imaginary ones."""
    import numpy

    numbers: Any = numpy.memmap(raw.path, numpy.dtype(raw.dtype).newbyteorder("<"), "r") if raw.bytes else []
    name = _variable_name(split_name(raw.name)[1], raw.name)
    tags = (_head(name, (raw.rows, raw.columns), raw.dtype), _tag(_TYPES[_real(raw.dtype)], raw.bytes // 2))
    with open(path, "r+b") as out:
        for before, which in zip(tags, ("real", "imag"), strict=True):
            out.write(before)
            for first in range(0, raw.rows * raw.columns, _PANEL):
                out.write(numpy.ascontiguousarray(getattr(numbers[first : first + _PANEL], which)).data)
            out.write(bytes(_padded(out.tell()) - out.tell()))


def written_warnings(name: str, shape: tuple[int, int], dtype: str, order: str) -> tuple[str, ...]:
    """Warn where readers of the older versions cannot read the file."""
    if not _needs_hdf5(shape, shape[0] * shape[1] * ITEMSIZE[dtype]):
        return ()
    return ("it is of version 7.3, because of its size; scipy.io.loadmat does not read that",)


def _is_hdf5(file: BinaryIO, size: int, name: str) -> bool:
    """Tell version 7.3 from older ones, down to 5; UsageError for any other file."""
    file.seek(0)
    head = file.read(_HEAD)
    if head.startswith(h5.SIGNATURE) or head[124:128] in (b"\x00\x02IM", b"\x02\x00MI"):
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


def _choose(variables: Sequence[Variable], name: str, path: str, member: str) -> Variable:
    """Pick the variable called `member`, or the only matrix; UsageError where it holds no numbers."""
    matrices = [each.name for each in variables if each.is_matrix]
    names = [each.name for each in variables]
    found = variables[names.index(choose(name, path, "variable", member, names, matrices))]
    if not found.dtype:
        what, advice = _REFUSED.get(found.kind, (f"of the class {found.kind}", ""))
        if found.kind in _NUMBERS:
            what, advice = f"complex {found.kind}", "save double(x)"
        raise UsageError(f"{name} is {what}, but numbers were expected", advice)
    return found


def _real(dtype: str) -> str:
    """The type of the real parts."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


# Versions 5 to 7


def _variables(file: BinaryIO, size: int, name: str) -> list[Variable]:
    """List all variables with a name; UsageError where the file is broken. Numbers are not read."""
    file.seek(126)
    mark = "<" if file.read(2) == b"IM" else ">"
    found: list[Variable] = []
    at = _HEAD
    while at < size:
        file.seek(at)
        tag = file.read(8)
        kind, length = struct.unpack(f"{mark}II", tag) if len(tag) == 8 else (0, 0)
        if kind not in (_MATRIX, _PACKED) or len(found) > _MOST:
            raise UsageError(f"{name} is broken: there is no variable at byte {at}")
        if at + 8 + length > size:
            raise UsageError(
                f"{name} has {size} bytes, but a variable ends at byte {at + 8 + length}: it is truncated"
            )
        front = tag + file.read(min(length, _FRONT))
        if kind == _PACKED:
            front = zlib.decompressobj().decompress(front[8:], _FRONT)
        try:
            found.append(_variable(front, mark, at, length if kind == _MATRIX else None, name))
        except struct.error:
            raise UsageError(f"{name} is truncated: the variable at byte {at} ends too early") from None
        at += 8 + length
    return [each for each in found if each.name]  # MATLAB keeps notes of its own under none


def _variable(front: bytes, mark: str, at: int, length: int | None, name: str) -> Variable:
    """Parse the front of the element at byte `at`, from its tag on; packed ones have no `length`."""
    element, _, _ = _part(front, 0, mark)
    _, begin, size = _part(front, 8, mark)
    if element != _MATRIX or size != 8:
        raise UsageError(f"{name} is broken: the variable at byte {at} has no flags")
    (flags,) = struct.unpack_from(f"{mark}I", front, begin)
    number, bits = flags & 0xFF, flags >> 8
    kind = _CLASSES[number] if 0 < number < len(_CLASSES) else f"number {number}"
    if kind == "uint8" and bits & _LOGICAL:
        kind = "logical"
    shape: tuple[int, ...] = ()
    here = _padded(begin + size)
    if kind != "opaque":
        _, begin, size = _part(front, here, mark)
        shape = struct.unpack_from(f"{mark}{size // 4}i", front, begin)
        here = _padded(begin + size)
    _, begin, size = _part(front, here, mark)
    (called,) = struct.unpack_from(f"{size}s", front, begin)
    variable = Variable(name=called.decode(errors="replace"), kind=kind, dtype="", shape=shape)
    dtype = _NUMBERS.get(kind, "")
    if bits & _COMPLEX:  # MATLAB has complex integers, which nobody else has
        dtype = {"float32": "complex64", "float64": "complex128"}.get(dtype, "")
    if not dtype:
        return msgspec.structs.replace(variable, layout="" if length is not None else "compressed")
    return _with_numbers(variable, dtype, front, _padded(begin + size), mark, at, length, name)


def _with_numbers(
    variable: Variable, dtype: str, front: bytes, here: int, mark: str, at: int, length: int | None, name: str
) -> Variable:
    """Add the type of the numbers, and where they lie: behind the tag at byte `here` of the front."""
    shape = variable.shape
    if len(shape) < 2 or min(shape) < 0:
        raise UsageError(f"{name} declares the shape {shape[:8]}, which no array can have")
    count = math.prod(shape)
    numbers_bytes(1, count, dtype, name)
    stored, begin = _real(dtype), here
    layout = "compressed" if length is None else ""
    if count:
        number, begin, size = _part(front, here, mark)
        stored = _STORED.get(number, "")
        if not stored or size != count * ITEMSIZE[stored]:
            raise UsageError(f"{name} is broken: {size} bytes of type {number} for {count} numbers")
        if length is not None and begin + size > 8 + length:
            raise UsageError(f"{name} is truncated: the variable at byte {at} ends too early")
        if not layout and dtype.startswith("complex"):
            layout = "stored with its imaginary parts behind the real ones"
        elif not layout and stored != dtype:
            layout = f"stored as {stored}"
    order = "big" if mark == ">" and ITEMSIZE[dtype] > 1 else "little"
    return msgspec.structs.replace(variable, dtype=dtype, layout=layout, offset=at + begin, byte_order=order)


def _part(front: bytes, at: int, mark: str) -> tuple[int, int, int]:
    """Type, first byte and bytes of the part whose tag is at byte `at`; up to four bytes lie in the tag."""
    (word,) = struct.unpack_from(f"{mark}I", front, at)
    if word >> 16:
        return word & 0xFFFF, at + 4, word >> 16
    return word, at + 8, struct.unpack_from(f"{mark}I", front, at + 4)[0]


def _needs_hdf5(shape: tuple[int, int], size: int) -> bool:
    return max(*shape, size + 1024) > _LARGEST


def _variable_name(member: str, name: str) -> str:
    if _NAME.fullmatch(member or _DEFAULT):
        return member or _DEFAULT
    raise UsageError(
        f"the output {name} names no variable of MATLAB's: a letter, then at most 62 letters, digits and _"
    )


def _head(name: str, shape: tuple[int, int], dtype: str) -> bytes:
    """Pack the header of a new file, up to its first number."""
    real = _real(dtype)
    is_complex = real != dtype
    size = shape[0] * shape[1] * ITEMSIZE[real]
    flags = _CLASSES.index(_CLASS_OF[real]) | (_COMPLEX << 8) * is_complex
    parts = (("uint32", struct.pack("<II", flags, 0)), ("int32", struct.pack("<ii", *shape)))
    inside = b""
    for kind, data in (*parts, ("int8", name.encode())):
        inside += _tag(_TYPES[kind], len(data)) + data
        inside = inside.ljust(_padded(len(inside)), b"\0")
    inside += _tag(_TYPES[real], size)
    whole = _padded(len(inside) + size)
    if is_complex:
        whole += _padded(len(_tag(0, size)) + size)
    begin = b"MATLAB 5.0 MAT-file, created by tilewise".ljust(116) + bytes(8)
    return begin + struct.pack("<HHII", 0x0100, 0x4D49, _MATRIX, whole) + inside


def _tag(kind: int, size: int) -> bytes:
    """Pack a tag; at most four bytes lie in the tag itself."""
    return struct.pack("<HH", kind, size) if 0 < size <= 4 else struct.pack("<II", kind, size)


def _padded(count: int) -> int:
    """Round up to a multiple of 8 bytes, at which all parts of an element begin."""
    return -(-count // 8) * 8


# Version 7.3


def _inspect_hdf5(path: str, name: str, member: str, size: int, selection: Selection | None) -> Source:
    with h5.opened(path, "r") as book:
        found = _choose(_variables_hdf5(book, name), name, path, member.removeprefix("/"))
        part = part_of(found.shape, name, selection, fortran=True)
        count = math.prod(found.shape)
        bytes_ = numbers_bytes(1, count, found.dtype, name)
        dataset = find(book, name, found.name)
        reason = h5.why_encoded(dataset, bytes_) if bytes_ else ""
        offset = 0
        if bytes_:
            h5_links.require_readable(dataset, path, name)
            if not reason:
                offset = dataset.id.get_offset()
                require_room(name, size, offset, 1, count, found.dtype)
        why = reason and f"{printable(found.name)} is {reason}"
        order = "big" if _number(dataset.dtype).str[0] == ">" else "little"
        place = where(part, offset, found.dtype, order, why)
        if why and part.slices is None:
            place |= h5.unwritten(dataset, part)
    return Source(
        path=path, name=name, dtype=found.dtype, file_bytes=size, format="mat", member=found.name, **place
    )


def _decode_hdf5(source: Source, part: ArrayPart, out: BinaryIO) -> None:
    with h5.opened(source.path, "r") as book:
        dataset = find(book, source.name, source.member)
        if (slices := part.slices) is not None:
            read = h5.reader(dataset, source.dtype)
            item = ITEMSIZE[source.dtype]
            write_slices(lambda chosen: read(chosen[::-1]).T, part.shape, part.index, slices, item, out)
        elif 0 not in part.shape:
            rows, columns = (part.rows, part.columns) if part.is_list else (part.columns, part.rows)
            reverse = msgspec.structs.replace(
                part,
                shape=part.shape[::-1],
                fortran=False,
                index=part.index[::-1],
                rows=rows,
                columns=columns,
            )
            h5.write_part(dataset, reverse, source.dtype, out)


def _create_hdf5(new: New, name: str) -> Region:
    """Make a new file with the variable `name`, in one piece."""
    import h5py
    import numpy

    real = _real(new.dtype)
    dtype: Any = numpy.dtype(real).newbyteorder("<")
    if real != new.dtype:
        dtype = numpy.dtype([("real", dtype), ("imag", dtype)])
    with h5py.File(new.path, "w", userblock_size=_USER_BLOCK) as book:
        dataset = h5.contiguous(book, f"/{name}", (new.shape[1], new.shape[0]), dtype)
        dataset.attrs["MATLAB_class"] = numpy.bytes_(_CLASS_OF[real])
        offset = dataset.id.get_offset() or 0
    begin = b"MATLAB 7.3 MAT-file, created by tilewise".ljust(116) + bytes(8)
    put_head(new.path, begin + struct.pack("<HH", 0x0200, 0x4D49))
    return new.region(offset=offset, order="F", file_bytes=os.path.getsize(new.path))


def _variables_hdf5(book: h5py.File, name: str) -> list[Variable]:
    """List all variables, in the order of their names."""
    import h5py

    found = []
    for key in list(book)[:10_000]:
        if key.startswith("#"):  # what cells and objects refer to
            continue
        if not isinstance(book.get(key, getlink=True), h5py.HardLink):
            continue
        item = book[key]
        if isinstance(item, h5py.Group):
            kind = "sparse" if "MATLAB_sparse" in item.attrs else "struct"
            found.append(Variable(name=key, kind=kind, dtype="", shape=()))
        elif isinstance(item, h5py.Dataset):
            found.append(_variable_hdf5(item, key, name))
    return found


def _variable_hdf5(dataset: h5py.Dataset, key: str, name: str) -> Variable:
    said = dataset.attrs.get("MATLAB_class", b"")
    kind = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    shape = tuple(reversed(dataset.shape or ()))
    if "MATLAB_empty" in dataset.attrs and dataset.size and dataset.size <= _DIMENSIONS:
        shape = tuple(int(extent) for extent in dataset[()].reshape(-1))
        if 0 not in shape:
            raise UsageError(f"{name} is broken: {printable(key)} is empty, but its shape is {shape}")
    dtype = ""
    if kind in _NUMBERS and 0 in shape:
        dtype = _NUMBERS[kind]
    elif kind in _NUMBERS or not kind:
        try:
            dtype = number_type(_number(dataset.dtype), key)
        except UsageError:
            kind = "unknown"
    layout = "" if 0 in shape else h5.why_encoded(dataset, dataset.size or 0)
    return Variable(name=key, kind=kind or dtype, dtype=dtype, shape=shape, layout=layout)


def _number(dtype: Any) -> Any:
    """The type of the numbers: a record of two equal floats, real and imaginary, is a complex number."""
    import numpy

    if dtype.names == ("real", "imag") and dtype[0] == dtype[1] and dtype[0].kind == "f":
        real = dtype[0]
        if dtype.itemsize == 2 * real.itemsize and f"complex{16 * real.itemsize}" in ITEMSIZE:
            return numpy.dtype(f"{real.str[0]}c{dtype.itemsize}")
    return dtype
