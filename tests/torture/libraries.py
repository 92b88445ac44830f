"""How other libraries write and read matrices in files: plain numbers, texts, tables; and all kinds."""

from __future__ import annotations

import csv
import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import h5py  # type: ignore[import-untyped,unused-ignore]
import numpy as np
import scipy.io._mmio  # type: ignore[import-untyped,unused-ignore]
import tifffile
from containers import CONTAINERS
from drawn import (
    ALL,
    COMPLEX,
    REAL,
    TABLE,
    WHOLE,
    Back,
    Draw,
    Kind,
    Made,
    Matrix,
    other_order,
    refused,
    sliced,
)
from images import IMAGES
from PIL import Image
from safetensors.numpy import load_file, save_file

TEXT = ("float64", "float32", "int32", "uint8")
WORDS = ("*****", "NA", "\u22125", "0x10", "1.0-300", "$5", "12:30", "1'234.5", "n/a", "1.234,5")


def array(draw: Draw, types: tuple[str, ...], least: int = 1) -> tuple[Matrix, str, tuple[Any, ...]]:
    """An array in some layout, and the slice of it that is read."""
    shape = draw.shape(draw.pick("dimensions", (least, 2, 2, 2, 3, 4)))
    numbers = draw.numbers(shape, draw.pick("type", types))
    return other_order(numbers, draw), *sliced(numbers.shape, draw)


def npy_bytes(numbers: Matrix, draw: Draw) -> bytes:
    """A file of any version, with a header of the library's or of another program's."""
    version, out = draw.pick("version", ((1, 0), (2, 0), (3, 0))), io.BytesIO()
    if draw.maybe("header by hand", 0.3):
        facts = np.lib.format.header_data_from_array_1_0(numbers)
        words = [f"'{key}': {facts[key]!r}" for key in draw.dice.sample(list(facts), 3)]
        head = ("{" + ", ".join(words) + draw.pick("end", ("}", ", }"))).encode()
        head += b" " * draw.dice.randrange(200) + b"\n"
        size = struct.pack("<H" if version == (1, 0) else "<I", len(head))
        out.write(b"\x93NUMPY" + bytes(version) + size + head)
        out.write(numbers.tobytes("F" if facts["fortran_order"] else "C"))
    else:
        np.lib.format.write_array(out, numbers, version)
    return out.getvalue()


def npy(path: Path, draw: Draw) -> Made:
    numbers, word, index = array(draw, (*ALL, "bool"))
    path.write_bytes(npy_bytes(numbers, draw))
    return Made(f"{path.name}{word}", lambda: np.load(path)[index])


