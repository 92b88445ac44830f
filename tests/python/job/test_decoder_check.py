"""Packed inputs whose unpacking by ranks is compared with the format's own library, before each job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import tifffile
from conftest import Tilewise
from tilewise import files
from tilewise.engine.decoder_check import checked
from tilewise.files.region import Source

RANDOM = numpy.random.default_rng(7)


def numbers(dtype: str, rows: int = 61, columns: int = 45) -> Any:
    return RANDOM.integers(0, 100, (rows, columns)).astype(dtype)


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
