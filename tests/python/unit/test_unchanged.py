"""What an input looks like: a few pages, the first of the file and those of its numbers."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import numpy
import pytest
from tilewise.files import inspect
from tilewise.files.unchanged import PAGES, Inputs, look


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


@pytest.mark.parametrize("place", [3, 130, 39_999])
def test_what_was_written_to_is_noticed(tmp_path: Path, place: int) -> None:
    """By its pages alone, as its time is set back."""
    path = tmp_path / "A.npy"
    numpy.save(path, numpy.zeros((100, 50)))
    found = path.stat()
    inputs = Inputs([inspect(str(path))])
    assert inputs.warnings() == []
    with path.open("r+b") as file:
        file.seek(place)
        file.write(b"!")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert len(inputs.warnings()) == 1 and "was written to while it was read" in inputs.warnings()[0]