def npz(path: Path, draw: Draw) -> Made:
    numbers, word, index = array(draw, (*ALL, "bool"))
    packing = draw.pick("packing", (0, 0, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(path, "w", packing) as book:
        for name in ["x", *draw.some(["y"], 1)]:
            book.writestr(f"{name}.npy", npy_bytes(numbers, draw))
    return Made(f"{path.name}:x{word}", lambda: np.load(path)["x"][index])


def raw(path: Path, draw: Draw) -> Made:
    numbers, word, index = array(draw, ALL, least=2)
    order: Literal["C", "F"] = "F" if numbers.flags.f_contiguous else "C"
    before, extents = draw.pick("offset", (0, 0, 1, 100)), "x".join(map(str, numbers.shape))
    path.write_bytes(bytes(before) + numbers.tobytes(order))
    dtype, shape = numbers.dtype, numbers.shape
    words = [path.name, extents, ">" * (dtype.byteorder == ">") + dtype.newbyteorder("=").name, order]
    name = ":".join(words + [str(before)] * bool(before)) + word
    return Made(name, lambda: np.fromfile(path, dtype, offset=before).reshape(shape, order=order)[index])


def bin_(path: Path, draw: Draw) -> Made:
    numbers = draw.numbers(draw.shape(2), "<f8")
    path.write_bytes(struct.pack("<ii", *numbers.shape) + numbers.tobytes())
    return Made(path.name, lambda: bin_back(path, numbers))


def petsc(path: Path, draw: Draw) -> Made:
    wide = draw.pick("indices", "iq")
    numbers = draw.numbers(draw.shape(2), draw.pick("type", (">f8", ">c16")))
    path.write_bytes(struct.pack(f">{wide * 4}", 1211216, *numbers.shape, -1) + numbers.tobytes())
    head = len(struct.pack(f">{wide * 4}", 0, 0, 0, 0))
    return Made(path.name, lambda: np.fromfile(path, numbers.dtype, offset=head).reshape(numbers.shape))


def text(separator: str) -> Callable[[Path, Draw], Made]:
    """Texts by numpy.savetxt, or by csv, and what is read of them by numpy.loadtxt."""

    def write(path: Path, draw: Draw) -> Made:
        numbers = draw.numbers(draw.shape(2), draw.pick("type", ("f8", "f8", "f8", "f4", "i4", "i8", "c16")))
        mark = draw.pick("separator", (separator, separator, separator, ",", ";", "\t", " "))
        end, comments, skipped = draw.pick("newline", ("\n", "\n", "\r\n")), "#", 0
        if separator != " " and numbers.dtype.kind != "c" and draw.maybe("by csv", 0.3):
            with path.open("w", newline="") as file:
                quoting: Any = draw.pick("quoting", (csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC))
                rows, skipped = csv.writer(file, delimiter=mark, quoting=quoting, lineterminator=end), 1
                rows.writerow(f"column {j}" for j in range(numbers.shape[1]))
                rows.writerows(numbers.tolist())
        else:
            formats = {"i": ("%d", "%5d", "%+d"), "f": ("%.17g", "%.18e", "%10.5f", "%+.3E", "%g")}
            options: dict[str, Any] = {"fmt": draw.pick("fmt", formats.get(numbers.dtype.kind, ("%.17g",)))}
            if draw.maybe("header", 0.3):
                comments = draw.pick("comments", "#%")
                options |= {"header": "made by a\nprogram", "comments": comments}
                options |= {"footer": "the end"} if draw.maybe("footer", 0.3) else {}
            elif draw.maybe("names", 0.3):
                names, skipped = mark.join(f"c{j}" for j in range(numbers.shape[1])), 1
                options |= {"header": names, "comments": ""}
            np.savetxt(path, numbers, delimiter=mark, newline=end, encoding="utf-8", **options)
        if draw.maybe("byte order mark", 0.1):
            path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
        if len(numbers) > 1 and comments == "#" and draw.maybe("words in the first row", 0.05):
            words = mark.join([draw.pick("word", WORDS)] * numbers.shape[1]) + end
            path.write_bytes(words.encode() + path.read_bytes().split(b"\n", 1 + skipped)[-1])
            return Made(path.name, refused, separated(mark, separator))

        def read() -> Matrix:
            with path.open(encoding="utf-8-sig") as file:
                kind, between = "c16" if numbers.dtype.kind == "c" else "f8", None if mark == " " else mark
                return np.loadtxt(file, kind, comments, between, skiprows=skipped, ndmin=2, quotechar='"')

        return Made(path.name, read, separated(mark, separator))

    return write


def separated(mark: str, usual: str) -> list[str]:
    """The flag for a separator that the ending does not say."""
    return ["--separator", {"\t": "tab", " ": "space"}.get(mark, mark)] if mark != usual else []


def mtx(path: Path, draw: Draw) -> Made:
    dtype, shape = draw.pick("type", ("f8", "f4", "i4", "i8", "u8", "c16")), draw.shape(2)
    more = {"c16": ("hermitian", "skew-symmetric"), "u8": ()}.get(dtype, ("skew-symmetric",))
    symmetry, numbers = draw.pick("symmetry", ("general", "symmetric", *more)), draw.numbers(shape, dtype)
    if symmetry != "general":
        numbers = numbers[: min(shape), : min(shape)]
        half, diagonal = np.tril(numbers, -1), np.diag(np.diag(numbers))
        turned = {"symmetric": half.T, "hermitian": half.T.conj(), "skew-symmetric": -half.T}[symmetry]
        diagonal = {"symmetric": diagonal, "hermitian": diagonal.real}.get(symmetry, 0 * diagonal)
        numbers = (half + turned + diagonal).astype(dtype)
    comment = draw.pick("comment", ("", "made by a\nprogram"))
    precision = draw.pick("precision", (None, 3, 17) if dtype != "f4" else (None, 3))
    scipy.io.mmwrite(path, numbers, comment, precision=precision, symmetry=symmetry)
    return Made(
        path.name, lambda: widest(scipy.io._mmio.mmread(path))
    )  # the other crashes, and drops the sign of 0


def widest(numbers: Matrix) -> Matrix:
    return numbers.astype({"f": "f8", "i": "i8", "u": "u8", "c": "c16"}[numbers.dtype.kind])


def tensors(path: Path, draw: Draw) -> Made:
    numbers, word, index = array(draw, (*WHOLE, *REAL, "bool"))
    book = {"x": np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("="))}
    if draw.maybe("another"):
        book["y"] = draw.numbers((3, 5), "float16")
    save_file(book, path, {"made by": "a program"} if draw.maybe("metadata") else None)
    return Made(f"{path.name}:x{word}", lambda: load_file(path)["x"][index])


def frame(draw: Draw) -> tuple[Any, str, list[str]]:
    """A table, the name of some of its columns, and these."""
    import pyarrow as pa

    rows, columns = draw.shape(2, (1, 2, 5, 17, 64, 300))
    types = draw.pick("types", ((draw.dice.choice(TABLE),), TABLE, ("float32", "float64", "bool")))
    names = [f"c{j}" for j in range(columns)]
    filled = [draw.numbers((rows,), draw.dice.choice(types)) for _ in names]
    floats = any(each.dtype.kind == "f" for each in filled)
    gaps = floats and draw.maybe("missing", 0.3)
    without = draw.numbers((rows,), "uint8") < 60 if gaps else None
    made = pa.table({name: pa.array(each, mask=without) for name, each in zip(names, filled, strict=True)})
    chosen = draw.some(names, 3) if draw.maybe("some columns", 0.3) else []
    return made, ":" * bool(chosen) + ",".join(chosen), chosen or names


def matrix_of(table: Any, names: list[str]) -> Matrix:
    """Columns side by side in the type that numpy gives them; what is missing is not a number."""
    columns = [table[name].combine_chunks() for name in names]
    ours = {"double": "float64", "float": "float32"}
    types = [np.dtype(ours.get(word := str(each.type), word)) for each in columns]
    common = np.result_type(*sorted(set(types), key=str))
    filled = []
    for each, type_ in zip(columns, types, strict=True):
        numbers = [np.nan if number is None else number for number in each.to_pylist()]
        filled.append(np.array(numbers, common if each.null_count else type_).astype(common))
    return np.stack(filled, axis=1)


def parquet(path: Path, draw: Draw) -> Made:
    import pyarrow.parquet

    table, word, names = frame(draw)
    options = {
        "compression": draw.pick("compression", ("none", "snappy", "zstd", "gzip", "lz4", "brotli")),
        "row_group_size": draw.pick("row group", (1, 10, 100, 10000)),
        "use_dictionary": draw.maybe("dictionary"),
        "data_page_version": draw.pick("page", ("1.0", "2.0")),
        "version": draw.pick("version", ("1.0", "2.4", "2.6")),
        "data_page_size": draw.pick("page size", (None, 64)),
        "use_byte_stream_split": False,
    }
    if not options["use_dictionary"] and draw.maybe("byte stream split", 0.3):
        floats = [each for each in names if str(table.schema.field(each).type) in ("float", "double")]
        options["use_byte_stream_split"] = floats or False
    pyarrow.parquet.write_table(table, path, **options)
    return Made(path.name + word, lambda: matrix_of(pyarrow.parquet.read_table(path), names))


def feather(path: Path, draw: Draw) -> Made:
    import pyarrow.feather

    table, word, names = frame(draw)
    packed = draw.pick("compression", ("uncompressed", "lz4", "zstd"))
    pyarrow.feather.write_feather(table, path, packed, chunksize=draw.pick("rows at once", (None, 7, 100)))
    return Made(path.name + word, lambda: matrix_of(pyarrow.feather.read_table(path), names))


def arrow(path: Path, draw: Draw) -> Made:
    import pyarrow as pa

    table, word, names = frame(draw)
    new = draw.pick("container", (pa.ipc.new_stream, pa.ipc.new_file))
    packed = draw.pick("compression", (None, "lz4", "zstd"))
    with new(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=packed)) as out:
        out.write_table(table, max_chunksize=draw.pick("rows at once", (None, 7, 100)))
    open_ = pa.ipc.open_stream if new is pa.ipc.new_stream else pa.ipc.open_file

    def read() -> Matrix:
        with open_(path.read_bytes()) as file:
            return matrix_of(file.read_all(), names)

    return Made(path.name + word, read)


