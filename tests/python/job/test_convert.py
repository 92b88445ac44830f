"""`convert` through the real command: formats, types, orders, strategies, ranks, against other libraries."""

from __future__ import annotations

import itertools
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import scipy.io
from conftest import Done, Tilewise, one_message
from format_files import READERS, require_library
from PIL import Image
from tilewise.planning.names import ONE_FILE, ONLY_READ

WITHOUT_CHILD = True
JOB = ("convert",)
SHAPES = ((1, 1), (1, 37), (41, 1), (29, 31), (64, 7))
TEXT = ("txt", "csv", "tsv", "mtx")
LIBRARIES = ("h5", "nc", "safetensors", "tif", "mat", "parquet", "feather", "petsc")
WRITTEN = ("npy", "raw", "bin", *TEXT, *LIBRARIES, "tiles", "zarr")
WAYS = {io: f"{io}:{'positioned' if io in ONLY_READ else io}" for io in ONE_FILE}
REAL = ("float64",)  # what .bin and .petsc hold


def numbers(shape: tuple[int, int], dtype: str = "float64", seed: int = 0) -> Any:
    """A matrix with awkward values: negative, tiny, large, whole."""
    rng = numpy.random.default_rng(seed)
    if dtype.startswith(("int", "uint")):
        limits = numpy.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 4, shape)
    if dtype.startswith("complex"):
        return (values + 1j * rng.standard_normal(shape)).astype(dtype)
    return values.astype(dtype)


def load(path: Path, shape: tuple[int, int], dtype: str) -> Any:
    """What another library reads from a file that tilewise wrote."""
    kind = path.suffix[1:]
    if kind == "raw":
        return numpy.fromfile(path, dtype).reshape(shape)
    if kind in ("txt", "csv", "tsv"):
        between = {"txt": None, "csv": ",", "tsv": "\t"}[kind]
        read: Any = complex if dtype.startswith("complex") else dtype
        return numpy.loadtxt(path, dtype=read, delimiter=between, ndmin=2)
    if kind != "tiles":
        found = numpy.asarray(READERS[path.suffix](path))
        return found.astype(dtype) if kind == "mtx" else found
    manifest = json.loads((path / "manifest.json").read_text())
    whole = numpy.empty(shape, manifest["dtype"])
    for tile in manifest["tiles"]:
        whole[slice(*tile["rows"]), slice(*tile["columns"])] = numpy.load(path / tile["file"])
    return whole


def holds(kind: str, dtype: str) -> bool:
    from tilewise.files.formats import format_of

    return dtype in format_of(f"a.{kind}").numbers


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("ranks", [1, 3])
def test_there_and_back(tilewise: Tilewise, done: Done, kind: str, ranks: int) -> None:
    """To a format and back on one rank more; type, order and shape are drawn, the same for one case."""
    require_library(f"B.{kind}")
    draw = random.Random(f"{kind} {ranks}")
    dtypes = [d for d in ("float64", "float32", "int64", "complex128", "uint8", "float16") if holds(kind, d)]
    dtype, shape = draw.choice(dtypes), draw.choice(SHAPES)
    matrix = numbers(shape, dtype)
    numpy.save(tilewise.folder / "A.npy", numpy.asarray(matrix, order=draw.choice("CF")))
    name = f"B.{kind}"
    record = done("A.npy", "-o", name, "-n", ranks, "--verify", "fast")
    assert record["verification"]["passed"] is True
    assert record["outputs"][0]["format"] == kind and record["outputs"][0]["dtype"] == dtype
    written = load(tilewise.folder / name, shape, dtype)
    assert numpy.array_equal(written, matrix) and written.shape == shape
    back = f"{name}:{shape[0]}x{shape[1]}:{dtype}" if kind == "raw" else name
    wanted = ["--dtype", dtype] if kind in ("txt", "csv", "tsv", "mtx") else []
    done(back, "-o", "C.npy", "-n", ranks + 1, *wanted)
    again = numpy.load(tilewise.folder / "C.npy")
    assert again.dtype == dtype and numpy.array_equal(again, matrix)
    assert tilewise.files() == {"A.npy", name, "C.npy"}


@pytest.mark.parametrize("io", ONE_FILE)
def test_every_strategy(tilewise: Tilewise, done: Done, io: str) -> None:
    """With bands so small that there are several, and both orders of storage on both sides."""
    matrix = numbers((211, 173), seed=3)
    numpy.save(tilewise.folder / "A.npy", numpy.asfortranarray(matrix))
    how = ("-n", 4, "--grid", "2x2", "--io", io, "--verify", "fast")
    assert done("A.npy", "-o", "B.npy", *how)["variant"]["io"] == WAYS[io]
    record = done("B.npy", "-o", "C.npy", "--order", "F", *how)
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix)
    last = numpy.load(tilewise.folder / "C.npy")
    assert numpy.array_equal(last, matrix) and last.flags.f_contiguous
    assert record["bytes"]["useful"] == record["bytes"]["written"] == matrix.nbytes
    assert record["bytes"]["read"] >= matrix.nbytes and record["io_calls"] > 0


