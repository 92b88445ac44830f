"""`info` and `show` on every kind of file: in place, as text, in tiles, and decoded."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import safetensors.numpy
import tifffile
from conftest import InProcess, one_message
from format_files import check_target
from PIL import Image
from scipy.io import netcdf_file, savemat
from tilewise.files.output import create

NUMBERS = numpy.arange(1.0, 61.0).reshape(12, 5)
TILES = [((0, 7), (0, 2)), ((0, 4), (2, 5)), ((4, 12), (2, 5)), ((7, 12), (0, 2))]


def fill(folder: Path) -> None:
    numpy.savetxt(folder / "a.txt", NUMBERS)
    numpy.savetxt(folder / "a.csv", NUMBERS, delimiter=",", header="a comment")
    numpy.savez(folder / "a.npz", a=NUMBERS)
    numpy.savez_compressed(folder / "b.npz", a=numpy.asfortranarray(NUMBERS))
    (folder / "a.raw").write_bytes(NUMBERS.astype(">f8").tobytes())
    (folder / "a.mtx").write_text(
        "%%MatrixMarket matrix array real general\n12 5\n" + "\n".join(map(str, NUMBERS.T.ravel()))
    )
    with h5py.File(folder / "a.h5", "w") as book:
        book["plain"] = NUMBERS
        book.create_dataset("packed", data=NUMBERS, chunks=(5, 2), compression="gzip")
    Image.fromarray(NUMBERS.astype("uint8")).save(folder / "a.png")
    output = create(
        check_target(str(folder / "a.tiles"), False), (12, 5), "float64", "C", "id", rectangles=TILES
    )
    for tile in output.region.tiles:
        with open(tile.path, "r+b") as file:
            file.seek(tile.offset)
            file.write(NUMBERS[slice(*tile.rows), slice(*tile.columns)].tobytes())
    output.commit()


NAMES = {
    "a.txt": "text between blanks",
    "a.csv": "text between ','",
    "a.npz": "little endian",
    "b.npz": "decoded",
    "a.raw:12x5:>float64": "big endian",
    "a.mtx": "F: column by column",
    "a.h5:/plain": "contiguous",
    "a.h5:/packed": "chunks of 5×2, packed by gzip",
    "a.png": "uint8, decoded",
    "a.tiles": "4 tiles",
}


@pytest.mark.parametrize("name", NAMES)
def test_info_says_what_a_file_is(here: InProcess, name: str) -> None:
    fill(Path.cwd())
    said = here("info", name).stdout
    assert NAMES[name] in said and "12×5" in said
    facts: dict[str, Any] = json.loads(here("info", name, "--stats", "--json", "-").stdout)
    found = facts["statistics"]
    assert (found["min"], found["max"], found["non_finite"]) == (1, 60, 0)
    assert found["mean"] == pytest.approx(30.5)
    assert facts["shape"] == [12, 5] and facts["format"] == name.split(":", maxsplit=1)[0].rsplit(".", 1)[1]
    assert facts["encoding"] in ("binary", "text", "encoded", "chunks")
    assert facts["tiles"] == (4 if name == "a.tiles" else None)
    assert facts["member"] == {"a": "a", "b": "a"}.get(name.removesuffix(".npz"), facts["member"])


def several(folder: Path) -> dict[str, dict[str, tuple[Any, ...]]]:
    """Makes files with several arrays; returns shape, what each holds, and whether it is a matrix."""
    floats = numpy.zeros((3, 4), "float32")
    with h5py.File(folder / "s.h5", "w") as book:
        book["run/x"], book["y"], book["line"], book["cube"] = floats, NUMBERS, floats[0], floats[None]
        book["words"], book["table"] = ["a", "b"], numpy.zeros(3, [("x", "f8")])
        book["empty"] = h5py.Empty("f8")
    numpy.savez(folder / "s.npz", a=floats, b=NUMBERS, c=numpy.array(["x"]))
    safetensors.numpy.save_file({"a": floats, "b": NUMBERS[0]}, folder / "s.safetensors")
    tifffile.imwrite(folder / "s.tif", numpy.zeros((2, 8, 9), "uint16"), photometric="minisblack")
    with netcdf_file(folder / "s.nc", "w") as book:
        book.createDimension("rows", 12)
        book.createDimension("columns", 5)
        book.createVariable("rows", "f8", ("rows",))[:] = 0
        book.createVariable("a", "f8", ("rows", "columns"))[:] = NUMBERS
    savemat(folder / "s.mat", {"a": floats, "b": NUMBERS, "c": "text"})
    return {
        "s.mat": {
            "a": ([3, 4], "float32", True),
            "b": ([12, 5], "float64", True),
            "c": ([1, 4], "char", False),
        },
        "s.h5": {
            "/cube": ([1, 3, 4], "float32", False),
            "/empty": ([], "nothing", False),
            "/line": ([4], "float32", False),
            "/run/x": ([3, 4], "float32", True),
            "/table": ([3], "records", False),
            "/words": ([2], "strings", False),
            "/y": ([12, 5], "float64", True),
        },
        "s.npz": {
            "a": ([3, 4], "float32", True),
            "b": ([12, 5], "float64", True),
            "c": ([1], "strings", False),
        },
        "s.safetensors": {"a": ([3, 4], "float32", True), "b": ([5], "float64", False)},
        "s.tif": {"0": ([8, 9], "uint16", True), "1": ([8, 9], "uint16", True)},
        "s.nc": {"rows": ([12], "float64", False), "a": ([12, 5], "float64", True)},
    }


def test_info_lists_what_a_file_holds(here: InProcess) -> None:
    """With the facts of the one matrix that a job would take, if there is only one."""
    for name, members in several(Path.cwd()).items():
        facts = json.loads(here("info", name, "--json", "-").stdout)
        listed = {each["member"]: (each["shape"], each["dtype"], each["matrix"]) for each in facts["members"]}
        assert listed == members
        matrices = [member for member, (_, _, matrix) in members.items() if matrix]
        assert facts["member"] == (matrices[0] if len(matrices) == 1 else None)
        assert facts.get("shape") == (members[matrices[0]][0] if len(matrices) == 1 else None)
        shown = here("info", name).stdout
        for member, (shape, dtype, _) in members.items():
            assert re.search(rf"^{member} +{'×'.join(map(str, shape)) or '–'} +{dtype} ", shown, re.MULTILINE)
        if len(matrices) > 1:
            assert "was expected" in one_message(here("info", name, "--stats"), 2)
        for member in matrices:
            assert "members" not in json.loads(here("info", f"{name}:{member}", "--json", "-").stdout)


@pytest.mark.parametrize("name", ["k.npy", "f.npy", "k.h5", "k.h5:/k"])
def test_info_of_an_array_with_more_dimensions(here: InProcess, name: str) -> None:
    array = numpy.arange(120.0).reshape(2, 3, 4, 5)
    numpy.save("k.npy", array)
    numpy.save("f.npy", numpy.asfortranarray(array))
    with h5py.File("k.h5", "w") as book:
        book.create_dataset("k", data=array)
    facts = json.loads(here("info", name, "--json", "-").stdout)
    assert (facts["shape"], facts["bytes"], facts["dtype"]) == ([2, 3, 4, 5], array.nbytes, "float64")
    assert facts["notes"][0] == f"a job takes a slice, such as {name}[0,0], or all with --each 0,1"
    assert "2×3×4×5\n" in here("info", name).stdout
    assert f"{name}[0,0]" in one_message(here("info", name, "--stats"), 2)
    assert json.loads(here("info", f"{name}[1]", "--json", "-").stdout)["shape"] == [3, 4, 5]


def test_a_working_folder_that_is_gone(here: InProcess, tmp_path: Path) -> None:
    """What needs it says so; paths from the root need none."""
    fill(Path.cwd())
    whole = str(Path("a.npz").absolute())
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert "12×5" in here("info", whole).stdout
    message = one_message(here("info", "a.npz"), 2)
    assert "the working folder has been removed\n  try: cd to a folder that exists" in message


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("a,b", "a, b"),
        ('"x, 1","y"', "x, 1, y"),
        ("_x,3", ""),
        ("1,b", ""),
        ("a,b,c", ""),
        ("a", ""),
    ],
)
def test_column_names_are_left_out_where_they_are_certain(here: InProcess, line: str, names: str) -> None:
    """Every field of the first line is a name, and every field of the next a number."""
    Path("a.csv").write_text(f"{line}\n1,2\n")
    result = here("info", "a.csv")
    if names:
        assert f"its first line is read as column names: {names}; --header-rows 1 confirms" in result.stdout
        assert "1×2" in result.stdout
    else:
        assert "--header-rows 1" in one_message(result, 2)
        assert "1×2" in here("info", "a.csv", "--header-rows", 1).stdout


@pytest.mark.parametrize("name", NAMES)
def test_show_prints_numbers_of_every_format(here: InProcess, name: str) -> None:
    fill(Path.cwd())
    printed = [
        [float(word) for word in line.split()]
        for line in here("show", name, "::-3", "1:4").stdout.splitlines()
    ]
    assert numpy.array_equal(printed, NUMBERS[::-3, 1:4])
    corners = here("show", name).stdout.split()
    assert len(corners) == 7 * 5 and corners[0] == "1" and corners[-1] == "60" and corners.count("…") == 5
    assert "no row 12" in one_message(here("show", name, "12"), 2)


def test_what_info_warns_of_is_warned_of_by_others(here: InProcess) -> None:
    """On standard error, where standard output holds numbers or JSON."""
    with h5py.File("a.h5", "w") as book:
        book["x"] = NUMBERS
        book["x"].attrs["scale_factor"] = 0.5
    said = "tilewise: warning: a.h5:/x: the attribute scale_factor is not applied\n"
    assert "the attribute scale_factor is not applied" in here("info", "a.h5:/x").stdout
    for words in (("show", "a.h5:/x"), ("show", "a.h5:/x", "0:2"), ("info", "a.h5:/x", "--json", "-")):
        assert here(*words).stderr == said
    assert said in here("plan", "transpose", "a.h5:/x", "-o", "new.npy", "--json", "-").stderr


def test_complex_text_and_what_cannot_be_read(here: InProcess) -> None:
    folder = Path.cwd()
    numbers = NUMBERS[:2] + 1j
    numpy.savetxt(folder / "a.txt", numbers)
    facts = json.loads(here("info", "a.txt", "--stats", "--json", "-").stdout)
    assert facts["dtype"] == "complex128" and facts["statistics"]["mean"] == [5.5, 1.0]
    (folder / "b.txt").write_text("1 2\n3 x\n")
    assert "is not a number" in one_message(here("info", "b.txt", "--stats"), 2)
    assert "12×5" not in here("info", "b.txt").stdout
    (folder / "c.png").write_bytes(b"nonsense")
    assert "c.png" in one_message(here("show", "c.png"), 2)


def test_nothing_is_left_in_the_temporary_folder(
    here: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(Path.cwd())
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    for name in ("a.txt", "b.npz", "a.h5:/packed"):
        assert here("show", name, "0").returncode == 0 and here("info", name, "--stats").returncode == 0
    assert not list((tmp_path / "temporary").iterdir())