def bin_back(path: Path, like: Matrix) -> Matrix:
    rows, columns = np.fromfile(path, "<i4", 2)
    return np.fromfile(path, "<f8", offset=8).reshape(rows, columns)


def petsc_back(path: Path, like: Matrix) -> Matrix:
    _, rows, columns, _ = np.fromfile(path, ">i4", 4)
    return np.fromfile(path, like.dtype.newbyteorder(">"), offset=16).reshape(rows, columns)


def text_back(separator: str | None) -> Back:
    return Back(lambda path, like: np.loadtxt(path, delimiter=separator, ndmin=2).astype(like.dtype), TEXT)


def h5_back(path: Path, like: Matrix) -> Matrix:
    with h5py.File(path) as book:
        return np.asarray(book["matrix"][:])


def picture_back(path: Path, like: Matrix) -> Matrix:
    with Image.open(path) as image:
        return np.asarray(image).astype(like.dtype)


def npz_back(path: Path, like: Matrix) -> Matrix:
    with np.load(path) as book:
        return np.asarray(book[book.files[0]])


def zarr_back(path: Path, like: Matrix) -> Matrix:
    import zarr

    return np.asarray(zarr.open_array(path, mode="r")[:])


def table_back(path: Path, like: Matrix) -> Matrix:
    import pyarrow.feather
    import pyarrow.parquet

    read = pyarrow.parquet.read_table if path.suffix == ".parquet" else pyarrow.feather.read_table
    found = read(path)
    return matrix_of(found, found.column_names)


