"""Zarr stores of both versions: what zarr-python writes we read, and it reads what we write."""

from __future__ import annotations

import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
from format_files import SHAPES, check_target, loaded, matrix, written
from tilewise import files
from tilewise.base.errors import RunError, UsageError
from tilewise.base.owner import new_owner
from tilewise.files import contents
from tilewise.files.formats import zarr as zarr_format
from tilewise.files.formats import zarr_new
from tilewise.files.formats.zarr_new import rectangles
from tilewise.files.output import create
from tilewise.files.region import Source
from tilewise.files.sweep import sweep

zarr = pytest.importorskip("zarr")
DTYPES = ("<f8", ">f4", "<f2", "<i2", ">u8", "|u1", "|b1", ">c16")
Array = numpy.ndarray[Any, Any]


def stored(
    path: Path, numbers: Array, version: int, chunks: tuple[int, ...], turned: bool = False, **more: Any
) -> Any:
    """An array that is not compressed; `turned` puts the last dimension of a chunk first."""
    native = numbers.dtype.newbyteorder("=")
    mark = "big" if numbers.dtype.str[0] == ">" else "little"
    if version == 2:
        more |= {"order": "F" if turned else "C", "dtype": numbers.dtype}
    else:
        axes = tuple(range(numbers.ndim))[::-1]
        more |= {"dtype": native, "serializer": zarr.codecs.BytesCodec(endian=mark)}
        more |= {"filters": [zarr.codecs.TransposeCodec(order=axes)] if turned else None}
    more = {"fill_value": 1, "compressors": None} | more
    array = zarr.create_array(path, shape=numbers.shape, chunks=chunks, zarr_format=version, **more)
    array[:] = numbers
    return array


def plain(name: object, **more: Any) -> Source:
    source = files.inspect(str(name), **more)
    assert not source.encoded and source.tiles
    return source


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("turned", [False, True])
def test_chunks_are_read_where_they_lie(tmp_path: Path, version: int, turned: bool) -> None:
    separators = itertools.cycle("./")
    for dtype, chunks in itertools.product(DTYPES, [(3, 4), (7, 11), (10, 20), (1, 11)]):
        numbers = numpy.arange(77).reshape(7, 11).astype(dtype)
        path = tmp_path / f"{dtype[1:]}{chunks}.zarr"
        keys = {"name": "default" if version == 3 else "v2", "separator": next(separators)}
        array = stored(path, numbers, version, chunks, turned, chunk_key_encoding=keys)
        for each in list(path.rglob("*1.0")) + list(path.rglob("1/0")):
            each.unlink()  # zarr-python stores no chunk that holds the fill value only
        source = plain(path)
        assert source.dtype == ("uint8" if dtype == "|b1" else numbers.dtype.name)
        assert source.byte_order == ("big" if dtype[0] == ">" else "little")
        assert numpy.array_equal(loaded(path), array[:]), (dtype, chunks)


def test_names_of_chunks_as_in_version_2(tmp_path: Path) -> None:
    keys = {"name": "v2", "separator": "/"}
    numbers = matrix((5, 4))
    stored(tmp_path / "A.zarr", numbers, 3, (2, 3), chunk_key_encoding=keys)
    assert (tmp_path / "A.zarr/0/1").exists() and numpy.array_equal(loaded(tmp_path / "A.zarr"), numbers)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        *(("float64", fill) for fill in (0, -1.5, numpy.nan, numpy.inf, -numpy.inf)),
        ("float16", numpy.nan),
        ("complex64", complex(2, numpy.nan)),
        ("uint64", 2**64 - 1),
        ("int8", -128),
        ("bool", True),
    ],
)
def test_a_chunk_without_a_file_has_the_fill_value(
    tmp_path: Path, version: int, dtype: str, fill: Any
) -> None:
    array = zarr.create_array(
        tmp_path / "A.zarr",
        shape=(5, 3),
        chunks=(2, 2),
        dtype=dtype,
        zarr_format=version,
        fill_value=fill,
        compressors=None,
    )
    source = plain(tmp_path / "A.zarr")
    assert source.notes == ("6 of 6 chunks were never written, and hold the fill value",)
    assert loaded(tmp_path / "A.zarr").tobytes() == array[:].tobytes()