def test_many_bands(tilewise: Tilewise, done: Done) -> None:
    """A matrix of several bands for each rank, turned and in another type, under a cap."""
    matrix = numbers((3000, 1700), "float32", seed=4)
    numpy.save(tilewise.folder / "A.npy", matrix)
    words = ("-n", 2, "--memory", "256MiB", "--verify", "fast")
    for io, order in itertools.product(("positioned", "two_phase", "mapped"), "CF"):
        done(
            "A.npy",
            "-o",
            "B.npy",
            "--dtype",
            "float64",
            "--order",
            order,
            "--io",
            io,
            "--force",
            *words,
        )
        assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix.astype("float64"))
    record = done("A.npy", "-o", "B.tiles", *words)
    assert numpy.array_equal(load(tilewise.folder / "B.tiles", matrix.shape, "float32"), matrix)
    assert record["variant"]["io"] == "positioned:per_rank"
    assert record["peak_rss_bytes"]["node_sum"] < 256 << 20
    done("B.tiles", "-o", "B.csv", "-n", 3)
    assert numpy.array_equal(load(tilewise.folder / "B.csv", matrix.shape, "float32"), matrix)


@pytest.mark.parametrize("to", ["int8", "uint16", "int64", "float16", "float32", "complex64"])
def test_types_change_as_numpy_changes_them(tilewise: Tilewise, done: Done, to: str) -> None:
    for source in ("int32", ">f8", "uint8", "complex64"):
        if source == "complex64" and to != "complex64":
            continue
        values = numpy.random.default_rng(5).integers(0, 100, (23, 9)) / (1 if "i" in source else 8)
        matrix = values.astype(source)
        numpy.save(tilewise.folder / "A.npy", matrix)
        record = done("A.npy", "-o", "B.npy", "--dtype", to, "--force", "-n", 2)
        result = numpy.load(tilewise.folder / "B.npy")
        assert result.dtype == to and numpy.array_equal(result, matrix.astype(to))
        cut = source == ">f8" and "int" in to
        assert ["truncates fractions" in warning for warning in record["warnings"]] == [True] * cut


def test_a_lost_range_is_said(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.array([[1.5, 300.0, -7.0, numpy.nan]]))
    result = tilewise("convert", "A.npy", "B.npy", "--dtype", "uint8")
    assert result.returncode == 0
    assert "3 numbers are beyond the output's type" in result.stderr
    assert numpy.load(tilewise.folder / "B.npy").tolist() == [[1, 255, 0, 0]]


def test_what_others_write(tilewise: Tilewise, done: Done) -> None:
    """Compressed, chunked, packed in archives and in colours: decoded, and read on two ranks."""
    folder, matrix = tilewise.folder, numbers((57, 33), seed=6)
    with h5py.File(folder / "A.h5", "w") as book:
        book.create_dataset("deep/packed", data=matrix, chunks=(10, 7), compression="gzip", shuffle=True)
        book["big"] = matrix.astype(">f4")
    numpy.savez(folder / "A.npz", one=matrix, two=matrix.T)
    numpy.savez_compressed(folder / "P.npz", only=numpy.asfortranarray(matrix))
    image = numpy.random.default_rng(7).integers(0, 256, (40, 50, 3), dtype="uint8")
    Image.fromarray(image).save(folder / "A.png")
    Image.fromarray(image[:, :, 0]).save(folder / "G.png")
    grey = numpy.random.default_rng(8).integers(0, 65536, (19, 23), dtype="uint16")
    header = b"P5\n# made by hand\n23 19\n65535\n"
    (folder / "A.pgm").write_bytes(header + grey.astype(">u2").tobytes())
    scipy.io.mmwrite(folder / "S.mtx", matrix[:20, :20] + matrix[:20, :20].T, symmetry="symmetric")
    expected = {
        "A.h5:/deep/packed": matrix,
        "A.h5:/big": matrix.astype("float32"),
        "A.npz:two": matrix.T,
        "P.npz": matrix,
        "G.png": image[:, :, 0],
        "A.pgm": grey,
        "S.mtx": matrix[:20, :20] + matrix[:20, :20].T,
    }
    for name, wanted in expected.items():
        record = done(name, "-o", "B.npy", "--force", "-n", 2)
        result = numpy.load(folder / "B.npy")
        assert numpy.allclose(result, wanted, rtol=1e-15, atol=0) and result.dtype == wanted.dtype, name
        assert record["inputs"][0]["path"] == str(folder / name.split(":")[0])
    result = tilewise("convert", "A.png", "-o", "B.npy", "--force")
    assert "grey" in result.stderr
    luminance = image @ [0.299, 0.587, 0.114]
    assert numpy.abs(numpy.load(folder / "B.npy") - luminance).max() <= 1
    assert not [name for name in tilewise.files() if name.startswith(".")]