FORMATS = [
    Kind("npy", ".npy", npy),
    Kind("npz", ".npz", npz, summed=True),
    Kind("raw", ".raw", raw),
    Kind("bin", ".bin", bin_, 1),
    Kind("petsc", ".petsc", petsc, 1),
    Kind("txt", ".txt", text(" "), 3),
    Kind("csv", ".csv", text(","), 3),
    Kind("tsv", ".tsv", text("\t"), 1),
    Kind("mtx", ".mtx", mtx),
    Kind("safetensors", ".safetensors", tensors),
    Kind("parquet", ".parquet", parquet),
    Kind("feather", ".feather", feather, 1),
    Kind("arrow", ".arrow", arrow, 1),
    *CONTAINERS,
    *IMAGES,
]
BACKS = {
    ".npy": Back(lambda path, like: np.load(path), ALL),
    ".npz": Back(npz_back, ALL),
    ".raw": Back(lambda path, like: np.fromfile(path, like.dtype).reshape(like.shape), ALL),
    ".bin": Back(bin_back, ("float64",)),
    ".petsc": Back(petsc_back, ("float64", "complex128")),
    ".txt": text_back(None),
    ".csv": text_back(","),
    ".tsv": text_back("\t"),
    ".mtx": Back(
        lambda path, like: scipy.io._mmio.mmread(path), ("float64", "int64", "uint64", "complex128")
    ),
    ".h5": Back(h5_back, ALL),
    ".nc": Back(h5_back, TABLE),
    ".safetensors": Back(lambda path, like: load_file(path)["matrix"], (*WHOLE, *REAL)),
    ".tif": Back(
        lambda path, like: np.asarray(tifffile.imread(path)).reshape(like.shape), (*WHOLE, *REAL, *COMPLEX)
    ),
    ".zarr": Back(zarr_back, ALL),
    ".parquet": Back(table_back, TABLE),
    ".feather": Back(table_back, TABLE),
    ".mat": Back(lambda path, like: scipy.io.loadmat(path)["matrix"], (*TABLE, *COMPLEX)),
    ".pgm": Back(picture_back, ("uint8", "uint16")),
    ".png": Back(picture_back, ("uint8", "uint16")),
}
