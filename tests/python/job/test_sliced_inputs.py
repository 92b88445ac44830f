"""Jobs on slices of arrays, and on arrays with one dimension."""

from __future__ import annotations

import json

import h5py
import numpy
import pytest
from conftest import Tilewise

WITHOUT_CHILD = True
CUBE = numpy.random.default_rng(1).random((4, 3, 5))
LIST = CUBE[0, 0, :3]
JOBS = {
    "both in place": (("multiply", "f.npy[...,1]", "c.npy[0]"), CUBE[..., 1] @ CUBE[0]),
    "both decoded": (("multiply", "c.npy[:,1]", "c.h5[1]", "--transpose-b"), CUBE[:, 1] @ CUBE[1].T),
    "a row": (("multiply", "v.npy", "f.npy[2]", "--as", "row"), LIST[None] @ CUBE[2]),
    "a column": (("multiply", "c.npy[:,:,2]", "v.npy"), CUBE[:, :, 2] @ LIST[:, None]),
    "transpose": (("transpose", "c.h5[:,1]"), CUBE[:, 1].T),
    "convert": (("convert", "f.npy[3]"), CUBE[3]),
    "stencil": (("stencil", "c.npy[3]", "--steps", "1", "--weights", "box3", "--boundary", "zero"), None),
}


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("job", JOBS)
def test_jobs_take_slices_and_lists(tilewise: Tilewise, job: str, ranks: int) -> None:
    numpy.save(tilewise.folder / "c.npy", CUBE)
    numpy.save(tilewise.folder / "f.npy", numpy.asfortranarray(CUBE))
    numpy.save(tilewise.folder / "v.npy", LIST)
    with h5py.File(tilewise.folder / "c.h5", "w") as book:
        book.create_dataset("x", data=CUBE, chunks=(2, 2, 2), compression="gzip")
    words, expected = JOBS[job]
    done = tilewise(*words, "-n", ranks, "-o", "out.npy", "--json", "r.json")
    assert done.returncode == 0, done.stderr
    (first, *_) = json.loads((tilewise.folder / "r.json").read_text())["inputs"]
    assert first["format"] == words[1].partition("[")[0].rsplit(".", 1)[1]
    out = numpy.load(tilewise.folder / "out.npy")
    if expected is None:
        numpy.save(tilewise.folder / "m.npy", CUBE[3])
        tilewise("stencil", "m.npy", *words[2:], "-o", "again.npy")
        expected = numpy.load(tilewise.folder / "again.npy")
    assert out.shape == expected.shape and numpy.allclose(out, expected, rtol=1e-14)