def test_bits_and_words_of_a_fill_value(tmp_path: Path) -> None:
    stored(tmp_path / "A.zarr", matrix((2, 2)), 3, (2, 2))
    (tmp_path / "A.zarr/c/0/0").unlink()
    metadata = tmp_path / "A.zarr/zarr.json"
    said = json.loads(metadata.read_text())
    for fill, bits in (("0x7ff8000000000001", 0x7FF8000000000001), ("-Infinity", 0xFFF << 52), (None, 0)):
        metadata.write_text(json.dumps(said | {"fill_value": fill}))
        assert (loaded(tmp_path / "A.zarr").view("<u8") == bits).all()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("turned", [False, True])
def test_slices_of_more_dimensions(tmp_path: Path, version: int, turned: bool) -> None:
    numbers = numpy.arange(120, dtype="i4").reshape(4, 5, 6)
    slices = ("[2]", "[-1,:,:]", "[:,3]", "[:,:,4]", "[2,:,3]", "[1,2]", "[:,4,5]")
    for chunks in ((2, 3, 4), (4, 5, 6), (1, 1, 6), (3, 2, 1)):
        path = tmp_path / f"{chunks}.zarr"
        stored(path, numbers, version, chunks, turned)
        for brackets in slices:
            expected = eval("numbers" + brackets)
            source = plain(f"{path}{brackets}")
            assert numpy.array_equal(loaded(f"{path}{brackets}"), expected.reshape(len(expected), -1))
            if expected.ndim == 1:
                row = plain(f"{path}{brackets}", lists_are_rows=True)
                assert (row.rows, row.columns) == (1, source.rows) and "row" in row.notes[0]
                turned = [(tile.columns, tile.strides[::-1]) for tile in row.tiles]
                assert turned == [(tile.rows, tile.strides) for tile in source.tiles]


def packers() -> list[tuple[str, dict[str, Any]]]:
    codecs, numcodecs = zarr.codecs, pytest.importorskip("numcodecs")
    return [
        ("zstd", {"zarr_format": 3, "compressors": codecs.ZstdCodec()}),
        ("gzip", {"zarr_format": 3, "compressors": codecs.GzipCodec()}),
        ("blosc", {"zarr_format": 3, "compressors": codecs.BloscCodec()}),
        ("crc32c", {"zarr_format": 3, "compressors": codecs.Crc32cCodec()}),
        ("shards", {"zarr_format": 3, "compressors": None, "shards": (8, 8)}),
        ("zlib", {"zarr_format": 2, "compressors": numcodecs.Zlib()}),
        ("blosc", {"zarr_format": 2, "compressors": numcodecs.Blosc(), "order": "F"}),
        ("delta", {"zarr_format": 2, "filters": [numcodecs.Delta(dtype="<f8")], "compressors": None}),
    ]


@pytest.mark.parametrize(("what", "how"), packers())
def test_packed_chunks_are_unpacked_by_zarr_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, how: dict[str, Any]
) -> None:
    numbers = numpy.arange(3.0 * 19 * 11).reshape(3, 19, 11)
    how = {**how, "chunks": (1, 4, 4)} | ({"shards": (1, 8, 8)} if "shards" in how else {})
    zarr.create_array(tmp_path / "A.zarr", shape=numbers.shape, dtype="f8", **how)[:] = numbers
    monkeypatch.setattr("tilewise.files.slices._PANEL", 300)  # several blocks
    for brackets, expected in (("[1]", numbers[1]), ("[:,:,5]", numbers[:, :, 5]), ("[:,2]", numbers[:, 2])):
        source = files.inspect(f"{tmp_path}/A.zarr{brackets}")
        assert source.encoded and what in source.notes[-1]
        assert numpy.array_equal(loaded(f"{tmp_path}/A.zarr{brackets}"), expected)
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(UsageError, match="needs the package zarr") as refused:
        loaded(f"{tmp_path}/A.zarr[0]")
    assert refused.value.advice.endswith(" 'tilewise[zarr]'")
    assert "needs the package zarr: " in files.inspect(f"{tmp_path}/A.zarr[0]").warnings[-1]


