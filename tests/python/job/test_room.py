"""Room on disks: what fits is not refused, what does not is refused before it runs, and plans say it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy
import pytest
from conftest import InProcess, Tilewise, one_message


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes every file system have so many bytes left."""
    found = os.statvfs("/")

    def leave(count: int) -> None:
        fields = [1, 1, max(count, 1), count, count, *found[5:]]
        monkeypatch.setattr("os.statvfs", lambda _: os.statvfs_result(fields))

    return leave


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (("transpose", "A.npy", "-o", "C.npy"), 192),
        (("transpose", "A.npy", "-o", "C.csv"), 48),
        (("transpose", "A.npy", "-o", "C.mtx"), 48),
        (("svd", "A.npy", "-o", "s"), (6 * 4 + 4 + 4 * 4) * 8),
        (("stencil", "A.npy", "-o", "C.npy", "--steps", 20, "--snapshot-every", 5), 4 * 192),
        (("transpose", "P.h5:/A", "-o", "C.npy"), 2 * 192),
        (("convert", "A.npy", "-o", "K.h5:/B"), None),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_jobs_and_plans_refuse_alike(
    here: InProcess,
    fake: Tilewise,
    left: Callable[[int], None],
    words: tuple[object, ...],
    needed: int | None,
) -> None:
    with h5py.File("P.h5", "w") as file:
        file.create_dataset("A", data=numpy.arange(24.0).reshape(6, 4), compression="lzf", chunks=(2, 2))
    with h5py.File("K.h5", "w") as file:
        file["old"] = numpy.arange(100.0)
    if needed is None:
        needed = 192 + os.path.getsize("K.h5")  # of a container the rest is copied
    before = fake.files()
    left(needed - 1)
    refused = one_message(here(*words), 1)
    assert "the disk is too full for" in refused and "  try: -o on another disk" in refused
    planned = here("plan", *words)
    assert (planned.returncode, planned.stderr) == (1, refused)
    assert "disk" in planned.stdout and "left" in planned.stdout
    assert fake.files() == before
    left(needed)
    planned = here("plan", *words)
    assert planned.returncode == 0, planned.stderr
    assert ("at least" in planned.stdout) == str(words[3]).endswith(("csv", "mtx"))


def test_a_text_that_fits_is_written_and_one_that_does_not_leaves_nothing(
    tilewise: Tilewise,
    mount: Callable[..., Path],
) -> None:
    """Numbers of one digit take a quarter of what they take in memory; those of 18 twice as much."""
    folder = mount("-t", "tmpfs", "-o", "size=512k", "tmpfs")
    words = ("generate", "--shape", "400x400", "--dtype", "int64", "-q")
    done = tilewise(*words, "--kind", "identity", "-o", folder / "I.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert numpy.array_equal(numpy.loadtxt(folder / "I.csv", delimiter=","), numpy.eye(400))
    (folder / "I.csv").unlink()
    for ranks in (1, 2):
        random = ("convert", "random:200x200", "-o", folder / "R.csv", "-n", ranks)
        assert "R.csv" in one_message(tilewise(*random), 1)
        assert os.listdir(folder) == []
