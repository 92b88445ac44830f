"""Makes small files of every format, and cuts them short at many places."""

from __future__ import annotations

import importlib.util
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import h5py
import numpy
import scipy.io
import tifffile
from PIL import Image

HUGE = 1 << 62


CASES: dict[str, tuple[str, Callable[[], bytes]]] = {}  # what is wrong → the file's name and how it is made


def numbers(dtype: str = "float64") -> Any:
    return (numpy.arange(24 * 18) * 7919 % 251).reshape(24, 18).astype(dtype)


def case(what: str, name: str, data: bytes | Callable[[], bytes]) -> None:
    assert what not in CASES, what
    CASES[what] = (name, data if callable(data) else lambda: data)


# What each format's own writer makes; the cuts below are made of these.
def npy() -> bytes:
    file = io.BytesIO()
    numpy.save(file, numbers())
    return file.getvalue()


def npz(packed: bool) -> bytes:
    file = io.BytesIO()
    (numpy.savez_compressed if packed else numpy.savez)(file, a=numbers())
    return file.getvalue()


def h5(**options: Any) -> bytes:
    file = io.BytesIO()
    with h5py.File(file, "w") as book:
        book.create_dataset("a", data=numbers(), **options)
    return file.getvalue()


def classic(version: int = 1) -> bytes:
    file = io.BytesIO()
    book = scipy.io.netcdf_file(file, "w", version=version)
    book.createDimension("r", 24)
    book.createDimension("c", 18)
    book.createVariable("a", "f8", ("r", "c"))[:] = numbers()
    book.flush()
    return file.getvalue()


def tensors(head: object, room: int = 3456, length: int | None = None) -> bytes:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + bytes(room)


def tensor(
    dtype: object = "F64", shape: object = (24, 18), begin: object = 0, end: object = 3456
) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def tiff(**options: Any) -> bytes:
    file = io.BytesIO()
    tifffile.imwrite(file, numbers("uint16"), photometric="minisblack", metadata=None, **options)
    return file.getvalue()


def image(kind: str, dtype: str = "uint8") -> bytes:
    file = io.BytesIO()
    Image.fromarray(numbers(dtype)).save(file, kind)
    return file.getvalue()


def petsc(magic: int = 1211216, rows: int = 24, columns: int = 18, kind: int = -1, room: int = 3456) -> bytes:
    return struct.pack(">iiii", magic, rows, columns, kind) + bytes(room)


def mtx(field: str = "real", symmetry: str = "general") -> bytes:
    file = io.BytesIO()
    square = numbers()[:18] + numbers()[:18].T
    scipy.io.mmwrite(file, square, field=field, symmetry=symmetry)
    return file.getvalue()


def mat(**options: Any) -> bytes:
    file = io.BytesIO()
    scipy.io.savemat(file, {"a": numbers()}, **options)
    return file.getvalue()


def packed_mat(data: bytes) -> bytes:
    return mat()[:128] + struct.pack("<II", 15, len(data)) + data


def mat_7_3(**options: Any) -> bytes:
    file = io.BytesIO()
    with h5py.File(file, "w", userblock_size=512) as book:
        book.create_dataset("a", data=numbers(), **options).attrs["MATLAB_class"] = numpy.bytes_("double")
    head = b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<HH", 0x0200, 0x4D49)
    return head + file.getvalue()[128:]


def columns() -> Any:
    import pyarrow

    return pyarrow.table({f"c{place}": column for place, column in enumerate(numbers().T)})


def parquet(**options: Any) -> bytes:
    import pyarrow.parquet

    file = io.BytesIO()
    pyarrow.parquet.write_table(columns(), file, **options)
    return file.getvalue()


def feather(packed: str = "uncompressed") -> bytes:
    import pyarrow.feather

    file = io.BytesIO()
    pyarrow.feather.write_feather(columns(), file, compression=packed)
    return file.getvalue()


def stream() -> bytes:
    import pyarrow

    file = io.BytesIO()
    with pyarrow.ipc.new_stream(file, columns().schema) as out:
        out.write_table(columns(), max_chunksize=10)
    return file.getvalue()


PLAIN = (
    b"P2\n18 24\n255\n" + b"\n".join(b" ".join(b"%d" % v for v in row) for row in numbers("uint8")) + b"\n"
)


GREY = b"P5\n18 24\n255\n" + numbers("uint8").tobytes()


COLOUR = b"P6\n18 24\n255\n" + bytes(24 * 18 * 3)