def test_pictures_are_written(tilewise: Tilewise, done: Done) -> None:
    grey = numpy.random.default_rng(9).integers(0, 256, (31, 17), dtype="uint8")
    numpy.save(tilewise.folder / "A.npy", grey)
    for name in ("B.png", "B.pgm", "B.tif"):
        done("A.npy", "-o", name, "-n", 2)
        assert numpy.array_equal(numpy.asarray(Image.open(tilewise.folder / name)), grey)
    message = one_message(tilewise("convert", "random:9x9", "-o", "C.png"), 2)
    assert "uint8" in message and "--dtype" in message
    assert tilewise.files() == {"A.npy", "B.png", "B.pgm", "B.tif"}


def test_products_of_any_formats(tilewise: Tilewise) -> None:
    folder, left, right = tilewise.folder, numbers((23, 19), seed=1), numbers((19, 31), seed=2)
    with h5py.File(folder / "A.h5", "w") as book:
        book["A"] = left
    scipy.io.mmwrite(folder / "B.mtx", right)
    numpy.savetxt(folder / "A.txt", left)
    numpy.savetxt(folder / "B.csv", right, delimiter=",")
    numpy.save(folder / "B.npy", right)
    assert tilewise("convert", "B.npy", "-o", "B.tiles", "-n", 3, "-q").returncode == 0
    cases = (
        ("A.h5:/A", "B.mtx", "C.safetensors", "two_phase", 2),
        ("A.txt", "B.csv", "C.txt", "root", 3),
        ("A.txt", "B.tiles", "C.mtx", "per_rank", 4),
        ("A.h5", "B.csv", "C.petsc", "mapped", 1),
        ("A.txt", "B.mtx", "C.bin", "root_collective", 2),
        ("A.h5", "B.tiles", "C.tiles", "per_rank", 3),
        ("A.txt", "B.npy", "C.h5", "auto", 1),
    )
    for a, b, c, io, ranks in cases:
        result = tilewise(
            "multiply", a, b, "-o", c, "--io", io, "-n", ranks, "--verify", "fast", "--json", "-"
        )
        assert result.returncode == 0, (a, b, c, result.stderr)
        assert json.loads(result.stdout)["verification"]["passed"] is True
        product = load(folder / c, (23, 31), "float64")
        assert numpy.allclose(product, left @ right, rtol=1e-10, atol=1e-8), (a, b, c)
    record = json.loads(result.stdout)
    assert record["seconds"]["input"]["parse"]["max"] > 0


def test_a_dataset_beside_others(tilewise: Tilewise, done: Done) -> None:
    """Another dataset joins a file; --force replaces one and leaves the rest."""
    first, second = numbers((8, 5), seed=1), numbers((6, 7), seed=2)
    numpy.save(tilewise.folder / "A.npy", first)
    numpy.save(tilewise.folder / "B.npy", second)
    with h5py.File(tilewise.folder / "X.h5", "w") as book:
        book["kept"] = [1, 2, 3]
    done("A.npy", "-o", "X.h5:/a")
    assert "exists" in one_message(tilewise("convert", "B.npy", "-o", "X.h5:/a"), 2)
    done("B.npy", "-o", "X.h5:/a", "--force", "-n", 2)
    with h5py.File(tilewise.folder / "X.h5") as book:
        assert book["kept"][:].tolist() == [1, 2, 3] and numpy.array_equal(book["a"][:], second)


def test_an_old_folder_of_tiles_stays_whole_until_the_new_one_is(tilewise: Tilewise, done: Done) -> None:
    matrix = numbers((30, 10))
    numpy.save(tilewise.folder / "A.npy", matrix)
    done("A.npy", "-o", "T.tiles", "-n", 3)
    assert "--force" in one_message(tilewise("convert", "A.npy", "-o", "T.tiles"), 2)
    old = sorted(path.name for path in (tilewise.folder / "T.tiles").iterdir())
    tilewise.environment["TILEWISE_FAULT"] = "throw:1:output"
    assert tilewise("convert", "A.npy", "-o", "T.tiles", "-n", 2, "--force").returncode == 1
    assert sorted(path.name for path in (tilewise.folder / "T.tiles").iterdir()) == old
    del tilewise.environment["TILEWISE_FAULT"]
    done("A.npy", "-o", "T.tiles", "-n", 2, "--force")
    assert len(list((tilewise.folder / "T.tiles").iterdir())) == 3
    (tilewise.folder / "T.tiles" / "mine.txt").write_text("keep")
    assert "mine.txt" in one_message(tilewise("convert", "A.npy", "-o", "T.tiles", "--force"), 2)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1 2\n3 x4\n", "line 2"),
        ("1 2\n3 4\n5\n", "line 3"),
        ("# a\n1 2\n\n3 4 5\n", "line 4"),
        ("1,2\n3,,4\n", "line 2"),
    ],
)
def test_wrong_text_is_found_with_its_line(tilewise: Tilewise, content: str, said: str, ranks: int) -> None:
    name = "A.csv" if "," in content else "A.txt"
    (tilewise.folder / name).write_text(content)
    for io in ("auto", "root"):
        message = one_message(tilewise("convert", name, "-o", "B.npy", "-n", ranks, "--io", io), 2)
        assert said in message or "next" in message
    assert tilewise.files() == {name}


