"""The metadata of a Zarr array, in version 2 or 3: its shape, its chunks and how numbers lie in plain ones.

They are read here so that plain chunks need no library, and none is imported to look at a store. An array in
packed chunks, or with an extension, is only described: zarr-python reads its numbers.
"""

from __future__ import annotations

import math
import os
import re
import struct
from typing import Any, Literal

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import listing
from tilewise.files.checks import LARGEST, printable, require_shape
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.regular import open_regular

FILE = "zarr.json"
_BYTES_MAX = 64 << 20
_KINDS = {"b": "uint", "i": "int", "u": "uint", "f": "float", "c": "complex"}
_OTHERS = {"S": "strings", "U": "strings", "V": "raw bytes", "O": "objects", "M": "dates", "m": "durations"}
_CODES = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class ZarrNode(msgspec.Struct, frozen=True):
    """An array or a group of version 2 or 3, with the fields of its metadata."""

    version: int
    array: bool
    fields: dict[str, Any]


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The layout of an array, in chunks of the shape `chunks`.

    `dtype` is empty where it holds no numbers that we know, and `kind` says what. `axes` are the dimensions
    of a chunk, those first in which numbers lie furthest apart. A chunk's file is called `prefix` and its
    place in the grid, between `separator`s. `fill` is the bytes of the numbers of chunks without a file.
    `packed` says why the bytes of a chunk are not its numbers; empty where they are.
    """

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: str
    kind: str
    byte_order: str
    axes: tuple[int, ...]
    prefix: str
    separator: str
    fill: bytes
    packed: str
    attributes: dict[str, Any]

    @property
    def chunk_bytes(self) -> int:
        """Size of a plain chunk in bytes."""
        return math.prod(self.chunks) * ITEMSIZE[self.dtype]

    @property
    def strides(self) -> list[int]:
        """Numbers from one to the next of a chunk in each dimension."""
        strides, step = [0] * len(self.axes), 1
        for axis in reversed(self.axes):
            strides[axis] = step
            step *= self.chunks[axis]
        return strides

    def key(self, place: tuple[int, ...]) -> str:
        """The name of the file of a chunk, in the array's folder."""
        return self.separator.join([*([self.prefix] if self.prefix else []), *map(str, place)])


class _Version2(msgspec.Struct):
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: Any
    order: Literal["C", "F"]
    compressor: Any = None
    filters: Any = None
    fill_value: Any = None
    dimension_separator: Literal[".", "/"] = "."


class _Named(msgspec.Struct):
    name: str
    configuration: dict[str, Any] = {}


class _Version3(msgspec.Struct):
    shape: tuple[int, ...]
    data_type: str | _Named
    chunk_grid: _Named
    chunk_key_encoding: str | _Named
    codecs: list[str | _Named]
    fill_value: Any = None
    attributes: dict[str, Any] = {}
    storage_transformers: list[Any] = []


_KNOWN = (
    "zarr_format",
    "node_type",
    "dimension_names",
    "consolidated_metadata",
    *_Version3.__struct_fields__,
)


def steps(member: str, name: str) -> list[str]:
    """The folders that lead to `member`; UsageError where they would lead out of the store."""
    parts = [part for part in member.split("/") if part]
    if any(part in (".", "..") or "\0" in part for part in parts):
        raise UsageError(f"{name} names {printable(member)}, which leads out of its store")
    return parts


def read_node(folder: str, name: str) -> ZarrNode | None:
    """Read the array or group in `folder`, None where it is neither; UsageError for broken metadata."""
    for file, version in ((FILE, 3), (".zarray", 2), (".zgroup", 2)):
        if not os.path.lexists(os.path.join(folder, file)):
            continue
        fields = _read(folder, file, name)
        if fields.get("zarr_format") != version:
            said = printable(repr(fields.get("zarr_format")))
            raise UsageError(f"{name}/{file} has the zarr_format {said}, but {version} was expected")
        kind = fields.get("node_type") if version == 3 else "array" if file == ".zarray" else "group"
        if kind not in ("array", "group"):
            raise UsageError(
                f"{name}/{file} has the node_type {printable(repr(kind))}, but array or group was expected"
            )
        if file == ".zarray" and os.path.lexists(os.path.join(folder, ".zattrs")):
            fields["attributes"] = _read(folder, ".zattrs", name)
        return ZarrNode(version, kind == "array", fields)
    return None


