"""`--from FORMAT`: files of any name, in every format that one file can have."""

from __future__ import annotations

import inspect
import json
import os
from pathlib import Path

import h5py
import numpy
import pytest
import tifffile
import tilewise
from conftest import InProcess, Tilewise, one_message
from PIL import Image
from tilewise.files.formats import FORMATS

WITHOUT_CHILD = EVERY_CASE = True
NUMBERS = numpy.arange(1.0, 31.0).reshape(6, 5)


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Path:
    command: Tilewise = request.getfixturevalue("tilewise")
    return command.folder


def made(inside: InProcess, folder: Path, ending: str) -> str:
    """A file of that format without a name that says so; what `--from` is told."""
    if ending == ".npy":
        numpy.save(folder / "A.npy", NUMBERS)
    elif ending in (".jpg", ".jpeg"):
        Image.new("L", (5, 6), 7).save(folder / f"A{ending}")
    elif ending in (".tif", ".tiff"):
        tifffile.imwrite(folder / f"A{ending}", NUMBERS)
    else:
        numpy.save(folder / "given.npy", NUMBERS)
        words = ["--dtype", "uint8"] if ending in (".pgm", ".ppm", ".pnm", ".png") else []
        kind = ".pgm" if ending in (".ppm", ".pnm") else ending
        ended = inside("convert", "given.npy", "-o", f"A{kind}", *words)
        assert ended.returncode == 0, ended.stderr
        ending = kind
    (folder / f"A{ending}").rename(folder / "matrix.data")
    return f"{ending[1:]}:6x5:float64" if ending == ".raw" else ending[1:]


@pytest.mark.parametrize("ending", [each for each in FORMATS if each not in (".tiles", ".zarr")])
def test_every_format(inside: InProcess, folder: Path, ending: str) -> None:
    kind = made(inside, folder, ending)
    wanted = numpy.full((6, 5), 7.0) if "jp" in ending else NUMBERS
    facts = json.loads(inside("info", "matrix.data", "--from", kind, "--json", "-").stdout)
    assert facts["shape"] == [6, 5] and facts["path"].endswith("matrix.data")
    for ranks in (1, 2):
        words = ("transpose", "matrix.data", "-o", "B.npy", "--from", kind, "-n", ranks, "--force")
        ended = inside(*words)
        assert ended.returncode == 0, ended.stderr
        assert numpy.array_equal(numpy.load(folder / "B.npy"), wanted.T)
    shown = inside("show", "matrix.data", "1:3", "--from", kind)
    assert numpy.array_equal(numpy.loadtxt(shown.stdout.splitlines()), wanted[1:3])


def test_members_slices_and_several_inputs(inside: InProcess, folder: Path) -> None:
    with h5py.File(folder / "results.2026", "w") as book:
        book["a"], book["b"] = NUMBERS, NUMBERS.T
    (folder / "table").write_text("id,x,y\np,1,2\nq,3,4\n")
    (folder / "wrong.npy").write_text("1 2\n3 4\n")
    for words, wanted in (
        (("multiply", "results.2026:/a", "results.2026:/b", "--from", "h5"), NUMBERS @ NUMBERS.T),
        (("convert", "results.2026:/a[1:3, 2:]", "--from", "h5"), NUMBERS[1:3, 2:]),
        (("convert", "table:x,y", "--from", "csv"), [[1, 2], [3, 4]]),
        (("convert", "wrong.npy", "--from", "txt"), [[1, 2], [3, 4]]),
        (("multiply", "table:x,y", "random:2x2:float64", "--from", "csv"), None),
    ):
        ended = inside(*words, "-o", "C.npy", "--force", "--verify", "fast")
        assert ended.returncode == 0, ended.stderr
        if wanted is not None:
            assert numpy.allclose(numpy.load(folder / "C.npy"), wanted)


def test_a_name_that_is_known_keeps_its_format_beside_one_that_is_not(
    inside: InProcess, folder: Path
) -> None:
    numpy.save(folder / "A.npy", NUMBERS)
    (folder / "B.dat").write_text("\n".join(" ".join(map(str, row)) for row in NUMBERS.T))
    ended = inside("multiply", "A.npy", "B.dat", "-o", "C.npy", "--from", "txt")
    assert ended.returncode == 0, ended.stderr
    assert numpy.allclose(numpy.load(folder / "C.npy"), NUMBERS @ NUMBERS.T)
    assert "B.dat" in os.listdir(folder)


def test_the_advice_names_the_flag(inside: InProcess, folder: Path) -> None:
    (folder / "matrix.dat").write_text("1 2\n")
    for words in (("convert", "matrix.dat", "-o", "B.npy"), ("info", "matrix.dat"), ("show", "matrix.dat")):
        assert "--from" in one_message(inside(*words), 2)
    said = one_message(inside("info", "matrix.dat", "--from", "cvs"), 2)
    assert "--from 'cvs' is unknown" in said and "try: --from csv" in said
    assert "gone.dat does not exist" in one_message(inside("info", "gone.dat", "--from", "csv"), 2)


def test_from_python(folder: Path) -> None:
    (folder / "A.dat").write_text("1 2\n3 4\n")
    assert numpy.array_equal(tilewise.transpose(str(folder / "A.dat"), from_="txt"), [[1, 3], [2, 4]])
    assert "from_" in str(inspect.signature(tilewise.transpose))
    with pytest.raises(tilewise.UsageError, match="no option 'from_'"):
        tilewise.generate("random", shape=(2, 2), from_="txt")
