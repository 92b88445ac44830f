"""Packed chunks of HDF5 and TIFF, unpacked by ranks, beside what each format's own library reads."""

from __future__ import annotations

import base64
import itertools
import json
import sys
import zlib
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import tifffile
from conftest import Tilewise, one_message
from format_files import loaded
from oracle import record_of
from PIL import Image
from tilewise import files
from tilewise.base.errors import UsageError
from tilewise.files import contents
from tilewise.files.reading import binary, rows_of

WITHOUT_CHILD = True
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


@pytest.mark.parametrize(
    ("dtype", "nodata", "options"),
    [(">i2", "-9999", {}), (">f4", "0.5", {"compression": "zlib", "predictor": 3}), ("<u8", None, {})],
)
def test_tiles_that_are_not_stored(
    tilewise: Tilewise, dtype: str, nodata: str | None, options: dict[str, Any]
) -> None:
    path, tags = tilewise.folder / "a.tif", [] if nodata is None else [(42113, 2, 0, nodata, True)]
    options = {"tile": (16, 16), "extratags": tags, "metadata": None, **options}
    tifffile.imwrite(path, numbers(dtype), byteorder=dtype[0], **options)
    with tifffile.TiffFile(path, mode="r+") as book:
        for name in ("TileOffsets", "TileByteCounts"):
            tag = book.pages[0].aspage().tags[name]
            tag.overwrite([0 if place in (0, 4, 11) else value for place, value in enumerate(tag.value)])
    expected = tifffile.imread(path)
    assert tilewise("convert", "a.tif", "-n", 3, "-o", "out.npy").returncode == 0
    assert numpy.array_equal(numpy.load(tilewise.folder / "out.npy"), expected)


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


def properties(chunk: tuple[int, ...], filters: str = "") -> Any:
    """A new dataset's chunks and filters: s is shuffle, d deflate, f a checksum."""
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk(chunk)
    for each in filters:
        {"s": made.set_shuffle, "d": lambda: made.set_deflate(4), "f": made.set_fletcher32}[each]()
    return made


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize(
    ("limits", "filters", "ranks"),
    [
        ((60, 40), "sdf", "both"),
        ((80, 90), "fsd", "both"),
        ((None, 40), "sd", "both"),
        ((None, None), "sd", "both"),
        ((60, None), "sd", "earliest"),  # newer files have an index that says other coordinates
        ((90, None), "", "earliest"),
        ((60, 40), "ds", ""),
        ((60, 40), "dd", ""),
        ((60, 40), "ff", ""),
    ],
)
def test_ranks_unpack_what_is_known_to_be_good(
    tmp_path: Path, libver: str, limits: tuple[int | None, ...], filters: str, ranks: str
) -> None:
    matrix = numpy.arange(2400, dtype="<i4").reshape(60, 40)
    space = h5py.h5s.create_simple((60, 40), tuple(limit or h5py.h5s.UNLIMITED for limit in limits))
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as book:
        h5py.h5d.create(book.id, b"x", h5py.h5t.STD_I32LE, space, properties((20, 8), filters))
        book["x"][:] = matrix
    source = files.inspect(f"{tmp_path}/a.h5")
    assert (source.chunks is not None) == (ranks in ("both", libver))
    if source.chunks is None:
        assert numpy.array_equal(loaded(tmp_path / "a.h5"), matrix)
    else:
        with h5py.File(tmp_path / "a.h5") as book:
            places = [
                book["x"].id.get_chunk_info_by_coord(at)
                for at in itertools.product((0, 20, 40), range(0, 40, 8))
            ]
        assert source.chunks.offsets == [each.byte_offset for each in places]


# By a property that h5py does not have: H5Pset_chunk_opts, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS.
EDGES = (
    "c-rgqaB<`1lHy|K;9!7(|4=XkDr5i^H+b;O#NWduh)H4EC5~)lT)`xStPuvdm>3ut7}$Vvj126>8Kr4yIjM)ChOzO3L|M|SG7C(Z"
    "pkn$Aqyn!40a0KlF)}bRsxUAxF)=c-LgjGL%sdQ?0zj`pY!zT&1-g=%n;R&~#0YXQBUpw5=xP=wMrKB4W+rB?^Ndi<GZ+RfcyjEo"
    "gqx#>3j-q`7YkJEHPqd@ht@^7Il4G8Fv5KTja(rJiNaGs;hCZEJQ(7(P&33C!6D9q5#o-_gFnRYm1?M>hj=X1-B$$u8bLxF<`WNS"
    "I7)%ZB$QAsLE*Kb@YLG0lNd(9C>RB!fa>7Ig^q#<fgcYTnAwHJrPa0cc5p8MR?QCb8p;d|CyX|j0ZU-32D=O=1wW3U51|lE0d5vv"
    "3=B6S55&TZsfbHXs5n^DxYv1ygN;*^!{7F6%(e`M$5{81XC43(9&sB"
)