def stored(node: ZarrNode, name: str) -> Stored:
    """Tell how the array `node` is stored; UsageError where its metadata make no sense."""
    try:
        found = _version3(node, name) if node.version == 3 else _version2(node, name)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UsageError(f"{name} has metadata that no Zarr array has: {printable(str(error))}") from None
    require_shape(found.shape, name)
    least = [min(1, extent) for extent in found.shape]
    few = len(found.chunks) != len(least) or any(map(int.__lt__, found.chunks, least))
    if few or math.prod(found.chunks) > LARGEST // 16:
        said = f"{printable(str(found.shape))} in chunks of {printable(str(found.chunks))}"
        raise UsageError(f"{name} has the shape {said}, which no array can have")
    return found


def _read(folder: str, file: str, name: str) -> dict[str, Any]:
    import json  # which takes NaN, as other writers do

    opened, size = open_regular(os.path.join(folder, file), f"{name}/{file}")
    with opened:
        text = opened.read(_BYTES_MAX + 1)
    try:
        if size > _BYTES_MAX:
            raise ValueError(f"it has {size} bytes")
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("an object was expected")
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}/{file} is not readable as metadata: {printable(str(error))}") from None
    return fields


def _version2(node: ZarrNode, name: str) -> Stored:
    found = msgspec.convert(node.fields, _Version2)
    said = found.dtype if isinstance(found.dtype, str) else "records"
    match = re.match(r"([<>|])([A-Za-z])(\d*)", said)
    dtype = f"{_KINDS.get(match[2], '')}{8 * int(match[3] or 0)}" if match else ""
    dtype = dtype if dtype in ITEMSIZE else ""
    names = _names([found.filters or [], found.compressor or []], "id", name)
    order = "big" if match and match[1] == ">" else "little"
    axes = tuple(range(len(found.shape)))
    return Stored(
        shape=found.shape,
        chunks=found.chunks,
        dtype=dtype,
        kind="" if dtype else _OTHERS.get(match[2] if match else "", printable(said)),
        byte_order=order,
        axes=axes if found.order == "C" else axes[::-1],
        prefix="" if found.shape else "0",
        separator=found.dimension_separator,
        fill=_fill(found.fill_value, dtype, order, name) if dtype else b"",
        packed=f"packed by {listing(names)}" if names else "",
        attributes=node.fields.get("attributes", {}),
    )


def _version3(node: ZarrNode, name: str) -> Stored:
    found = msgspec.convert(node.fields, _Version3)
    said = found.data_type if isinstance(found.data_type, str) else found.data_type.name
    dtype = {"bool": "uint8"}.get(said, said)
    dtype = dtype if dtype in ITEMSIZE else ""
    _names(node.fields["codecs"], "name", name)
    codecs = [_Named(codec) if isinstance(codec, str) else codec for codec in found.codecs]
    keys = found.chunk_key_encoding
    keys = _Named(keys) if isinstance(keys, str) else keys
    separator = keys.configuration.get("separator", "/" if keys.name == "default" else ".")
    chunks = found.chunk_grid.configuration.get("chunk_shape")
    axes, order, packed = _plain(codecs, len(found.shape))
    unknown = [
        key
        for key, value in node.fields.items()
        if key not in _KNOWN and not (isinstance(value, dict) and value.get("must_understand") is False)
    ]
    if found.chunk_grid.name != "regular":
        packed, chunks = f"in a {printable(found.chunk_grid.name)} grid of chunks", [1] * len(found.shape)
    elif keys.name not in ("default", "v2") or separator not in (".", "/"):
        packed = f"in chunks that are named by {printable(keys.name)}"
    elif found.storage_transformers or unknown:
        packed = f"stored with the extension {printable(unknown[0] if unknown else 'storage_transformers')}"
    elif not packed and not order and ITEMSIZE.get(dtype) != 1:
        raise UsageError(f"{name} has a bytes codec without endian, but its numbers have several bytes")
    order = order or "little"
    return Stored(
        shape=found.shape,
        chunks=msgspec.convert(chunks, tuple[int, ...]),
        dtype=dtype,
        kind="" if dtype else printable(said),
        byte_order=order,
        axes=axes,
        prefix="c" if keys.name == "default" else "" if found.shape else "0",
        separator=str(separator),
        fill=_fill(found.fill_value, dtype, order, name) if dtype else b"",
        packed=packed,
        attributes=found.attributes,
    )


