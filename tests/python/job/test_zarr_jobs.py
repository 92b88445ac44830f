"""Every operation from and to Zarr stores, on one to three ranks, against numpy and zarr-python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import Tilewise, one_message

WITHOUT_CHILD = True


zarr = pytest.importorskip("zarr")
Array = numpy.ndarray[Any, Any]


def put(path: Path, numbers: Array, **how: Any) -> Array:
    """A store with `numbers`, in uneven chunks that are not compressed unless `how` says otherwise."""
    how = {"chunks": tuple(-(-extent // 3) + 1 for extent in numbers.shape), "compressors": None} | how
    zarr.create_array(path, shape=numbers.shape, dtype=numbers.dtype, **how)[:] = numbers
    return numbers


def got(path: Path) -> Array:
    array: Array = zarr.open_array(path, mode="r")[:]
    return array


def run(tilewise: Tilewise, *words: object) -> None:
    ended = tilewise(*words, "-q")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_operation(tilewise: Tilewise, ranks: int) -> None:
    here, n = tilewise.folder, ("-n", ranks)
    rng = numpy.random.default_rng(ranks)
    a = put(here / "A.zarr", rng.standard_normal((37, 23)))
    b = put(here / "B.zarr", rng.standard_normal((23, 29)).astype(">f8"), zarr_format=2, order="F")
    c = put(here / "C.zarr", rng.standard_normal((37, 23)), compressors="auto")
    run(tilewise, "multiply", "A.zarr", "B.zarr", "-o", "G.zarr:/product", "--verify", "serial", *n)
    numpy.testing.assert_allclose(got(here / "G.zarr/product"), a @ b, rtol=1e-12, atol=1e-13)
    run(tilewise, "multiply", "C.zarr", "B.zarr", "-o", "G.zarr:/packed", *n)
    numpy.testing.assert_allclose(got(here / "G.zarr/packed"), c @ b, rtol=1e-12, atol=1e-13)
    for algorithm in {1: ("staged",), 2: ("gather", "swap"), 3: ("reread",)}[ranks]:
        words = ("--algorithm", algorithm, "--force", "--verify", "fast", *n)
        run(tilewise, "transpose", "A.zarr", "-o", "T.zarr", *words)
        assert numpy.array_equal(got(here / "T.zarr"), a.T)
    run(tilewise, "convert", "A.zarr", "-o", "A.npy", *n)
    assert numpy.array_equal(numpy.load(here / "A.npy"), a)
    for kind in ("npy", "zarr"):
        run(tilewise, "stencil", f"A.{kind}", "-o", f"S.{kind}", "--steps", 3, "--snapshot-every", 2, *n)
    for name in ("S", "S-000002"):
        assert numpy.array_equal(got(here / f"{name}.zarr"), numpy.load(here / f"{name}.npy"))
    run(tilewise, "svd", "B.zarr", "-o", "svd", "--values-only", *n)
    numpy.testing.assert_allclose(
        numpy.load(here / "svd/s.npy").ravel(), numpy.linalg.svd(b, compute_uv=False), rtol=1e-12
    )
    run(tilewise, "generate", "-o", "R.zarr", "--shape", "31x17", "--kind", "ramp", "--sync", *n)
    assert numpy.array_equal(got(here / "R.zarr"), numpy.arange(31.0 * 17).reshape(31, 17))
    run(tilewise, "convert", "R.zarr", "-o", "R.zarr", "--dtype", "float32", "--order", "F", "--force", *n)
    assert got(here / "R.zarr").dtype == numpy.float32


@pytest.mark.parametrize("ranks", [1, 3])
def test_slices_lists_and_missing_chunks(tilewise: Tilewise, ranks: int) -> None:
    here, n = tilewise.folder, ("-n", ranks)
    cube = numpy.arange(5.0 * 14 * 9).reshape(5, 14, 9)
    array = zarr.create_array(
        here / "T.zarr", shape=cube.shape, chunks=(2, 4, 5), dtype="f8", compressors=None, fill_value=7
    )
    array[:3], array[:, 5:] = cube[:3], cube[:, 5:]
    whole = array[:]
    assert (whole[4, :4] == 7).all()
    for brackets, expected in (("[4]", whole[4]), ("[:,2]", whole[:, 2]), ("[:,:,8]", whole[:, :, 8])):
        run(tilewise, "convert", f"T.zarr{brackets}", "-o", "B.npy", "--force", "--verify", "fast", *n)
        assert numpy.array_equal(numpy.load(here / "B.npy"), expected)
        run(tilewise, "transpose", f"T.zarr{brackets}", "-o", "B.npy", "--force", "--verify", "serial", *n)
        assert numpy.array_equal(numpy.load(here / "B.npy"), expected.T)
    run(tilewise, "multiply", "T.zarr[1]", "T.zarr[0,3]", "-o", "y.zarr", *n)
    numpy.testing.assert_allclose(got(here / "y.zarr"), (whole[1] @ whole[0, 3])[:, None], rtol=1e-13)
    run(tilewise, "convert", "T.zarr[:,4,2]", "--as", "row", "-o", "y.npy", *n)
    assert numpy.array_equal(numpy.load(here / "y.npy"), whole[None, :, 4, 2])


def test_an_old_array_stays_whole_until_the_new_one_is(tilewise: Tilewise) -> None:
    here = tilewise.folder
    numbers = numpy.arange(300.0).reshape(30, 10)
    numpy.save(here / "A.npy", numbers)
    run(tilewise, "convert", "A.npy", "-o", "T.zarr", "-n", 3)
    assert "--force" in one_message(tilewise("convert", "A.npy", "-o", "T.zarr"), 2)
    numpy.save(here / "A.npy", numbers[:7])
    tilewise.environment["TILEWISE_FAULT"] = "throw:1:output"
    for name in ("T.zarr", "N.zarr:/a/b"):
        assert tilewise("convert", "A.npy", "-o", name, "-n", 2, "--force").returncode == 1
        assert numpy.array_equal(got(here / "T.zarr"), numbers) and tilewise.files() == {"A.npy", "T.zarr"}
    del tilewise.environment["TILEWISE_FAULT"]
    run(tilewise, "convert", "A.npy", "-o", "T.zarr", "-n", 2, "--force")
    assert numpy.array_equal(got(here / "T.zarr"), numbers[:7])
    assert tilewise.files() == {"A.npy", "T.zarr"}
    (here / "T.zarr/mine.txt").write_text("keep")
    assert "mine.txt" in one_message(tilewise("convert", "A.npy", "-o", "T.zarr", "--force"), 2)


def test_what_cannot_be_is_refused(tilewise: Tilewise) -> None:
    here = tilewise.folder
    numbers = put(here / "A.zarr", numpy.ones((4, 4)))
    put(here / "P.zarr", numbers, compressors="auto")
    chunk = here / "A.zarr/c/1/1"
    os.truncate(chunk, 8)
    for words, said in (
        (("convert", "A.zarr", "-o", "B.npy"), "its chunk c/1/1 has 8 bytes where 72 were expected"),
        (("convert", "P.zarr", "-o", "-", "--to", "zarr"), "zarr"),
        (("svd", "P.zarr", "-o", "out.zarr"), "named like a file"),
        (("convert", "P.zarr", "-o", "A.zarr", "--force"), "not an array by tilewise"),
        (("convert", "P.zarr", "-o", "A.zarr[1]"), "is a slice"),
    ):
        assert said in one_message(tilewise(*words), 2)
