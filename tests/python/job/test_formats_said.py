"""What the front says of files: facts as notes, warnings where the user should act, names to read them by."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import scipy.io
from conftest import InProcess, Tilewise, one_message
from format_files import check_target
from PIL import Image
from tilewise import files
from tilewise.base.errors import TilewiseError, UsageError
from tilewise.files.output import create
from tilewise.files.reading import binary, rows_of

WITHOUT_CHILD = True
SQUARE = numpy.arange(1.0, 10.0).reshape(3, 3)


def done(tilewise: Tilewise, *words: object) -> tuple[dict[str, Any], str]:
    """The record of a job that ended well, and what it said on stderr."""
    result = tilewise(*words, "--json", "run.json")
    assert result.returncode == 0, result.stderr
    record: dict[str, Any] = json.loads((tilewise.folder / "run.json").read_text())
    return record, result.stderr


def test_what_is_normal_for_a_format_is_no_warning(tilewise: Tilewise) -> None:
    folder = tilewise.folder
    Image.fromarray(SQUARE.astype("uint8")).save(folder / "a.png")
    Image.fromarray(SQUARE.astype("uint8")).save(folder / "a.jpg")
    numpy.savez_compressed(folder / "a.npz", a=SQUARE)
    (folder / "a.pgm").write_text("P2 2 1 255\n1 2\n")
    (folder / "a.mtx").write_text("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n")
    (folder / "a.txt").write_text("1 3\n4 5 6\n")
    with h5py.File(folder / "a.h5", "w") as book:
        book.create_dataset("x", data=SQUARE, chunks=(2, 2), compression="gzip")
    for name, said in (
        ("a.png", "PNG image is compressed"),
        ("a.jpg", "JPEG image is compressed"),
        ("a.npz", "a is compressed"),
        ("a.pgm", "stored as text"),
        ("a.mtx", "stored as symmetric"),
        ("a.txt", "read as the shape, 1×3"),
        ("a.h5", "in chunks of 2×2"),
    ):
        record, stderr = done(tilewise, "convert", name, "-o", "b.npy", "--force")
        assert record["warnings"] == [] and "warning" not in stderr, name
        assert any(reason.startswith(f"{name}: ") and said in reason for reason in record["reasons"]), name
        lines = tilewise("info", name).stdout.splitlines()
        assert any(line.startswith("note ") and said in line for line in lines), name
        planned = " ".join(tilewise("plan", "convert", name, "-o", "c.npy").stdout.split())
        assert f"because {name}: " in planned and "warning" not in planned, name


def test_what_is_dropped_or_doubtful_is_a_warning(tilewise: Tilewise) -> None:
    folder = tilewise.folder
    Image.fromarray(numpy.zeros((4, 5, 4), "uint8")).save(folder / "a.png")
    (folder / "a.txt").write_text("3 2\n1 2\n3 4\n5 6\n")
    Image.new("1", (3, 2)).save(folder / "b.png")
    (folder / "a.pgm").write_text("P2 2 1 9\n1 2\n")
    for name, said in (
        ("a.png", "grey value"),
        ("a.png", "transparency is ignored"),
        ("a.txt", "could also declare"),
        ("b.png", "numbers go up to 1 and"),
        ("a.pgm", "numbers go up to 9"),
    ):
        record, stderr = done(tilewise, "convert", name, "-o", "b.npy", "--force")
        assert any(warning.startswith(f"{name}: ") and said in warning for warning in record["warnings"])
        assert f"tilewise: warning: {name}: " in stderr and stderr.count(said) == 1
        lines = tilewise("info", name).stdout.splitlines()
        assert any(line.startswith("warning ") and said in line for line in lines)
        assert said in " ".join(tilewise("plan", "convert", name, "-o", "c.npy").stdout.split())
    facts = json.loads(tilewise("info", "a.png", "--json", "-").stdout)
    assert len(facts["warnings"]) == 2 and len(facts["notes"]) == 1
    record, stderr = done(tilewise, "convert", "b.png", "-o", "b.jpg")
    assert (
        any("only approximately" in warning for warning in record["warnings"])
        and stderr.count("only approximately") == 1
    )
    planned = " ".join(tilewise("plan", "convert", "b.png", "-o", "c.jpg").stdout.split())
    assert "only approximately" in planned


@pytest.mark.parametrize("kind", ["classic", "netcdf 4", "h5"])
def test_attributes_that_are_not_applied_are_named(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("a.h5" if kind == "h5" else "a.nc")
    attributes = {
        "x": {"scale_factor": 0.1, "add_offset": 2.0},
        "y": {"_FillValue": -1.0},
        "z": {"units": "m"},
        "w": {"_FillValue": numpy.nan, "missing_value": numpy.nan},  # a hole is a hole, applied or not
        "unsigned": {"_Unsigned": "true"},
        "range": {"valid_range": [0.0, 9.0], "missing_value": -1.0},
        "limits": {"valid_min": 0.0, "valid_max": 9.0},
    }
    if kind == "classic":
        with scipy.io.netcdf_file(path, "w") as book:
            book.createDimension("n", 3)
            for name, given in attributes.items():
                variable = book.createVariable(name, "f8", ("n", "n"))
                variable[:] = SQUARE
                for key, value in given.items():
                    setattr(variable, key, value)
    else:
        with h5py.File(path, "w") as book:
            for name, given in attributes.items():
                book[name] = SQUARE
                book[name].attrs.update(given)
    said = {name: files.inspect(f"{path}:{name}").warnings for name in attributes}
    assert said["x"] == ("the attributes scale_factor and add_offset are not applied",)
    assert said["y"] == ("the attribute _FillValue is not applied",)
    assert said["z"] == said["w"] == ()
    assert said["unsigned"] == ("the attribute _Unsigned is not applied",)
    assert said["range"] == ("the attributes valid_range and missing_value are not applied",)
    assert said["limits"] == ("the attributes valid_min and valid_max are not applied",)


@pytest.mark.parametrize("kind", ["classic", "netcdf 4"])
def test_netcdf_of_several_variables(tilewise: Tilewise, kind: str) -> None:
    """No auxiliary variable is read for the one that is meant; fill values are no numbers."""
    path, one = tilewise.folder / "several.nc", tilewise.folder / "one.nc"
    extents = {"time": 4, "lat": 3, "bnds": 2}
    parts = {"t": ("time", "lat", "lat"), "time": ("time",), "time_bnds": ("time", "bnds")}
    packed = numpy.array([[1, 2, -99], [7, -99, -32767], [3, 4, 5]], "i2")
    if kind == "classic":
        with scipy.io.netcdf_file(path, "w") as book, scipy.io.netcdf_file(one, "w") as other:
            for name, extent in extents.items():
                book.createDimension(name, extent)
                other.createDimension(name, extent)
            for name, axes in parts.items():
                book.createVariable(name, "f8", axes)[:] = numpy.ones([extents[axis] for axis in axes])
            other.createVariable("lat", "f8", ("lat",))[:] = 1
            other.createVariable("p", "i2", ("lat", "lat"))[:] = packed
            other.variables["p"].scale_factor, other.variables["p"].missing_value = 0.5, numpy.int16(-99)
    else:
        with h5py.File(path, "w") as book, h5py.File(one, "w") as other:
            for name, axes in parts.items():
                book[name] = numpy.ones([extents[axis] for axis in axes])
            book["time"].make_scale()
            other["lat"], other["p"] = numpy.ones(3), packed
            other["lat"].make_scale()
            other["p"].attrs.update({"scale_factor": 0.5, "missing_value": numpy.int16(-99)})
            other["p"].attrs["_FillValue"] = numpy.int16(-32767)
    message = one_message(tilewise("norm", "several.nc"), 2)
    assert "but one was expected: " in message and "t, " in message and "time_bnds" in message
    assert "time_bnds" in tilewise("info", "several.nc").stdout
    record, said = done(tilewise, "norm", "one.nc")
    assert record["inputs"][0]["shape"] == [3, 3] and "scale_factor" in said
    facts = json.loads(tilewise("info", "one.nc[:, :]", "--stats", "--json", "-").stdout)["statistics"]
    assert facts == {"min": 1, "max": 7, "mean": 22 / 6, "non_finite": 0, "fill_values": 3}
    noun = "variable" if kind == "classic" else "dataset"
    for name in ("several.nc:/z", "several.nc:/z[0:2]"):
        message = one_message(tilewise("show", name), 2)
        assert f"several.nc has no {noun} " in message and f"its {noun}s are" in message


def test_fortran_exponents(tilewise: Tilewise) -> None:
    folder = tilewise.folder
    (folder / "a.txt").write_text("1d3 -2.5D+00\n.5d-1 4.D0\n")
    (folder / "a.csv").write_text("1D3,2\n3,4d2\n")
    (folder / "c.txt").write_text("(1d1+2D0j) 3\n")
    (folder / "a.mtx").write_text("%%MatrixMarket matrix array real general\n1 1\n1d3\n")
    expected = [[1000.0, -2.5], [0.05, 4.0]]
    facts = json.loads(tilewise("info", "a.txt", "--stats", "--json", "-").stdout)
    assert facts["dtype"] == "float64" and facts["statistics"]["max"] == 1000
    shown = tilewise("show", "a.txt", ":").stdout.splitlines()
    assert [[float(word) for word in line.split()] for line in shown] == expected
    assert tilewise("show", "a.csv", "0").stdout == "1000.0 2.0\n"
    assert tilewise("show", "c.txt", "0").stdout == "(10+2j) (3+0j)\n"
    assert tilewise("show", "a.mtx", "0").stdout == "1000.0\n"
    done(tilewise, "multiply", "a.txt", "a.txt", "-o", "b.npy")
    assert numpy.allclose(numpy.load(folder / "b.npy"), numpy.matmul(expected, expected))
    for text in ("d3 1\n", "1d 1\n", "1d+ 1\n", "1d3d4 1\n", "1e3d4 1\n", "1d3.5 1\n", "0d1j3 1\n"):
        (folder / "b.txt").write_text(text)
        assert "b.txt" in one_message(tilewise("info", "b.txt"), 2), text
        (folder / "b.txt").write_text("1 1\n" + text)
        assert "b.txt" in one_message(tilewise("show", "b.txt", ":"), 2), text


def test_fractions_that_are_cut_off_are_said(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "a.npy", numpy.array([[1.5, -2.5]]))
    numpy.save(tilewise.folder / "i.npy", numpy.array([[1, 2]]))
    (tilewise.folder / "a.txt").write_text("1 2\n")
    said = "float→integer truncates fractions"
    record, stderr = done(tilewise, "convert", "a.npy", "-o", "b.npy", "--dtype", "int32")
    assert stderr.count(said) == 1 and sum(said in warning for warning in record["warnings"]) == 1
    assert "a.npy is float64" in stderr and numpy.load(tilewise.folder / "b.npy").tolist() == [[1, -2]]
    planned = " ".join(tilewise("plan", "convert", "a.npy", "-o", "c.npy", "--dtype", "int8").stdout.split())
    assert said in planned
    assert said in done(tilewise, "convert", "a.txt", "-o", "c.npy", "--dtype", "int16")[1]
    for name, dtype in (("a.npy", "float32"), ("i.npy", "int8"), ("a.txt", "int64"), ("i.npy", "float64")):
        record, stderr = done(tilewise, "convert", name, "-o", "b.npy", "--dtype", dtype, "--force")
        assert said not in stderr and record["warnings"] == []
    assert said not in done(tilewise, "convert", "a.npy", "-o", "b.npy", "--force")[1]


def test_raw_column_by_column_has_a_name_to_be_read_by(tilewise: Tilewise) -> None:
    folder = tilewise.folder
    matrix = numpy.arange(6, dtype="int16").reshape(2, 3)
    numpy.save(folder / "a.npy", matrix)
    _, stderr = done(tilewise, "convert", "a.npy", "-o", "f.raw", "--order", "F")
    assert "f.raw:2x3:int16:F" in stderr
    assert numpy.array_equal(numpy.fromfile(folder / "f.raw", "int16"), matrix.ravel(order="F"))
    assert json.loads(tilewise("info", "f.raw:2x3:int16:F", "--json", "-").stdout)["order"] == "F"
    assert tilewise("show", "f.raw:2x3:int16:F", "1").stdout == "3 4 5\n"
    done(tilewise, "convert", "f.raw:2x3:int16:F", "-o", "g.npy")
    assert numpy.array_equal(numpy.load(folder / "g.npy"), matrix)
    record, stderr = done(tilewise, "convert", "a.npy", "-o", "c.raw")
    assert ".raw:" not in stderr and record["warnings"] == []
    assert tilewise("show", "c.raw:2x3:int16:C", "1").stdout == "3 4 5\n"
    (folder / "h.raw").write_bytes(b"head" + matrix.astype(">i2").tobytes(order="F") + b"tail")
    assert tilewise("show", "h.raw:2x3:>int16:F:4", "1").stdout == "3 4 5\n"
    # As an output the name says the order too, and a name that says another one is refused.
    record, _ = done(tilewise, "convert", "a.npy", "-o", "n.raw:2x3:int16:F")
    assert record["outputs"][0]["order"] == "F"
    assert (folder / "n.raw").read_bytes() == (folder / "f.raw").read_bytes()
    said = one_message(tilewise("convert", "a.npy", "-o", "m.raw:2x3:int16:F", "--order", "C"), 2)
    assert "row by row" in said and not (folder / "m.raw").exists()
    for wrong in ("c.raw:2x3:int16:Q", "c.raw:2x3:int16:0:F", "c.raw:2x3:int16:F:0:0", "c.raw:2x3:int16:F:x"):
        assert "c.raw" in one_message(tilewise("info", wrong), 2)


def test_show_reads_no_more_lines_than_it_needs(here: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.txt").write_text("# c\n1 2 3\n\n4 5 6 # d\n7 8 9\n% e\nbroken\n")
    assert here("show", "a.txt", "0:3", "1").stdout == "2.0\n5.0\n8.0\n"
    assert here("show", "a.txt", "1").stdout == "4.0 5.0 6.0\n"
    assert here("show", "a.txt", "2:0:-1").stdout == "7.0 8.0 9.0\n4.0 5.0 6.0\n"
    assert here("show", "a.txt", "0:4").returncode == 2
    assert "there is no row 4: the matrix has 4 rows" in one_message(here("show", "a.txt", "4"), 2)
    Path("b.txt").write_text("2 3\n1 2 3\n4 5 6\n")
    assert (
        here("show", "b.txt", "1").stdout == "4.0 5.0 6.0\n" and here("show", "b.txt", "-1:").stdout[0] == "4"
    )
    assert "no row 2: the matrix has 2 rows" in one_message(here("show", "b.txt", "2"), 2)
    assert here("show", "b.txt", "0:0").stdout == "" == here("show", "b.txt", "2:9").stdout
    monkeypatch.setattr("tilewise.files.formats.text_lines.CHUNK", 1 << 12)
    monkeypatch.setattr("tilewise.files.formats.text_parsing._BLOCK", 1 << 12)
    # A hole of 8 GiB behind the lines: to count or parse it would take longer than a test may.
    with open("c.csv", "wb") as file:
        file.write(b"1.5,2\n" * 5000)
        file.truncate(8 << 30)
    assert here("show", "c.csv", "4000:4002").stdout == "1.5 2.0\n" * 2
    Path("c.csv").unlink()


def test_rows_at_the_top_of_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewise.files.formats.text_parsing._BLOCK", 100)
    numbers = numpy.random.default_rng(1).normal(size=(200, 3))
    numpy.savetxt(tmp_path / "a.txt", numbers, header="c", footer="d")
    for most in (1, 2, 3, 99, 200, 300):
        source = files.inspect(str(tmp_path / "a.txt"), most)
        assert source.rows == min(most, 200)
        with binary(source, most) as region:
            assert numpy.array_equal(list(rows_of(region, range(source.rows))), numbers[:most])


@pytest.mark.parametrize("name", ["C.npy", "C.png", "C.h5", "C.tiles", "C.txt"])
def test_a_folder_that_takes_no_files_is_not_called_full(tmp_path: Path, name: str) -> None:
    with pytest.raises(TilewiseError) as refused:
        create(check_target(f"/proc/{name}", False), (2, 2), "uint8", "C", "id")
    message = refused.value.message
    assert f"/proc/{name}" in message and "full" not in message and "size" not in message
    assert "No such file or directory" in message or "ermission" in message


def test_a_read_only_file_system_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = os.statvfs(tmp_path)
    monkeypatch.setattr("os.access", lambda *_: False)
    for flag, said in ((os.ST_RDONLY, "read-only file system"), (0, "no permission")):
        fields = [*found[:8], flag, found[9]]
        monkeypatch.setattr("os.statvfs", lambda _, fields=fields: os.statvfs_result(fields))
        with pytest.raises(UsageError, match=said):
            check_target(str(tmp_path / "C.npy"), False)


def test_flags_are_checked_before_the_output(here: InProcess) -> None:
    for words, said in (
        (("convert", "A.npy", "-o", "B.npy", "--dtype", "nonsense"), "--dtype 'nonsense'"),
        (("convert", "A.npy", "-o", "B.npy", "--order", "X"), "--order 'X'"),
        (("convert", "A.npy", "-o", "B.npy", "--algorithm", "summa"), "makes no sense with convert"),
        (
            ("convert", "A.npy", "-o", "B.npy", "--verify", "serial"),
            "--verify serial makes no sense with convert: it takes",
        ),
        (("convert", "A.npy", "-o", "B.npy", "-n", 0), "-n 0"),
        (("convert", "A.npy", "-o", "B.npy", "-n", 2, "--grid", "3x3"), "makes 9 ranks"),
        (("convert", "A.npy", "-o", "B.npy", "--memory", "1KiB"), "memory"),
        (("convert", "A.npy", "-o", "B.npy", "--io", "per_rank"), "folder of tiles"),
        (("multiply", "A.npy", "B.npy", "-o", "A.npy", "-n", 0), "-n 0"),
        (("multiply", "A.npy", "B.npy", "-o", "A.npy", "--algorithm", "nonsense"), "'nonsense'"),
        (("multiply", "A.npy", "B.npy", "-o", "A.npy", "--algorithm", "cannon", "--grid", "1x2"), "square"),
        (("multiply", "A.npy", "B.npy", "-o", "A.npy", "--io", "per_rank"), "folder of tiles"),
        (("multiply", "A.npy", "B.npy", "-o", "A.npy", "--json", "."), "--json . is a folder"),
        (("generate", "-o", "A.npy", "--shape", "2x2", "-t", 0), "-t 0"),
    ):
        message = one_message(here(*words), 2)
        assert said in message and "exists" not in message, (words, message)
    for words in (("convert", "A.npy", "-o", "B.npy"), ("multiply", "A.npy", "B.npy", "-o", "A.npy")):
        assert "exists already" in one_message(here(*words), 2)
        assert "exists already" in one_message(here("plan", *words), 2)