def test_too_many_chunks_are_copied_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = matrix((9, 8))
    stored(tmp_path / "A.zarr", numbers, 3, (1, 1))
    monkeypatch.setattr(zarr_format, "TILES_MAX", 71)
    assert files.inspect(str(tmp_path / "A.zarr")).encoded
    assert numpy.array_equal(loaded(tmp_path / "A.zarr"), numbers)


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_we_write_zarr_python_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    monkeypatch.setattr(zarr_new, "BYTES", 1 << 10)
    for dtype, shape in itertools.product(("float64", "complex128", "uint8"), [*SHAPES, (0, 5), (5, 0)]):
        path, numbers = tmp_path / f"{dtype}{shape}.zarr", matrix(shape, dtype)
        for each in (numbers, numbers[::-1].copy()):
            region = written(path, each, force=True, order=order).region
            assert region.order == order and zarr.open_array(path, mode="r").nchunks == (
                len(region.tiles) if each.size else 0
            )
            array = zarr.open_array(path, mode="r")
            assert (array.dtype, array.shape) == (each.dtype, shape) and numpy.array_equal(array[:], each)
            assert not each.size or numpy.array_equal(loaded(path), each)


def test_chunks_are_alike_and_bounded() -> None:
    for shape in ((1, 1), (1, 10**7), (10**7, 3), (4097, 4097), (10**6, 10**6), (1, 10**13), (0, 7)):
        cut = rectangles(shape, "float64")
        (_, high), (_, wide) = cut[0]
        covered = sum((rows[1] - rows[0]) * (columns[1] - columns[0]) for rows, columns in cut)
        assert covered == shape[0] * shape[1] and len(cut) < 40_000
        assert high * wide * 8 <= max(zarr_new.BYTES, 2 * covered * 8 / (1 << 14))
        assert len(cut) * high * wide <= covered * 1.1


def test_arrays_of_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    numbers = matrix((5, 6))
    for member in ("x", "/g/y", "g/h/z"):
        written(f"G.zarr:{member}", numbers)
        assert numpy.array_equal(zarr.open_group("G.zarr", mode="r")[member.strip("/")][:], numbers)
        assert numpy.array_equal(loaded(f"G.zarr:{member}"), numbers)
    written("G.zarr:x", numbers + 1, force=True)
    assert numpy.array_equal(loaded("G.zarr/:/x"), numbers + 1)
    group = zarr.open_group("G.zarr")
    group.create_array("list", shape=(3,), dtype="i2", compressors=None)
    group.create_array("words", shape=(3, 2), dtype="U4")
    group.create_array("three", shape=(3, 2, 4), dtype="f4", chunks=(1, 2, 4))
    found = {each.member: each for each in contents("G.zarr")}
    assert [each for each in found if found[each].matrix] == ["/g/h/z", "/g/y", "/x"]
    assert (found["/x"].shape, found["/x"].layout) == ((5, 6), "in chunks of 5×6")
    assert found["/three"].layout == "in chunks of 1×2×4, packed by zstd"
    assert contents("G.zarr:x") == []
    for name, said in {
        "G.zarr": "names no array, but one was expected: /g/h/z, /g/y, /x",
        "G.zarr:/no": "has no array /no",
        "G.zarr:g": "has no array g",
        "G.zarr:words": "but numbers were expected",
        "G.zarr:three": "has 3 dimensions",
        "G.zarr:../G.zarr": "leads out of its store",
        "G.zarr/x": "no extension",
    }.items():
        with pytest.raises(UsageError, match=said):
            files.inspect(name)
    assert files.inspect("G.zarr:list").rows == 3


def test_version_2_groups_are_read_and_not_written(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "G.zarr", zarr_format=2)
    group.create_array("g/x", data=(numbers := matrix((4, 3))), chunks=(2, 2), compressors=None)
    assert numpy.array_equal(loaded(tmp_path / "G.zarr"), numbers)
    with pytest.raises(UsageError, match="a group of Zarr version 2"):
        written(f"{tmp_path}/G.zarr:/y", numbers)


