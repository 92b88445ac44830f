"""The .safetensors format: a JSON header says where each tensor lies, and the tensors follow without gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.undecodable import UNDECODABLE
from tilewise.files.checks import LARGEST, PAGE, PAGE_ALIGNED_FROM, choose, printable
from tilewise.files.dtypes import ALL, ITEMSIZE
from tilewise.files.formats import Format
from tilewise.files.headed import create_headed
from tilewise.files.region import New, Region, Source
from tilewise.files.regular import open_regular
from tilewise.files.slices import Selection, copy_out, part_of, where

if TYPE_CHECKING:
    from tilewise.files import Content

FORMAT = Format(
    numbers=tuple(dtype for dtype in ALL if dtype != "complex128"), member="tensor", sliced=True, stacked=True
)
_HEADER_MAX = 100 << 20  # bytes, as the format's own reader has it
_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "uint8",
    "C64": "complex64",
}
_WIDENED = {"BF16": "float32"}  # whose upper half it is
_READ = _DTYPES | _WIDENED
_CODES = {dtype: code for code, dtype in reversed(_DTYPES.items())}


class _Tensor(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def inspect(path: str, name: str, member: str, selection: Selection | None = None) -> Source:
    """The tensor called `member`, or the only matrix; all tensors must lie as the format demands."""
    file, size = open_regular(path, name)
    with file:
        data, head = _header(file, size, name)
    tensors = _tensors(head, name)
    _require_in_a_row(tensors, size - data, name)
    matrices = [key for key, tensor in tensors.items() if len(tensor.shape) == 2 and tensor.dtype in _READ]
    chosen = choose(name, path, "tensor", member, tensors, matrices)
    tensor = tensors[chosen]
    if tensor.dtype not in _READ:
        raise UsageError(
            f"{name} holds numbers of type {printable(tensor.dtype)}, which tilewise cannot read; "
            f"it reads {', '.join(_READ)}"
        )
    number = _READ[tensor.dtype]
    chosen_part = part_of(tensor.shape, name, selection)
    why = f"bfloat16 is read as {number}, which holds all of it" if tensor.dtype in _WIDENED else ""
    return Source(
        path=path,
        name=name,
        dtype=number,
        file_bytes=size,
        format="safetensors",
        member=chosen,
        **where(chosen_part, data + tensor.data_offsets[0], number, "little", why),
    )


def decode(source: Source, out: BinaryIO) -> None:
    """Copies a slice whose rows do not lie in one piece, and widens bfloat16."""
    import numpy

    part = source.part
    assert part is not None
    file, size = open_regular(source.path, source.name)
    with file:
        data, head = _header(file, size, source.name)
    tensor = _tensors(head, source.name)[source.member]
    offset = data + tensor.data_offsets[0]
    if tensor.dtype in _WIDENED:
        copy_out(part, source.path, offset, numpy.dtype("<u2"), out, _widened)
    else:
        copy_out(part, source.path, offset, numpy.dtype(source.dtype).newbyteorder("<"), out)


def _widened(halves: Any) -> Any:
    """float32 numbers from their upper halves, as uint16."""
    import numpy

    return (halves.astype(numpy.uint32) << 16).view(numpy.float32)


def contents(path: str, name: str) -> list[Content]:
    """List the tensors."""
    from tilewise.files import Content

    file, size = open_regular(path, name)
    with file:
        _, head = _header(file, size, name)
    return [
        Content(
            key,
            tuple(tensor.shape),
            "bfloat16" if tensor.dtype == "BF16" else _DTYPES.get(tensor.dtype, tensor.dtype),
            "in one piece",
            len(tensor.shape) == 2 and tensor.dtype in _READ,
        )
        for key, tensor in _tensors(head, name).items()
    ]


def create(new: New) -> Region:
    """Writes a header for one tensor; blanks behind it make the numbers begin at a multiple of 64 bytes."""
    tensor = _Tensor(_CODES[new.dtype], list(new.array_shape), (0, new.bytes))
    text = msgspec.json.encode({new.member or "matrix": tensor})
    step = PAGE if new.bytes >= PAGE_ALIGNED_FROM else 64
    offset = -(-(8 + len(text)) // step) * step
    return create_headed(new, (offset - 8).to_bytes(8, "little") + text.ljust(offset - 8))


def _header(file: BinaryIO, size: int, name: str) -> tuple[int, bytes]:
    """Find where the tensors begin, and read the JSON before them."""
    lead = file.read(8)
    length = int.from_bytes(lead, "little")
    if len(lead) < 8 or length > min(size - 8, _HEADER_MAX):
        what = "is empty" if not lead else f"has {size} bytes, too few for its header of {length} bytes"
        raise UsageError(f"{name} {what}, but a .safetensors file was expected")
    return 8 + length, file.read(length)


def _tensors(head: bytes, name: str) -> dict[str, _Tensor]:
    """Parse the JSON, without its free remarks."""
    try:
        raw = msgspec.json.decode(head, type=dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        return {key: msgspec.json.decode(value, type=_Tensor) for key, value in raw.items()}
    except UNDECODABLE as error:
        raise UsageError(f"{name} is not a readable .safetensors file: {printable(str(error))}") from None


def _require_in_a_row(tensors: dict[str, _Tensor], room: int, name: str) -> None:
    """Raises UsageError unless the tensors fill `room` bytes without overlaps and gaps."""
    end = 0
    for key, tensor in sorted(tensors.items(), key=lambda item: item[1].data_offsets):
        first, last = tensor.data_offsets
        if first != end or last < first:
            what = "overlaps the one before" if first < end else "leaves a gap"
            raise UsageError(f"{name}: the tensor {printable(key)} at bytes {first} to {last} {what}")
        count = 1
        for extent in tensor.shape:
            count *= extent
            if extent < 0 or count > LARGEST:
                raise UsageError(f"{name} declares a shape for {printable(key)} that no array can have")
        known = 2 if tensor.dtype in _WIDENED else ITEMSIZE.get(_DTYPES.get(tensor.dtype, ""), 0)
        if known and last - first != count * known:
            raise UsageError(
                f"{name}: the tensor {printable(key)} has {last - first} bytes, "
                f"but its header promises {count * known}"
            )
        end = last
    if end != room:
        what = "it is truncated" if end > room else "it has more data than its header declares"
        raise UsageError(f"{name} has {room} bytes of numbers, but its header promises {end}: {what}")
