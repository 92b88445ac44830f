"""Packed chunks of HDF5 and TIFF, unpacked by ranks, beside what each format's own library reads."""

from __future__ import annotations

import itertools
import json
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import tifffile
from conftest import Tilewise, one_message
from oracle import record_of
from PIL import Image
from tilewise import files
from tilewise.files.reading import binary, rows_of
from tilewise.files.region import Source

ROWS, COLUMNS = 61, 45
RANDOM = numpy.random.default_rng(7)


def numbers(dtype: str, rows: int = ROWS, columns: int = COLUMNS) -> Any:
    """Some that pack well and some that do not, in the type and byte order of `dtype`."""
    walk = numpy.cumsum(RANDOM.integers(-2, 3, (rows, columns)), axis=1) + 50
    walk[::7] = RANDOM.integers(0, 100, walk[::7].shape)
    return (walk + 0.25j * walk if "c" in dtype else walk).astype(dtype)


# What is stored: type, chunk, filters.
HDF5: list[tuple[str, tuple[int, int], dict[str, Any]]] = [
    ("<f8", (7, 45), {"compression": "gzip", "shuffle": True}),
    (">f8", (10, 10), {"compression": "gzip", "fletcher32": True, "shuffle": True}),
    ("<i2", (61, 4), {"compression": "gzip", "compression_opts": 9}),
    ("<c16", (1, 45), {"shuffle": True}),
    (">u4", (80, 64), {"compression": "gzip", "maxshape": (None, None)}),
    ("<f4", (16, 45), {"fletcher32": True}),
    ("<f4", (5, 3), {"compression": "gzip", "compression_opts": 0, "fletcher32": True}),  # packed, and larger
    ("<f2", (13, 11), {}),
    ("u1", (60, 44), {"compression": "gzip", "compression_opts": 1, "shuffle": True}),
    ("<c8", (1, 1), {"compression": "gzip"}),
]
JOBS = ("convert", "transpose", "multiply")


@pytest.mark.parametrize("again", [0, 1])
@pytest.mark.parametrize("case", range(len(HDF5)))
def test_hdf5_as_h5py_reads_it(tilewise: Tilewise, case: int, again: int) -> None:
    """Each with two of the jobs, on two of 1 to 4 ranks."""
    dtype, chunk, filters = HDF5[case]
    ranks, command = 1 + (case + 2 * again) % 4, JOBS[(case + again) % 3]
    matrix = numbers(dtype)
    with h5py.File(tilewise.folder / "a.h5", "w") as book:
        book.create_dataset("x", data=matrix, chunks=chunk, **filters)
    source = files.inspect(str(tilewise.folder / "a.h5"))
    assert source.encoding == "chunks" and not source.encoded
    words: list[object] = ["a.h5"]
    expected = matrix
    if command == "transpose":
        words += ["--algorithm", ("staged", "swap", "reread", "gather")[case % 4]]
        expected = matrix.T
    elif command == "multiply":
        ones = numpy.eye(COLUMNS, dtype="float64")[:, :9] + 1
        numpy.save(tilewise.folder / "left.npy", ones.T)
        words, expected = (
            ["left.npy", "a.h5", "--transpose-b"],
            ones.T @ matrix.astype("c16" if "c" in dtype else "f8").T,
        )
    done = tilewise(command, *words, "-n", ranks, "-o", "out.npy", "--json", "run.json", "--memory", "2GiB")
    assert done.returncode == 0, done.stderr
    found = numpy.load(tilewise.folder / "out.npy")
    assert found.shape == expected.shape and numpy.allclose(found, expected, rtol=1e-6, atol=0)
    record = json.loads((tilewise.folder / "run.json").read_text())
    assert command == "multiply" or (
        record["variant"]["io"].startswith("two_phase") and (found == expected).all()
    )
    assert record["seconds"]["input"]["parse"]["max"] > 0