def test_headers_comments_and_line_ends(tilewise: Tilewise, done: Done) -> None:
    matrix = numbers((7, 3))
    numpy.save(tilewise.folder / "A.npy", matrix)
    done("A.npy", "-o", "H.txt", "--header", "-n", 2)
    lines = (tilewise.folder / "H.txt").read_text().splitlines()
    assert lines[0] == "7 3" and len(lines) == 8
    done("H.txt", "-o", "B.npy")
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix)
    text = "\r\n".join(" \t".join(map(repr, row)) + "  # c" for row in matrix.tolist())
    (tilewise.folder / "W.txt").write_text("% made elsewhere\r\n\r\n" + text)
    done("W.txt", "-o", "B.npy", "--force", "-n", 3)
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix)


def test_a_broken_packed_file_is_one_message(tilewise: Tilewise) -> None:
    numpy.savez_compressed(tilewise.folder / "A.npz", a=numbers((60, 60)))
    with zipfile.ZipFile(tilewise.folder / "A.npz") as archive:
        start = archive.infolist()[0].header_offset
    data = bytearray((tilewise.folder / "A.npz").read_bytes())
    data[start + 2000 : start + 2040] = b"\0" * 40
    (tilewise.folder / "A.npz").write_bytes(bytes(data))
    assert "A.npz" in one_message(tilewise("convert", "A.npz", "-o", "B.npy", "-n", 2), 2)
    assert tilewise.files() == {"A.npz"}


def test_a_long_text_does_not_fill_memory(tilewise: Tilewise, done: Done) -> None:
    """The text is read where the page cache has it; its pages must not stay counted as the ranks' own."""
    line = " ".join(f"{value:.17g}" for value in numpy.random.default_rng(4).standard_normal(2000)) + "\n"
    lines = (240 << 20) // len(line)
    (tilewise.folder / "A.txt").write_text(line * lines)
    record = done("A.txt", "-o", "A.npy", "-n", 2)
    assert record["peak_rss_bytes"]["node_sum"] < 160 << 20
    result = numpy.load(tilewise.folder / "A.npy", mmap_mode="r")
    assert result.shape == (lines, 2000)
    assert (result == numpy.array(line.split(), float)).all()
    (tilewise.folder / "A.txt").unlink()


def test_more_than_31_bits(tilewise: Tilewise, done: Done) -> None:
    """Over 2³¹ elements and bytes: a sparse file of a small type, looked at only where it counts."""
    rows, columns = 2, (1 << 30) + 5
    path = tilewise.folder / "A.raw"
    with open(path, "wb") as file:
        file.truncate(rows * columns)
        for place in (0, columns, rows * columns - 1):
            file.seek(place)
            file.write(b"\x07")
    record = done(f"A.raw:{rows}x{columns}:uint8", "-o", "B.npy", "-n", 2)
    assert record["bytes"]["written"] == rows * columns
    result = numpy.load(tilewise.folder / "B.npy", mmap_mode="r")
    assert [int(result[0, 0]), int(result[1, 0]), int(result[-1, -1]), int(result[0, 1])] == [7, 7, 7, 0]
    assert record["peak_rss_bytes"]["node_sum"] < 300 << 20
    path.unlink()
    (tilewise.folder / "B.npy").unlink()


def test_requests_that_make_no_sense(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "A.npy", numbers((3, 3)))
    for words, said in (
        (("A.npy",), "needs an output"),
        (("A.npy", "B.npy", "-o", "C.npy"), "two outputs"),
        (("A.npy", "-o", "B.csv", "--order", "F"), "row by row"),
        (("A.npy", "-o", "B.npz", "--order", "F"), "row by row"),
        (("A.npy", "-o", "B.npy", "--hint", "cb_buffer_size=7", "--io", "two_phase"), "cb_buffer_size"),
        (("A.npy", "-o", "B.npy", "--hint", "gather=late", "--io", "root_collective"), "gather=late"),
    ):
        assert said in one_message(tilewise("convert", *words), 2), words
    assert tilewise.files() == {"A.npy"}
