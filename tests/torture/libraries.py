"""How other libraries write and read matrices in files: a `Kind` for each format and way of storing it."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py  # type: ignore[import-untyped,unused-ignore]
import numpy as np
import scipy.io  # type: ignore[import-untyped,unused-ignore]
import tifffile
from numpy.typing import NDArray
from PIL import Image
from safetensors.numpy import load_file, save_file

Matrix = NDArray[Any]
WHOLE = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
REAL = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
ALL = [*WHOLE, *REAL, *COMPLEX]


@dataclass(frozen=True)
class Kind:
    """A way of storing matrices: `numbers` are what its library writes, `writes` what tilewise does.

    Where `read` is None nothing else knows the format. `summed`: the library verifies checksums that tilewise
    does not, where numbers are read in place.
    """

    name: str
    ending: str
    numbers: list[str]
    write: Callable[[Path, Matrix, random.Random], None]
    read: Callable[[Path, Matrix], Matrix] | None = None
    writes: tuple[str, ...] = ()
    picture: bool = False
    summed: bool = False
    behind: Callable[[Matrix], str] = lambda numbers: ""


def ordered(numbers: Matrix, draw: random.Random) -> Matrix:
    """The same numbers, perhaps column by column, perhaps in the other byte order."""
    swapped = numbers.astype(mixed(numbers, draw))
    return np.asfortranarray(swapped) if draw.random() < 0.5 else swapped


def mixed(numbers: Matrix, draw: random.Random) -> np.dtype[Any]:
    """The type of the numbers in one of the byte orders."""
    return numbers.dtype.newbyteorder(">" if draw.random() < 0.5 else "<")


def npy(path: Path, numbers: Matrix, draw: random.Random) -> None:
    np.save(path, ordered(numbers, draw))


def npz(path: Path, numbers: Matrix, draw: random.Random) -> None:
    save = draw.choice([np.savez, np.savez_compressed])
    save(path, matrix=ordered(numbers, draw))


def raw(path: Path, numbers: Matrix, draw: random.Random) -> None:
    numbers.tofile(path)


def raw_back(path: Path, like: Matrix) -> Matrix:
    return np.fromfile(path, like.dtype).reshape(like.shape)


def raw_words(numbers: Matrix) -> str:
    return f":{numbers.shape[0]}x{numbers.shape[1]}:{numbers.dtype}"


def bin_(path: Path, numbers: Matrix, draw: random.Random) -> None:
    path.write_bytes(struct.pack("<ii", *numbers.shape) + numbers.astype("<f8").tobytes())


def petsc(path: Path, numbers: Matrix, draw: random.Random) -> None:
    path.write_bytes(struct.pack(">iiii", 1211216, *numbers.shape, -1) + numbers.astype(">f8").tobytes())


def text(separator: str) -> Callable[[Path, Matrix, random.Random], None]:
    def write(path: Path, numbers: Matrix, draw: random.Random) -> None:
        np.savetxt(path, numbers, delimiter=separator, fmt="%d" if numbers.dtype.kind in "iu" else "%.17g")

    return write


def text_back(separator: str | None) -> Callable[[Path, Matrix], Matrix]:
    return lambda path, like: np.loadtxt(path, delimiter=separator, ndmin=2).astype(like.dtype)


def mtx(path: Path, numbers: Matrix, draw: random.Random) -> None:
    scipy.io.mmwrite(path, numbers, precision=17)


def h5(path: Path, numbers: Matrix, draw: random.Random) -> None:
    dtype = mixed(numbers, draw)
    with h5py.File(path, "w") as book:
        book.create_dataset("matrix", data=numbers.astype(dtype))


def chunked(path: Path, numbers: Matrix, draw: random.Random) -> None:
    dtype = mixed(numbers, draw)
    chunks = tuple(min(extent, draw.choice((1, 5, 16, 64))) for extent in numbers.shape)
    options: dict[str, Any] = {"compression": draw.choice((None, "gzip", "gzip", "lzf"))}
    options |= {"shuffle": draw.random() < 0.5, "fletcher32": draw.random() < 0.3}
    if options["compression"] == "gzip":
        options["compression_opts"] = draw.randrange(10)
    with h5py.File(path, "w") as book:
        book.create_dataset("matrix", data=numbers.astype(dtype), chunks=chunks, **options)


def h5_back(path: Path, like: Matrix) -> Matrix:
    with h5py.File(path) as book:
        found: Matrix = book["matrix"][:]
        return found


def classic(path: Path, numbers: Matrix, draw: random.Random) -> None:
    with scipy.io.netcdf_file(str(path), "w", version=draw.choice((1, 2))) as book:
        book.createDimension("r", numbers.shape[0])
        book.createDimension("c", numbers.shape[1])
        book.createVariable("matrix", numbers.dtype.newbyteorder(">"), ("r", "c"))[:] = numbers


def classic_back(path: Path, like: Matrix) -> Matrix:
    with scipy.io.netcdf_file(str(path), mmap=False) as book:
        found: Matrix = next(iter(book.variables.values()))[:].astype(like.dtype)
        return found


def tensors(path: Path, numbers: Matrix, draw: random.Random) -> None:
    save_file({"matrix": np.ascontiguousarray(numbers)}, path)


def tif(path: Path, numbers: Matrix, draw: random.Random) -> None:
    packing = draw.choice((None, "zlib"))
    options: dict[str, Any] = {"compression": packing}
    if draw.random() < 0.5:
        options["tile"] = (draw.choice((16, 64)), draw.choice((16, 48)))
    elif draw.random() < 0.5:
        options["rowsperstrip"] = draw.choice((1, 7, 50))
    if (
        packing == "zlib"
        and numbers.dtype.kind in "iu"
        and numbers.dtype.itemsize <= 4
        and draw.random() < 0.5
    ):
        options["predictor"] = True
    tifffile.imwrite(
        path,
        numbers,
        photometric="minisblack",
        metadata=None,
        byteorder=">" if draw.random() < 0.5 else "<",
        **options,
    )


def lzw(path: Path, numbers: Matrix, draw: random.Random) -> None:
    Image.fromarray(numbers).save(
        path, compression=draw.choice(("tiff_lzw", "tiff_adobe_deflate", "packbits"))
    )


def tif_back(path: Path, like: Matrix) -> Matrix:
    found: Matrix = np.asarray(tifffile.imread(path))
    return found.reshape(like.shape)  # the library drops extents of one


def picture(kind: str) -> Callable[[Path, Matrix, random.Random], None]:
    def write(path: Path, numbers: Matrix, draw: random.Random) -> None:
        Image.fromarray(numbers).save(path, kind)

    return write


def picture_back(path: Path, like: Matrix) -> Matrix:
    with Image.open(path) as image:
        return np.asarray(image).astype(like.dtype)


def npz_back(path: Path, like: Matrix) -> Matrix:
    with np.load(path) as book:
        found: Matrix = book[book.files[0]]
        return found


def bin_back(path: Path, like: Matrix) -> Matrix:
    rows, columns = np.fromfile(path, "<i4", 2)
    return np.fromfile(path, "<f8", offset=8).reshape(rows, columns)


def petsc_back(path: Path, like: Matrix) -> Matrix:
    head = np.fromfile(path, ">i4", 4)
    return np.fromfile(path, ">f8", offset=16).reshape(head[1], head[2])


def zarr_2_or_3(path: Path, numbers: Matrix, draw: random.Random) -> None:
    import zarr

    version: Any = draw.choice((2, 3))
    chunks = tuple(min(extent, draw.choice((5, 16, 64, 1000))) for extent in numbers.shape)
    options: dict[str, Any] = {"compressors": draw.choice((None, None, "auto"))}
    options |= {"order": draw.choice("CF")} if version == 2 else {}
    array = zarr.create_array(
        path, shape=numbers.shape, chunks=chunks, dtype=numbers.dtype, zarr_format=version, **options
    )
    array[:] = numbers


def zarr_back(path: Path, like: Matrix) -> Matrix:
    import zarr

    return np.asarray(zarr.open_array(path, mode="r")[:])


def frame(numbers: Matrix) -> Any:
    import pyarrow as pa

    return pa.table({f"c{j}": np.ascontiguousarray(numbers[:, j]) for j in range(numbers.shape[1])})


def parquet(path: Path, numbers: Matrix, draw: random.Random) -> None:
    import pyarrow.parquet

    packing = draw.choice(("none", "snappy", "zstd", "gzip"))
    pyarrow.parquet.write_table(
        frame(numbers), path, compression=packing, row_group_size=draw.choice((10, 100, 10000))
    )


def parquet_back(path: Path, like: Matrix) -> Matrix:
    import pyarrow.parquet

    return columns_of(pyarrow.parquet.read_table(path))


def feather(path: Path, numbers: Matrix, draw: random.Random) -> None:
    import pyarrow.feather

    pyarrow.feather.write_feather(
        frame(numbers), path, compression=draw.choice(("uncompressed", "lz4", "zstd"))
    )


def feather_back(path: Path, like: Matrix) -> Matrix:
    import pyarrow.feather

    return columns_of(pyarrow.feather.read_table(path))


def columns_of(table: Any) -> Matrix:
    return np.stack([column.to_numpy() for column in table.columns], axis=1)


def mat(path: Path, numbers: Matrix, draw: random.Random) -> None:
    scipy.io.savemat(path, {"matrix": numbers}, do_compression=draw.random() < 0.5)


def mat_back(path: Path, like: Matrix) -> Matrix:
    found: Matrix = next(each for name, each in scipy.io.loadmat(path).items() if not name.startswith("__"))
    return found


TEXT = ("float64", "float32", "int32", "uint8")
FORMATS = [
    Kind("npy", ".npy", ALL, npy, lambda path, like: np.load(path), tuple(ALL)),
    Kind("npz", ".npz", ALL, npz, npz_back, tuple(ALL), summed=True),
    Kind("raw", ".raw", ALL, raw, raw_back, behind=raw_words),
    Kind("bin", ".bin", ["float64"], bin_, bin_back, ("float64",)),
    Kind("petsc", ".petsc", ["float64"], petsc, petsc_back, ("float64",)),
    Kind("txt", ".txt", ["float64"], text(" "), text_back(None), TEXT),
    Kind("csv", ".csv", ["float64"], text(","), text_back(","), TEXT),
    Kind("tsv", ".tsv", ["float64"], text("\t"), text_back("\t"), TEXT),
    Kind(
        "mtx",
        ".mtx",
        ["float64", "int64", "complex128"],
        mtx,
        lambda path, like: scipy.io.mmread(path),
        ("float64",),
    ),
    Kind("h5, in one piece", ".h5", ALL, h5, h5_back, tuple(ALL)),
    Kind("h5, in chunks", ".h5", ALL, chunked, h5_back),
    Kind("nc, classic", ".nc", ["int8", "int16", "int32", "float32", "float64"], classic, classic_back),
    Kind("nc", ".nc", ["int32", "float32", "float64"], h5, h5_back, ("int32", "float32", "float64")),
    Kind(
        "safetensors",
        ".safetensors",
        [*WHOLE, *REAL],
        tensors,
        lambda path, like: load_file(path)["matrix"],
        (*WHOLE, *REAL),
    ),
    Kind("tif", ".tif", [*WHOLE, *REAL], tif, tif_back, (*WHOLE, *REAL), picture=True),
    Kind("tif by Pillow", ".tif", ["uint8", "float32"], lzw, picture_back, picture=True),
    Kind("zarr", ".zarr", ALL, zarr_2_or_3, zarr_back, tuple(ALL)),
    Kind(
        "parquet",
        ".parquet",
        [*WHOLE, "float32", "float64"],
        parquet,
        parquet_back,
        (*WHOLE, "float32", "float64"),
    ),
    Kind(
        "feather",
        ".feather",
        [*WHOLE, "float32", "float64"],
        feather,
        feather_back,
        (*WHOLE, "float32", "float64"),
    ),
    Kind(
        "mat", ".mat", [*WHOLE, "float32", "float64", *COMPLEX], mat, mat_back, (*WHOLE, "float32", "float64")
    ),
    Kind("pgm", ".pgm", ["uint8", "uint16"], picture("PPM"), picture_back, ("uint8", "uint16"), picture=True),
    Kind("png", ".png", ["uint8", "uint16"], picture("PNG"), picture_back, ("uint8", "uint16"), picture=True),
]