def test_chunks_are_unpacked_once(tilewise: Tilewise) -> None:
    """However the ranks share the matrix, and however small the memory that it passes through."""
    matrix = numbers("f8", 1500, 1100)
    with h5py.File(tilewise.folder / "a.h5", "w") as book:
        stored = book.create_dataset("x", data=matrix, chunks=(100, 1100), compression="gzip")
        packed = stored.id.get_storage_size()
    for words in (
        ["convert"],
        ["convert", "--grid", "1x3"],
        ["convert", "--io", "root:positioned"],
        ["norm"],
    ):
        out = [] if words == ["norm"] else ["-o", "out.npy", "--force"]
        done = tilewise(*words, "a.h5", *out, "-n", 3, "--json", "run.json")
        assert done.returncode == 0, done.stderr
        assert not out or numpy.array_equal(numpy.load(tilewise.folder / "out.npy"), matrix)
        assert json.loads((tilewise.folder / "run.json").read_text())["bytes"]["read"] == packed


def test_what_is_not_stored_and_what_is_stored_plain(tilewise: Tilewise) -> None:
    """Missing chunks are the fill value, each chunk may skip filters, and zlib packs in many ways."""
    rows, columns = 8, 40
    kinds = list(
        itertools.product(
            (0, 1, 6, 9),
            (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED),
        )
    )
    matrix = numbers("<f8", rows * (len(kinds) + 3), columns)
    with h5py.File(tilewise.folder / "a.h5", "w") as book:
        stored = book.create_dataset(
            "x", matrix.shape, "<f8", chunks=(rows, columns), compression="gzip", shuffle=True, fillvalue=2.5
        )
        for place, (level, strategy) in enumerate(kinds):
            part = matrix[place * rows : (place + 1) * rows]
            data = part.view("u1").reshape(-1, 8).T.tobytes()
            packer = zlib.compressobj(level, zlib.DEFLATED, 9 + place % 7, 1 + place % 9, strategy)
            stored.id.write_direct_chunk((place * rows, 0), packer.compress(data) + packer.flush())
        at = len(kinds) * rows
        stored.id.write_direct_chunk((at, 0), matrix[at : at + rows].tobytes(), 0b11)
        stored.id.write_direct_chunk(
            (at + rows, 0), zlib.compress(matrix[at + rows : at + 2 * rows].tobytes()), 0b01
        )
        assert numpy.array_equal(stored[: at + 2 * rows], matrix[: at + 2 * rows])
        expected = stored[:]
    assert (expected[-rows:] == 2.5).all()
    assert tilewise("convert", "a.h5", "-n", 2, "-o", "out.npy").returncode == 0
    assert numpy.array_equal(numpy.load(tilewise.folder / "out.npy"), expected)