def test_only_arrays_of_ours_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    numbers = matrix((4, 3))
    zarr.create_array("theirs.zarr", data=numbers, compressors=None)
    zarr.create_group("group.zarr")
    for name in ("ours", "mixed", "inside"):
        written(f"{name}.zarr", numbers)
    Path("mixed.zarr/notes.txt").write_text("mine")
    Path("inside.zarr/c.9.9").mkdir()
    Path("empty.zarr").mkdir()
    Path("file.zarr").write_text("")
    for name, said in {
        "theirs.zarr": "not an array by tilewise",
        "empty.zarr": "not an array by tilewise",
        "mixed.zarr": "holds notes.txt",
        "inside.zarr": r"holds c\.9\.9",
        "group.zarr": "is a group",
        "file.zarr": "not a folder",
        "file.zarr:/x": "no Zarr group",
        "ours.zarr:/x": "is an array, but a group",
        "group.zarr:/../x": "leads out of its store",
        "group.zarr:/__x": "which no Zarr array has",
        "group.zarr:/zarr.json": "which no Zarr array has",
    }.items():
        with pytest.raises(UsageError, match=said):
            check_target(name, True)
    with pytest.raises(UsageError, match="exists already"):
        check_target("ours.zarr", False)
    before = sorted(os.listdir("ours.zarr"))
    new = create(check_target("ours.zarr", True), (2, 2), "int8", "C", "id")
    Path("ours.zarr/late.txt").write_text("somebody else's")
    new.ready()
    with pytest.raises(RunError, match=r"late\.txt"):
        new.name(force=True)
    assert new.discard() == [] and sorted(os.listdir("ours.zarr")) == sorted([*before, "late.txt"])
    group = create(check_target("new.zarr:/g/x", False), (2, 2), "int8", "C", "id")
    assert not os.path.exists("new.zarr") and group.discard() == []
    assert not [name for name in os.listdir() if name.startswith(".") or name == "new.zarr"]


def test_what_dead_jobs_left_is_swept(tmp_path: Path) -> None:
    dead = msgspec.structs.replace(new_owner(), started=1).identity
    written(tmp_path / "G.zarr:/g/x", matrix((4, 3)))
    create(check_target(f"{tmp_path}/new.zarr:/g/x", False), (2, 2), "int8", "C", dead).ready()
    create(check_target(f"{tmp_path}/G.zarr:/g/y", False), (2, 2), "int8", "C", dead)
    sweep(str(tmp_path))
    sweep(str(tmp_path / "G.zarr/g"))
    assert os.listdir(tmp_path) == ["G.zarr"] and sorted(os.listdir(tmp_path / "G.zarr/g")) == [
        "x",
        "zarr.json",
    ]


def test_unknown_extensions_are_left_to_zarr_python(tmp_path: Path) -> None:
    stored(tmp_path / "A.zarr", matrix((2, 2)), 3, (2, 2))
    metadata = tmp_path / "A.zarr/zarr.json"
    said = json.loads(metadata.read_text())
    grid = {"chunk_grid": {"name": "rectilinear", "configuration": {}}}
    for more in (grid, {"storage_transformers": [{"name": "x"}]}, {"novel": {"must_understand": True}}):
        metadata.write_text(json.dumps(said | more))
        assert files.inspect(str(tmp_path / "A.zarr")).encoded
        with pytest.raises(UsageError, match=r"A\.zarr is not a readable \.zarr file"):
            loaded(tmp_path / "A.zarr")
    metadata.write_text(json.dumps(said | {"novel": {"must_understand": False}}))
    plain(tmp_path / "A.zarr")


def test_what_is_no_folder_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("A.zarr").write_bytes(b"PK\3\4")
    Path("A.zarr.zip").write_bytes(b"PK\3\4")
    Path("B.zarr").mkdir()
    for name, said, advice in (
        ("A.zarr", "is a file", "unzip A.zarr -d"),
        ("A.zarr.zip", "zipped", "unzip A.zarr.zip -d A.zarr"),
        ("B.zarr", "is no Zarr store", ""),
        ("C.zarr", "does not exist", ""),
        ("https://example.org/A.zarr", "is a URL", "copy it"),
        ("s3://bucket/A.zarr:/x", "is a URL", "copy it"),
    ):
        with pytest.raises(UsageError, match=said) as refused:
            files.inspect(name)
        assert refused.value.advice.startswith(advice)
    with pytest.raises(UsageError, match="is a URL"):
        check_target("s3://bucket/A.zarr", False)


@pytest.mark.parametrize("version", [2, 3])
def test_attributes_that_are_not_applied_are_told(tmp_path: Path, version: int) -> None:
    array = stored(tmp_path / "A.zarr", matrix((2, 2)), version, (2, 2))
    array.attrs["_FillValue"] = "AAAAAAAA+H8="  # NaN, as xarray writes it
    assert plain(tmp_path / "A.zarr").warnings == ()
    array.attrs["scale_factor"] = 2.0
    assert plain(tmp_path / "A.zarr").warnings == ("the attribute scale_factor is not applied",)
