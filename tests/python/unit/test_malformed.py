"""Broken and lying files of every format: each is refused in one line that names it, fast, without memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from malformed_files import HUGE, circle, image, tiff
from malformed_headers import CASES
from stopwatch import soon, within
from tilewise import files
from tilewise.base.errors import UsageError
from tilewise.files.decoded import decoded


def test_a_chain_of_pages_in_a_circle_ends(tmp_path: Path) -> None:
    (tmp_path / "x.tif").write_bytes(circle(tiff()))
    assert files.inspect(str(tmp_path / "x.tif")).columns == 18


@pytest.mark.parametrize("what", CASES)
def test_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.chdir(tmp_path)
    name, make = CASES[what]
    Path(name.partition(":")[0]).write_bytes(make())
    with within(5), pytest.raises(UsageError) as refused:
        source = files.inspect(name)
        assert source.packed, f"{what} was taken for {source}"
        decoded(source, str(tmp_path), "id")
    assert name.partition(":")[0] in refused.value.message
    assert "\n" not in refused.value.text().replace("\n  try: ", "") and refused.value.message.isprintable()
    assert len(refused.value.message) < 600
    assert [path.name for path in tmp_path.iterdir()] == [name.partition(":")[0]]


def manifests() -> Iterator[tuple[str, object]]:
    def tile(file: object = "t.npy", rows: object = (0, 4), columns: object = (0, 6)) -> dict[str, object]:
        return {"file": file, "rows": rows, "columns": columns}

    def book(
        *tiles: object, shape: object = (4, 6), dtype: object = "float64", version: object = 1
    ) -> object:
        return {"tilewise": version, "shape": shape, "dtype": dtype, "tiles": tiles}

    yield "empty", b""
    yield "no JSON", b"tiles!"
    yield "deep nesting", b"[" * 100_000
    yield "a list", []
    yield "of something else", {"name": "a web page", "icons": []}
    yield "an unknown version", book(tile(), version=2)
    yield "no version", {"shape": [4, 6], "dtype": "float64", "tiles": []}
    yield "an unknown type", book(tile(), dtype="float128")
    yield "negative extents", book(shape=(-4, -6))
    yield "three extents", book(tile(), shape=(4, 6, 1))
    yield "extents that overflow", book(tile(), shape=(HUGE, HUGE))
    yield "extents beyond 64 bits", book(tile(), shape=(1 << 80, 1))
    yield "no tiles", book()
    yield "a tile too few", book(tile(rows=(0, 3)))
    yield "a tile too wide", book(tile(columns=(0, 7)))
    yield "a tile backwards", book(tile(rows=(4, 0)))
    yield "negative rows", book(tile(rows=(-1, 4)))
    yield "overlapping tiles", book(tile(), tile())
    yield "overlap and gap", book(tile(rows=(0, 3)), tile(rows=(2, 3)))
    yield "a path upwards", book(tile("../t.npy"))
    yield "an absolute path", book(tile("/etc/passwd"))
    yield "a folder", book(tile(".."))
    yield "an empty name", book(tile(""))
    yield "its own manifest", book(tile("manifest.json"))
    yield "a NUL in a name", book(tile("t\0.npy"))
    yield "a number as name", book(tile(5))
    yield "a missing file", book(tile("gone.npy"))
    yield "another shape", book(tile("other.npy"))
    yield "another type", book(tile("single.npy"))
    yield "another order", book(tile("turned.npy"))
    yield "a cut file", book(tile("cut.npy"))
    yield "two byte orders", book(tile("top.npy", (0, 2)), tile("swapped.npy", (2, 4)))


@pytest.mark.parametrize(
    ("what", "text"), list(manifests()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_manifests_of_tiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, text: object) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "x.tiles"
    folder.mkdir()
    full = numpy.arange(24.0).reshape(4, 6)
    for file, array in {
        "t": full,
        "other": full.T.copy(),
        "single": full.astype("f4"),
        "turned": numpy.asfortranarray(full),
        "top": full[:2],
        "swapped": full[2:].astype(">f8"),
    }.items():
        numpy.save(folder / f"{file}.npy", array)
        numpy.save(tmp_path / f"{file}.npy", array)
    (folder / "cut.npy").write_bytes((folder / "t.npy").read_bytes()[:-5])
    (folder / "manifest.json").write_bytes(text if isinstance(text, bytes) else json.dumps(text).encode())
    with pytest.raises(UsageError) as refused:
        files.inspect("x.tiles")
    assert "x.tiles" in refused.value.message and refused.value.message.isprintable()


def zarr_metadata() -> dict[str, tuple[str, object]]:
    """A file of metadata and its content each, which are broken or lie."""
    bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
    regular = {"name": "regular", "configuration": {"chunk_shape": [2, 3]}}
    good = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 3],
        "data_type": "float64",
        "chunk_grid": regular,
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [bytes_codec],
    }
    old = {"zarr_format": 2, "shape": [4, 3], "chunks": [2, 3], "dtype": "<f8", "order": "C", "fill_value": 0}
    three = {
        "no JSON": b"zarr!",
        "empty": b"",
        "deep": b"[" * 100_000,
        "a list": [],
        "version 1": good | {"zarr_format": 1},
        "no version": {},
        "no node": good | {"node_type": "folder"},
        "negative": good | {"shape": [-4, 3]},
        "huge": good | {"shape": [1 << 62, 1 << 62]},
        "beyond 64 bits": good | {"shape": [1 << 80, 3]},
        "one dimension of chunks": good | {"chunk_grid": {**regular, "configuration": {"chunk_shape": [2]}}},
        "no extent": good | {"chunk_grid": {**regular, "configuration": {"chunk_shape": [0, 3]}}},
        "no chunks": good | {"chunk_grid": {"name": "regular"}},
        "huge chunks": good
        | {"chunk_grid": {**regular, "configuration": {"chunk_shape": [1 << 40, 1 << 40]}}},
        "no codecs": good | {"codecs": 5},
        "no endian": good | {"codecs": ["bytes"]},
        "pickle": good | {"codecs": [bytes_codec, {"name": "numcodecs.pickle"}]},
        "hidden pickle": good
        | {"codecs": [{"name": "sharding_indexed", "configuration": {"codecs": [{"name": "pickle"}]}}]},
        "a wrong word": good | {"fill_value": "none"},
        "a fraction": good | {"data_type": "int8", "fill_value": 0.5},
        "out of range": good | {"data_type": "uint8", "fill_value": 256},
        "many bits": good | {"fill_value": "0x10000000000000000"},
        "strings": good | {"data_type": "string"},
        "a cut chunk": good,
    }
    two = {
        "records": old | {"dtype": [["a", "<f8"]]},
        "texts": old | {"dtype": "<U4"},
        "another order": old | {"order": "K"},
        "a pickled filter": old | {"filters": [{"id": "pickle"}]},
        "another separator": old | {"dimension_separator": "/../"},
        "a cut old chunk": old,
    }
    return {what: ("zarr.json", each) for what, each in three.items()} | {
        what: (".zarray", each) for what, each in two.items()
    }


@pytest.mark.parametrize("what", zarr_metadata())
def test_metadata_of_zarr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.chdir(tmp_path)
    file, text = zarr_metadata()[what]
    Path("x.zarr/c/1").mkdir(parents=True)
    Path("x.zarr/c/1/0").write_bytes(bytes(47))
    Path("x.zarr/1.0").write_bytes(bytes(47))
    (Path("x.zarr") / file).write_bytes(text if isinstance(text, bytes) else json.dumps(text).encode())
    with pytest.raises(UsageError) as refused:
        files.inspect("x.zarr")
    assert "x.zarr" in refused.value.message and refused.value.message.isprintable()
    assert len(refused.value.message) < 400


def test_tiles_without_a_manifest_and_files_as_folders(tmp_path: Path) -> None:
    (tmp_path / "a.tiles").mkdir()
    (tmp_path / "b.tiles").write_text("")
    (tmp_path / "c.npy").mkdir()
    for name in ("a.tiles", "b.tiles", "c.npy", "gone.tiles"):
        with pytest.raises(UsageError, match=name):
            files.inspect(str(tmp_path / name))


def test_ten_thousand_tiles_are_checked_quickly() -> None:
    from tilewise.files.formats.tiles import require_cover

    cut = [((r, r + 1), (c, c + 2)) for r in range(100) for c in range(0, 200, 2)]
    soon(1, lambda: require_cover((100, 200), cut, "x.tiles"))
    with pytest.raises(UsageError, match="overlap"):
        require_cover((100, 200), [*cut, ((50, 51), (3, 4))], "x.tiles")


def test_no_header_makes_us_take_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lies = [
        what
        for what in CASES
        if any(
            word in what
            for word in (
                "header of",
                "overflow",
                "huge",
                "enormous",
                "GB",
                "too many",
                "bomb",
                "4294967295",
                "lies",
            )
        )
    ]
    assert len(lies) > 20
    made = {what: (CASES[what][0], CASES[what][1]()) for what in lies}
    for name, data in made.values():  # imports take memory too
        Path(name.partition(":")[0]).write_bytes(data)
        with pytest.raises(UsageError):
            files.inspect(name) and decoded(files.inspect(name), str(tmp_path), "id")
    tracemalloc.start()
    try:
        for what, (name, data) in made.items():
            Path(name.partition(":")[0]).write_bytes(data)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            with pytest.raises(UsageError):
                files.inspect(name) and decoded(files.inspect(name), str(tmp_path), "id")
            assert tracemalloc.get_traced_memory()[1] - before < 16 << 20, what
    finally:
        tracemalloc.stop()


def test_a_png_whose_data_claim_gigabytes_takes_no_memory(tmp_path: Path) -> None:
    data, path = image("PNG"), tmp_path / "x.png"
    at = data.index(b"IDAT") - 4
    path.write_bytes(data)  # the honest one first: imports take memory too
    decoded(files.inspect(str(path)), str(tmp_path), "id")
    path.write_bytes(data[:at] + b"\x7f\xff\xff\xff" + data[at + 4 :])
    tracemalloc.start()
    try:
        decoded(files.inspect(str(path)), str(tmp_path), "lies")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