def test_long_matches_and_long_codes(tilewise: Tilewise) -> None:
    """Runs with every short distance, and texts whose codes are up to 15 bits long."""
    pieces = [bytes(range(period)) * 400 for period in range(1, 40)]
    skewed = numpy.repeat(numpy.arange(20, dtype="u1"), 2 ** numpy.arange(20) // 8 + 1)
    RANDOM.shuffle(skewed)
    data = numpy.frombuffer(b"".join(pieces) + skewed.tobytes(), "u1")
    with h5py.File(tilewise.folder / "a.h5", "w") as book:
        book.create_dataset("x", data=data, chunks=(50_000,), compression="gzip", compression_opts=9)
    assert tilewise("convert", "a.h5", "--as", "row", "-n", 2, "-o", "out.npy").returncode == 0
    assert numpy.array_equal(numpy.load(tilewise.folder / "out.npy")[0], data)


def test_slices_of_an_array(tilewise: Tilewise) -> None:
    cube = numbers("<i4", 7 * 9, 11).reshape(7, 9, 11)
    with h5py.File(tilewise.folder / "a.h5", "w") as book:
        book.create_dataset("x", data=cube, chunks=(2, 4, 3), compression="gzip")
    for brackets, expected in (
        ("3", cube[3]),
        (":,5", cube[:, 5]),
        (":,:,10", cube[:, :, 10]),
        ("6,8", cube[6, 8][:, None]),
    ):
        assert files.inspect(f"{tilewise.folder}/a.h5:/x[{brackets}]").encoding == "chunks"
        assert (
            tilewise("convert", f"a.h5:/x[{brackets}]", "-n", 2, "-o", "out.npy", "--force").returncode == 0
        )
        assert numpy.array_equal(numpy.load(tilewise.folder / "out.npy"), expected)


TIFF: list[tuple[str, str, dict[str, Any]]] = [
    ("uint8", "<", {"compression": "lzw", "predictor": 2, "tile": (16, 32)}),
    ("uint16", ">", {"compression": "lzw", "predictor": 2, "rowsperstrip": 7}),
    ("int32", "<", {"compression": "zlib", "predictor": 2, "tile": (64, 64)}),
    ("uint64", ">", {"compression": "zlib", "predictor": 2, "rowsperstrip": 10}),
    ("float32", ">", {"compression": "lzw", "predictor": 3, "tile": (32, 16)}),
    ("float64", "<", {"compression": "zlib", "predictor": 3, "rowsperstrip": 9}),
    ("float16", "<", {"compression": "lzw", "predictor": 3, "rowsperstrip": 61}),
    ("float64", ">", {"compression": "packbits", "tile": (16, 16)}),
    ("int16", ">", {"compression": "packbits", "rowsperstrip": 5}),
    ("float32", "<", {"tile": (16, 16)}),
    ("complex64", "<", {"compression": "zlib", "rowsperstrip": 20}),
]


@pytest.mark.parametrize("case", range(len(TIFF)))
def test_tiff_as_tifffile_reads_it(tilewise: Tilewise, case: int) -> None:
    dtype, mark, options = TIFF[case]
    matrix = numbers(dtype)
    tifffile.imwrite(tilewise.folder / "a.tif", matrix, photometric="minisblack", byteorder=mark, **options)
    assert files.inspect(str(tilewise.folder / "a.tif")).encoding == "chunks"
    done = tilewise("transpose", "a.tif", "-n", 1 + case % 4, "-o", "out.npy")
    assert done.returncode == 0, done.stderr
    assert numpy.array_equal(
        numpy.load(tilewise.folder / "out.npy").T, tifffile.imread(tilewise.folder / "a.tif")
    )


@pytest.mark.parametrize("how", ["tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_tiff_of_another_library(tilewise: Tilewise, how: str) -> None:
    """Pillow's strips; the long ones fill LZW's table more than once."""
    matrix = RANDOM.integers(0, 40, (700, 300)).astype("uint8")
    matrix[::2] //= 8
    Image.fromarray(matrix).save(tilewise.folder / "a.tif", compression=how)
    assert files.inspect(str(tilewise.folder / "a.tif")).encoding == "chunks"
    assert tilewise("convert", "a.tif", "-n", 2, "-o", "out.npy").returncode == 0
    assert numpy.array_equal(numpy.load(tilewise.folder / "out.npy"), matrix)


def broken(data: bytes) -> dict[str, bytes]:
    """A packed chunk with something wrong, and what is said of it."""
    stored = zlib.compress(data, 0)
    return {
        "ends early": zlib.compress(data)[:-9],
        "fails its checksum": zlib.compress(data)[:-1] + bytes([zlib.compress(data)[-1] ^ 1]),
        "unpacks to more than it should": zlib.compress(data + bytes(100)),
        "unpacks to 1592 bytes where 1600 were expected": zlib.compress(data[8:]),
        "is not packed by deflate": b"\x00" + stored[1:],
        "has a stored block of a wrong length": stored[:5] + b"\x00\x00" + stored[7:],
        "has 7297 packed bytes for 1600": bytes(7297),
        "has a block of an unknown kind": stored[:2] + b"\x07" + stored[3:],
    }


@pytest.mark.parametrize("what", broken(b""))
def test_what_is_broken_is_said(tilewise: Tilewise, what: str) -> None:
    matrix = numpy.arange(800.0).reshape(40, 20)
    with h5py.File(tilewise.folder / "a.h5", "w") as book:
        stored = book.create_dataset("x", data=matrix, chunks=(10, 20), compression="gzip")
        stored.id.write_direct_chunk((20, 0), broken(matrix[20:30].tobytes())[what])
        place = stored.id.get_chunk_info(2).byte_offset
    tilewise.environment["TILEWISE_NO_DECODING_CHECK"] = "1"  # else the library has the first word
    said = one_message(tilewise("convert", "a.h5", "-n", 2, "-o", "out.npy"), 2)
    assert f"a.h5: the chunk of rows 20:30 and columns 0:20 at byte {place} {what}" in said
    assert tilewise.files() == {"a.h5"}


def test_damaged_filters_and_files(tilewise: Tilewise) -> None:
    matrix = numbers("f8")
    with h5py.File(tilewise.folder / "a.h5", "w") as book:
        stored = book.create_dataset("x", data=matrix, chunks=(61, 45), fletcher32=True)
        place = stored.id.get_chunk_info(0).byte_offset
    whole = (tilewise.folder / "a.h5").read_bytes()
    (tilewise.folder / "a.h5").write_bytes(whole[: place + 9] + b"\x55\xaa" + whole[place + 11 :])
    said = one_message(tilewise("convert", "a.h5", "-n", 1, "-o", "out.npy"), 2)
    assert "fails its checksum" in said
    Image.fromarray(matrix.astype("uint8")).save(tilewise.folder / "a.tif", compression="tiff_lzw")
    with tifffile.TiffFile(tilewise.folder / "a.tif") as book:
        at = book.pages[0].dataoffsets[0]
    data = (tilewise.folder / "a.tif").read_bytes()
    (tilewise.folder / "a.tif").write_bytes(data[: at + 40] + b"\xff" * 40 + data[at + 80 :])
    said = one_message(tilewise("norm", "a.tif", "-n", 2), 2)
    assert "the chunk of rows" in said and "has an unknown code" in said


def test_chunks_are_read_in_their_own_way_whatever_is_named(tilewise: Tilewise) -> None:
    matrix = numbers("f8")
    with h5py.File(tilewise.folder / "a.h5", "w") as book:
        book.create_dataset("x", data=matrix, chunks=(9, 9), compression="gzip")
    for io, read in (("mapped", "two_phase"), ("root", "root")):
        words = ("convert", "a.h5", "-o", "out.npy", "--io", io, "-n", 2, "--force", "--json", "-")
        assert record_of(tilewise(*words))["variant"]["io"].partition(":")[0] == read
        assert numpy.array_equal(numpy.load(tilewise.folder / "out.npy"), matrix)
    assert tilewise("convert", "a.h5", "-o", "out.tiles", "--io", "per_rank", "-n", 2).returncode == 0


def test_what_ranks_do_not_know_the_front_decodes(tmp_path: Path) -> None:
    matrix = numbers("f8")
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=512) as book:
        book.create_dataset("x", data=matrix, chunks=(9, 9), compression="gzip")
    with h5py.File(tmp_path / "b.h5", "w") as book:
        book.create_dataset("x", data=matrix, chunks=(9, 9), compression="lzf")
        book.create_dataset("y", data=matrix.astype("i4"), chunks=(9, 9), scaleoffset=0)
    for name in ("a.h5", "b.h5:x", "b.h5:y"):
        source = files.inspect(f"{tmp_path}/{name}")
        assert source.encoded and source.encoding == "binary"
        with binary(source) as region:
            assert numpy.array_equal(numpy.array(list(rows_of(region, range(ROWS)))), matrix)


@pytest.mark.parametrize("fault", ["unpack-bit", "unpack-shift", "unpack-forgotten"])
@pytest.mark.parametrize("name", ["a.h5", "a.tif"])
def test_a_decoder_that_reads_other_numbers_is_found_before_the_job(
    tilewise: Tilewise, name: str, fault: str
) -> None:
    """Off, each of these faults would go unnoticed; on, the library reads, and a warning says so."""
    matrix = numbers("<i2", 100, 70)
    with h5py.File(tilewise.folder / "a.h5", "w") as book:
        book.create_dataset("x", data=matrix, chunks=(16, 16), compression="gzip", shuffle=True)
    tifffile.imwrite(tilewise.folder / "a.tif", matrix, tile=(16, 16), compression="zlib", predictor=2)
    for switch, warned in (("", True), ("1", False)):
        tilewise.environment.update(TILEWISE_FAULT=fault, TILEWISE_NO_DECODING_CHECK=switch)
        done = tilewise("transpose", name, "-o", "b.npy", "--verify", "fast", "--json", "run.json", "--force")
        assert done.returncode == 0, done.stderr
        assert (numpy.load(tilewise.folder / "b.npy") == matrix.T).all() == warned
        assert ("read by its format's library" in done.stderr) == warned
        proof = json.loads((tilewise.folder / "run.json").read_text())["verification"]
        assert (proof["unchecked"] == "decoding of the input not checked") != warned
        assert ("decoding of the input not checked" in done.stdout) != warned


def test_what_the_library_lacks_is_not_called_checked(tilewise: Tilewise) -> None:
    tifffile.imwrite(tilewise.folder / "a.tif", numbers("<u2"), tile=(16, 16), compression="lzw")
    hidden = tilewise.folder / "hidden"
    hidden.mkdir()
    (hidden / "imagecodecs.py").write_text("raise ImportError")
    path = tilewise.environment["PYTHONPATH"]
    tilewise.environment["PYTHONPATH"] = f"{hidden}:{path}"
    done = tilewise("transpose", "a.tif", "-o", "b.npy", "--verify", "fast")
    assert done.returncode == 0 and "decoding of the input not checked" in done.stdout, done.stderr
    tilewise.environment["PYTHONPATH"] = path
    done = tilewise("transpose", "a.tif", "-o", "b.npy", "--verify", "fast", "--force")
    assert "decoding" not in done.stdout and " verified by" in done.stdout


@pytest.mark.parametrize(("shape", "chunk"), [((40, 30), (16, 16)), ((1, 9), (1, 4)), ((5, 5), (5, 5))])
def test_the_chunks_that_are_compared(tmp_path: Path, shape: tuple[int, int], chunk: tuple[int, int]) -> None:
    """Corners, one that is not stored, and as rows what is a column."""
    from tilewise.engine.decoder_check import checked

    with h5py.File(tmp_path / "a.h5", "w") as book:
        book.create_dataset("x", data=numbers("<f4", *shape), chunks=chunk, compression="gzip")
        some = book.create_dataset("some", (99, 99), ">i4", chunks=(10, 10), shuffle=True, fillvalue=-7)
        some[30:40, 50:60] = 3
        book.create_dataset("list", data=numpy.arange(77.0), chunks=(10,), compression="gzip")
    path = str(tmp_path / "a.h5")
    named = (("x", False), ("some", False), ("list", False), ("list", True))
    found = checked([files.inspect(f"{path}:{name}", lists_are_rows=rows) for name, rows in named])
    assert not any(each.encoded for each in found if isinstance(each, Source))
    compared = [each.compared for each in found if isinstance(each, Source)]
    down, across = -(-shape[0] // chunk[0]), -(-shape[1] // chunk[1])
    corners = {0, across - 1, (down - 1) * across, down * across - 1}
    assert compared[0] >= len(corners) and compared[1] >= 5
    assert min(compared[2:]) >= 2
