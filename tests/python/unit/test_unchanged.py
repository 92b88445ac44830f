"""What an input looks like: a few pages, the first of the file and those of its numbers."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

import h5py
import numpy
import pytest
import zarr
from tilewise.files import inspect
from tilewise.files.unchanged import PAGES, Inputs, look


def set_back(path: Path, found: os.stat_result) -> None:
    """Gives a file its old time of writing; that of its inode is another one then."""
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    while path.stat().st_ctime_ns == found.st_ctime_ns:  # clocks of file systems tick slowly
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def test_places(tmp_path: Path) -> None:
    path = tmp_path / "data"
    content = os.urandom(300_000)
    path.write_bytes(content)
    found = look(str(path), 1000, 250_000)
    assert found is not None and (found.bytes, found.begin, found.end) == (300_000, 1000, 250_000)
    places = [0, *(1000 + (249_000 - 4096) * i // (PAGES - 2) for i in range(PAGES - 1))]
    assert places[1] == 1000 and places[-1] == 250_000 - 4096
    assert found.digest == zlib.crc32(b"".join(content[place : place + 4096] for place in places))


def test_small_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "data"
    assert look(str(path), 0, 100) is None
    path.write_bytes(b"abc")
    found = look(str(path), 128, 1 << 62)
    assert found is not None and (found.begin, found.end) == (3, 3) and found.digest == zlib.crc32(b"abc")


@pytest.mark.parametrize("place", [3, 130, 1_200_100, 20_000, None])
def test_what_was_written_to_is_noticed(tmp_path: Path, place: int | None) -> None:
    """By its pages, or by the time of its inode alone, as its own is set back."""
    path = tmp_path / "A.npy"
    numpy.save(path, numpy.zeros((300, 500)))
    found = path.stat()
    inputs = Inputs([inspect(str(path))])
    assert inputs.warnings() == []
    if place is not None:
        with path.open("r+b") as file:
            file.seek(place)
            file.write(b"!")
    set_back(path, found)
    (warning,) = inputs.warnings()
    touched = place in (20_000, None)  # between two pages
    assert ("was touched, and perhaps written to while it was read" in warning) == touched
    assert ("was written to while it was read" in warning) != touched


def test_every_file_of_an_input_is_looked_at(tmp_path: Path) -> None:
    """Of a folder of 100 tiles, of a Zarr store that is decoded, and of a virtual dataset in HDF5."""
    folder = tmp_path / "A.tiles"
    folder.mkdir()
    tiles = [{"file": f"{i}.npy", "rows": [i, i + 1], "columns": [0, 8]} for i in range(100)]
    for tile in tiles:
        numpy.save(folder / str(tile["file"]), numpy.ones((1, 8)))
    manifest = {"tilewise": 1, "shape": [100, 8], "dtype": "float64", "tiles": tiles}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    store = zarr.create_array(str(tmp_path / "B.zarr"), shape=(100, 8), chunks=(10, 8), dtype="f8")
    store[:] = 1.0
    layout = h5py.VirtualLayout((2, 8), "f8")
    for i in range(2):
        with h5py.File(tmp_path / f"{i}.h5", "w") as book:
            book["x"] = numpy.ones(8)
        layout[i] = h5py.VirtualSource(f"{i}.h5", "x", (8,))
    with h5py.File(tmp_path / "C.h5", "w") as book:
        book.create_virtual_dataset("x", layout)
    files = {"A.tiles": folder / "57.npy", "B.zarr": tmp_path / "B.zarr/c/5/0", "C.h5": tmp_path / "1.h5"}
    for name, changed in files.items():
        inputs = Inputs([inspect(str(tmp_path / name))])
        assert inputs.warnings() == []
        content, before = changed.read_bytes(), changed.stat()
        while changed.stat().st_mtime_ns == before.st_mtime_ns:  # clocks of file systems tick slowly
            changed.write_bytes(content[:-1] + b"!")
        assert len(inputs.warnings()) == 1, name