WHOLE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "npy": ("x.npy", npy),
    "npz": ("x.npz", lambda: npz(False)),
    "packed npz": ("x.npz", lambda: npz(True)),
    "bin": ("x.bin", lambda: struct.pack("<ii", 24, 18) + numbers().tobytes()),
    "raw": ("x.raw:24x18", lambda: numbers().tobytes()),
    "h5": ("x.h5", h5),
    "chunked h5": ("x.h5", lambda: h5(chunks=(5, 7), compression="gzip")),
    "nc": ("x.nc", classic),
    "64-bit nc": ("x.nc", lambda: classic(2)),
    "safetensors": ("x.safetensors", lambda: tensors({"a": tensor()})),
    "tiff": ("x.tif", tiff),
    "packed tiff": ("x.tif", lambda: tiff(compression="zlib", rowsperstrip=5)),
    "tiled tiff": ("x.tif", lambda: tiff(compression="zlib", tile=(16, 16))),
    "pgm": ("x.pgm", lambda: GREY),
    "plain pgm": ("x.pgm", lambda: PLAIN),
    "ppm": ("x.ppm", lambda: COLOUR),
    "png": ("x.png", lambda: image("PNG")),
    "png of 16 bits": ("x.png", lambda: image("PNG", "uint16")),
    "jpeg": ("x.jpg", lambda: image("JPEG")),
    "petsc": ("x.petsc", petsc),
    "symmetric mtx": ("x.mtx", lambda: mtx(symmetry="symmetric")),
    "mat": ("x.mat", mat),
    "packed mat": ("x.mat", lambda: mat(do_compression=True)),
    "mat 7.3": ("x.mat", mat_7_3),
}
if importlib.util.find_spec("pyarrow") is not None:
    WHOLE |= {
        "parquet": ("x.parquet", parquet),
        "feather": ("x.feather", feather),
        "packed feather": ("x.feather", lambda: feather("lz4")),
        "arrow stream": ("x.arrow", stream),
    }


# A cut at the very end may leave all numbers there: those formats begin to hurt a little earlier.
_SPARE = {
    "png": 30,
    "png of 16 bits": 30,
    "tiled tiff": 16,
    "packed tiff": 16,
    "tiff": 16,
    "plain pgm": 6,
    "symmetric mtx": 40,
    "jpeg": 40,
}


def _cuts() -> None:
    for kind, (name, make) in WHOLE.items():
        data = make()
        size = len(data) - _SPARE.get(kind, 1)
        for cut in sorted({0, 1, 2, 7, 9, 15, 33, size // 8, size // 4, size // 2, 3 * size // 4, size}):
            if cut <= size:
                case(f"{kind} cut to {cut} bytes", name, data[:cut])
        case(f"{kind}: noise", name, bytes((i * 193 + 71) % 256 for i in range(3000)))
        case(f"{kind}: zeros", name, bytes(999))


_cuts()


# npz
def zipped(entries: dict[str, bytes], **options: Any) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", **options) as archive:
        for entry, data in entries.items():
            archive.writestr(entry, data)
    return file.getvalue()


def swapped(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data and len(old) == len(new), old
    return data.replace(old, new)


def flipped(data: bytes, at: int, count: int = 8) -> bytes:
    return data[:at] + bytes(255 - byte for byte in data[at : at + count]) + data[at + count :]


def tagged(data: bytes, tag: int, value: int) -> bytes:
    """`data`, a little-endian TIFF, with another value for one tag of its first page."""
    (at,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, at)
    out = bytearray(data)
    for entry in range(at + 2, at + 2 + 12 * count, 12):
        if struct.unpack_from("<H", data, entry)[0] == tag:
            struct.pack_into("<HII", out, entry + 2, 4, 1, value)
            return bytes(out)
    raise AssertionError(f"no tag {tag}")


def circle(data: bytes) -> bytes:
    (at,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data, at)
    out = bytearray(data)
    struct.pack_into("<I", out, at + 2 + 12 * count, at)
    return bytes(out)


def png(width: int, height: int) -> bytes:

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(9)))
        + chunk(b"IEND", b"")
    )


def book_of(fill: Callable[[Any], object]) -> bytes:
    file = io.BytesIO()
    with h5py.File(file, "w") as book:
        fill(book)
    return file.getvalue()


def damaged(data: bytes) -> bytes:
    with h5py.File(io.BytesIO(data)) as book:
        chunk = book["a"].id.get_chunk_info(3)
    return flipped(data, chunk.byte_offset + 2, 20)