@pytest.mark.parametrize("member", ["shuffle", "gzip"])
def test_edge_chunks_that_no_filter_has_touched(tmp_path: Path, member: str) -> None:
    (tmp_path / "a.h5").write_bytes(zlib.decompress(base64.b85decode(EDGES)))
    assert files.inspect(f"{tmp_path}/a.h5:{member}").encoded
    assert numpy.array_equal(loaded(f"{tmp_path}/a.h5:{member}"), numpy.arange(0, 25000, 1000).reshape(5, 5))


def test_a_fill_value_that_is_never_written(tmp_path: Path) -> None:
    made = properties((4, 4))
    made.set_fill_value(numpy.array(7, "f4"))
    made.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    with h5py.File(tmp_path / "a.h5", "w") as book:
        h5py.h5d.create(book.id, b"x", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((8, 8)), made)
        book["x"][:4] = 1
        assert (book["x"][4:] == 0).all()
    chunks = files.inspect(f"{tmp_path}/a.h5").chunks
    assert chunks is not None and chunks.fill == "00000000"


def test_filters_of_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are named, and hdf5plugin has them."""
    monkeypatch.setitem(sys.modules, "hdf5plugin", None)
    matrix = numpy.arange(64.0).reshape(8, 8)
    with h5py.File(tmp_path / "a.h5", "w") as book:
        for name, number, mask in (("x", 32001, 0), ("skipped", 32001, 1), ("unknown", 999, 0)):
            made = properties((8, 8))
            made.set_filter(number, h5py.h5z.FLAG_OPTIONAL, (1, 2))
            space = h5py.h5s.create_simple((8, 8))
            stored = h5py.h5d.create(book.id, name.encode(), h5py.h5t.IEEE_F64LE, space, made)
            stored.write_direct_chunk((0, 0), matrix.tobytes(), mask)
        layout = h5py.VirtualLayout((8, 8), "f8")
        layout[:] = h5py.VirtualSource(".", "x", (8, 8))
        book.create_virtual_dataset("virtual", layout)
    for name, packer, advice in (
        ("x", r"blosc \(HDF5 filter 32001\)", " hdf5plugin"),
        ("virtual", r"blosc \(HDF5 filter 32001\)", " hdf5plugin"),
        ("unknown", "HDF5 filter 999", "h5repack"),
    ):
        with pytest.raises(UsageError, match=packer) as caught:
            files.inspect(f"{tmp_path}/a.h5:{name}")
        assert advice in caught.value.advice
    assert numpy.array_equal(loaded(tmp_path / "a.h5:skipped"), matrix)
    assert "packed by blosc" in next(
        each.layout for each in contents(f"{tmp_path}/a.h5") if each.member == "/x"
    )
    monkeypatch.undo()
    plugin = pytest.importorskip("hdf5plugin")
    with h5py.File(tmp_path / "b.h5", "w") as book:
        book.create_dataset("x", data=matrix, chunks=(4, 4), **plugin.Blosc())
    assert numpy.array_equal(loaded(tmp_path / "b.h5"), matrix)


def test_the_memory_that_is_advised_for_a_product_of_chunks_suffices(tilewise: Tilewise) -> None:
    with h5py.File(tilewise.folder / "a.h5", "w") as book:
        book.create_dataset("x", shape=(4000, 1500), dtype="f8", chunks=(256, 256), compression="gzip")
        book["x"][:, 0] = 1.0
    for ranks in (1, 2):
        words = ("plan", "multiply", "a.h5", "a.h5", "--transpose-a", "-o", "g.npy", "-n", ranks, "--memory")
        advice = one_message(tilewise(*words, "40MiB"), 2).split("try: --memory ")[1].split(",")[0]
        assert "of C stays in memory" in tilewise(*words, advice).stdout