def _plain(codecs: list[_Named], dimensions: int) -> tuple[tuple[int, ...], str, str]:
    """The dimensions as `axes` has them, the byte order, and why the numbers are not plain."""
    axes = tuple(range(dimensions))
    names = [codec.name for codec in codecs]
    if not names or names[-1] != "bytes" or names[:-1].count("transpose") != len(names) - 1:
        packers = [printable(each) for each in names if each not in ("bytes", "transpose")]
        if packers == ["sharding_indexed"]:
            return axes, "", "stored in shards"
        return axes, "", f"packed by {listing(packers)}" if packers else "stored in an unusual way"
    for codec in codecs[:-1]:
        order = codec.configuration.get("order")
        if not isinstance(order, list) or sorted(order) != list(range(dimensions)):
            return axes, "", "stored in an unusual order"
        axes = tuple(axes[place] for place in order)
    endian = codecs[-1].configuration.get("endian", "")
    return axes, endian if endian in ("little", "big") else "", ""


def _names(codecs: Any, key: str, name: str) -> list[str]:
    """List the names of the codecs, and of those within others; UsageError for pickle."""
    if isinstance(codecs, list):
        return [each for codec in codecs for each in _names(codec, key, name)]
    found, inner = codecs if isinstance(codecs, str) and key == "name" else "", {}
    if isinstance(codecs, dict):
        found, inner = str(codecs.get(key, "an unknown codec")), codecs.get("configuration", {})
    if "pickle" in found.lower():
        raise UsageError(f"{name} is packed by pickle, which could run any program, so it is not read")
    nested = [inner.get(each, []) for each in ("codecs", "index_codecs")] if isinstance(inner, dict) else []
    return [*([printable(found)] if found else []), *(_names(nested, key, name) if any(nested) else [])]


def _fill(value: Any, dtype: str, order: str, name: str) -> bytes:
    """The bytes of a fill value in JSON: a number, a word, hexadecimal bits, or two of these if complex."""
    if dtype.startswith("complex"):
        parts = value if isinstance(value, list) and len(value) == 2 else [value, 0]
        return b"".join(_fill(part, f"float{4 * ITEMSIZE[dtype]}", order, name) for part in parts)
    code, mark = _CODES[dtype.removeprefix("u")], ">" if order == "big" else "<"
    code = code.upper() if dtype.startswith("u") else code
    try:
        if value is None:
            return bytes(ITEMSIZE[dtype])
        if isinstance(value, str) and value.startswith("0x"):
            return int(value, 16).to_bytes(ITEMSIZE[dtype], "big" if order == "big" else "little")
        if dtype.startswith("float"):
            return struct.pack(mark + code, _NOT_FINITE[value] if isinstance(value, str) else float(value))
        if not isinstance(value, (int, float)) or value != int(value):
            raise ValueError
        return struct.pack(mark + code, int(value))
    except (ValueError, TypeError, KeyError, OverflowError, struct.error):
        raise UsageError(f"{name} has the fill value {printable(repr(value))}, which is no {dtype}") from None
