"""`convert --rows --columns --scale`: every format, strategy, type and order, against numpy."""

from __future__ import annotations

import itertools
import random
from typing import Any

import h5py
import numpy
import pytest
import tilewise as api
from conftest import Done, Tilewise, one_message
from PIL import Image
from tilewise.files.slices import rows_needed
from tilewise.planning.names import ONE_FILE

JOB = ("convert",)
# What each range means is what Python says; `7` is the row alone.
RANGES = ("5:19", ":8", "11:", "-9:", "-12:-3", ":-4", "7", "-1", " 3 : 4 ")


def picked(text: str, extent: int) -> slice:
    numbers = [int(word) if word.strip() else None for word in text.split(":")]
    if len(numbers) == 1:
        (index,) = range(extent)[numbers[0] :][:1]
        return slice(index, index + 1)
    return slice(*numbers)


def cut(matrix: Any, rows: str, columns: str) -> Any:
    return matrix[picked(rows, matrix.shape[0]), picked(columns, matrix.shape[1])]


def stored(folder: Any, kind: str, matrix: Any) -> str:
    """The matrix in a file that another library wrote where there is one, and the name of it."""
    name = f"A.{kind}"
    if kind == "npy":
        numpy.save(folder / name, matrix)
    elif kind == "F":
        numpy.save(folder / "A.npy", numpy.asfortranarray(matrix))
        return "A.npy"
    elif kind == "big":
        numpy.save(folder / "A.npy", matrix.astype(">f8"))
        return "A.npy"
    elif kind == "half":
        numpy.save(folder / "A.npy", matrix.astype("f2"))
        return "A.npy"
    elif kind == "csv":
        numpy.savetxt(folder / name, matrix, delimiter=",", header="made elsewhere")
    elif kind == "chunked":
        with h5py.File(folder / "A.h5", "w") as book:
            book.create_dataset("x", data=matrix, chunks=(4, 5), compression="gzip")
        return "A.h5:/x"
    elif kind == "png":
        Image.fromarray(matrix.astype("u1")).save(folder / name)
    elif kind == "slice":
        numpy.save(folder / "A.npy", numpy.stack([-matrix, matrix], 1))
        return "A.npy[:,1]"
    elif kind == "raw":
        (folder / name).write_bytes(bytes(24) + matrix.tobytes())
        return f"{name}:{matrix.shape[0]}x{matrix.shape[1]}:float64:24"
    else:
        numpy.save(folder / "whole.npy", matrix)
        how: dict[str, Any] = {"ranks": 4, "grid": (2, 2)} if kind == "tiles" else {}
        api.run("convert", folder / "whole.npy", folder / name, **how)
    return name


KINDS = (
    "npy",
    "F",
    "big",
    "half",
    "csv",
    "chunked",
    "png",
    "slice",
    "raw",
    "tiles",
    "mtx",
    "petsc",
    "nc",
    "tif",
)


@pytest.mark.parametrize(("kind", "ranks"), list(zip(KINDS, itertools.cycle((1, 2, 3)))))
def test_every_input(tilewise: Tilewise, done: Done, kind: str, ranks: int) -> None:
    """Cut and scaled from each format; the cut and the order of the output are drawn."""
    draw = random.Random(kind)
    matrix = numpy.random.default_rng(ranks).integers(0, 200, (29, 23)).astype(float)
    name = stored(tilewise.folder, kind, matrix)
    rows, columns = draw.choice(RANGES), draw.choice(RANGES)
    order = draw.choice("CF")
    how = ("-n", ranks, f"--rows={rows}", "--columns", columns, "--verify", "fast")
    record = done(name, "-o", "B.npy", *how, "--scale", "1/255", "--dtype", "f8", "--order", order)
    expected = cut(matrix, rows, columns)
    result = numpy.load(tilewise.folder / "B.npy")
    assert numpy.array_equal(result, expected * (1 / 255)) and result.shape == expected.shape
    # Of a text no more lines are counted than there is need for.
    top = rows_needed(rows) if name.endswith((".csv", ".tsv", ".txt")) else None
    assert record["inputs"][0]["shape"] == record["outputs"][0]["shape"] == list(expected.shape)
    ends = [list(picked(*each).indices(each[1])[:2]) for each in ((rows, top or 29), (columns, 23))]
    assert record["inputs"][0]["window"] == ends
    assert record["result"]["scale"] == 1 / 255 and record["verification"]["passed"]
    done(name, "-o", "B.csv", *how)
    assert numpy.array_equal(numpy.loadtxt(tilewise.folder / "B.csv", delimiter=",", ndmin=2), expected)


@pytest.mark.parametrize("io", ONE_FILE)
def test_every_strategy(tilewise: Tilewise, done: Done, io: str) -> None:
    """On a 2×2 grid, from row to column order and back: ranks read what lies in the cut and nothing else."""
    matrix = numpy.random.default_rng(3).random((211, 173))
    numpy.save(tilewise.folder / "A.npy", matrix)
    numpy.save(tilewise.folder / "F.npy", numpy.asfortranarray(matrix))
    expected = matrix[40:-11, 7:90]
    for name in ("A.npy", "F.npy"):
        how = ("-n", 4, "--grid", "2x2", "--io", io, "--rows", "40:-11", "--columns", "7:90", "--force")
        record = done(name, "-o", "B.npy", *how)
        assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), expected)
        assert record["bytes"]["useful"] == record["bytes"]["written"] == expected.nbytes
        done(name, "-o", "B.tiles", *how[:4], *how[6:], "--scale", "-2")
        done("B.tiles", "-o", "B.npy", "--force")
        assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), expected * -2)


def test_rows_at_the_top_of_a_text(tilewise: Tilewise, done: Done) -> None:
    """What stands below them is not even counted: it may be anything."""
    matrix = numpy.random.default_rng(5).random((60, 7))
    numpy.savetxt(tilewise.folder / "A.csv", matrix, "%.17g", ",", header="a", footer="end")
    with (tilewise.folder / "A.csv").open("a") as file:
        file.write("\n1,2\nno number\n")
    for rows, ranks in ((":60", 1), ("3:50", 2), ("59", 3)):
        done("A.csv", "-o", "B.npy", "--force", "-n", ranks, "--rows", rows)
        assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), cut(matrix, rows, ":"))


def test_many_bands(tilewise: Tilewise, done: Done) -> None:
    """A cut of several bands, under a cap; whole rows of it are read in one piece."""
    matrix = numpy.random.default_rng(4).random((3000, 1700)).astype("f4")
    numpy.save(tilewise.folder / "A.npy", matrix)
    words = ("-n", 2, "--memory", "256MiB", "--force", "--rows", "100:2900")
    record = done("A.npy", "-o", "B.npy", *words, "--scale", "3/7", "--order", "F")
    result = numpy.load(tilewise.folder / "B.npy")
    assert result.dtype == "f4" and numpy.array_equal(
        result, (matrix[100:2900] * numpy.float64(3 / 7)).astype("f4")
    )
    assert record["peak_rss_bytes"]["node_sum"] < 256 << 20
    record = done("A.npy", "-o", "B.npy", *words)
    assert record["bytes"]["read"] == 2800 * 1700 * 4
    assert numpy.array_equal(numpy.load(tilewise.folder / "B.npy"), matrix[100:2900])
    generated = done("random:500x400:float64:7", "-o", "C.npy", "--columns", "33:77")
    done("random:500x400:float64:7", "-o", "D.npy")
    assert numpy.array_equal(
        numpy.load(tilewise.folder / "C.npy"), numpy.load(tilewise.folder / "D.npy")[:, 33:77]
    )
    assert generated["inputs"][0]["window"] == [[0, 500], [33, 77]]


@pytest.mark.parametrize(
    ("source", "to"),
    [
        ("u1", None),
        ("i8", None),
        ("f2", None),
        (">f4", None),
        ("c8", None),
        ("c16", "c8"),
        ("u8", "f4"),
        ("f8", "u1"),
        ("i4", "i2"),
        ("u1", "f2"),
        ("f4", "i8"),
    ],
)
def test_scaled_as_numpy_scales(tilewise: Tilewise, done: Done, source: str, to: str | None) -> None:
    """In float64, or complex128, then rounded once to the type wanted; whole numbers become float64."""
    values = numpy.random.default_rng(5).integers(0, 200, (23, 9)) * (1 + 0.25j * ("c" in source))
    matrix = (values if "c" in source else values.real).astype(source)
    numpy.save(tilewise.folder / "A.npy", matrix)
    given = ["--dtype", to] if to else []
    record = done("A.npy", "-o", "B.npy", "-n", 2, "--scale", "0.37", *given)
    wide = matrix.astype("c16" if "c" in source else "f8") * 0.37
    into = to or ("f8" if matrix.dtype.kind in "iu" else matrix.dtype.newbyteorder("="))
    result = numpy.load(tilewise.folder / "B.npy")
    assert result.dtype == into and numpy.array_equal(result, wide.astype(into))
    assert any("truncates fractions" in each for each in record["warnings"]) == (result.dtype.kind in "iu")


def test_what_overflows_is_counted(tilewise: Tilewise, done: Done) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.array([[1e308, -1e308, 1, numpy.inf, numpy.nan]]))
    record = done("A.npy", "-o", "B.npy", "--scale", "10")
    assert record["result"]["changed_numbers"] == 2
    result = numpy.load(tilewise.folder / "B.npy")
    assert numpy.array_equal(result, [[numpy.inf, -numpy.inf, 10, numpy.inf, numpy.nan]], equal_nan=True)
    record = done("A.npy", "-o", "B.npy", "--scale", "10", "--dtype", "u1", "--force")
    assert record["result"]["changed_numbers"] == 4
    assert numpy.load(tilewise.folder / "B.npy").tolist() == [[255, 0, 10, 255, 0]]
    (tilewise.folder / "A.csv").write_text("0.5,1.5\n")
    done("A.csv", "-o", "B.npy", "--scale", "2", "--dtype", "i8", "--force")
    assert numpy.load(tilewise.folder / "B.npy").tolist() == [[1, 3]]


def test_from_python() -> None:
    a = numpy.arange(600, dtype="i4").reshape(20, 30)
    for rows, text in ((slice(5, 9), "5:9"), (slice(None, numpy.int64(-3)), ":-3"), (7, "7"), ("-2:", "-2:")):
        assert numpy.array_equal(api.convert(a, rows=rows, columns=slice(3)), cut(a, text, ":3"))
    scaled = api.convert(a, scale=1 / 3, dtype="float32")
    assert numpy.array_equal(scaled, (a * (1 / 3)).astype("f4"))
    with pytest.raises(api.UsageError, match="no steps"):
        api.convert(a, rows=slice(0, 9, 2))
    with pytest.raises(api.UsageError, match="whole numbers"):
        api.convert(a, rows=slice(0.5))
    assert "takes rows 5:6" in " ".join(api.plan("convert", a, rows=5).reasons)


def test_requests_that_make_no_sense(tilewise: Tilewise, done: Done) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.ones((20, 30), "u1"))
    numpy.save(tilewise.folder / "E.npy", numpy.ones((0, 30)))
    for words, said in (
        (("--rows", "20:30"), "--rows 20:30 takes no rows: A.npy has 20 rows"),
        (("--columns", "5:5"), "--columns 5:5 takes no columns"),
        (("--rows", "20"), "there is no row 20"),
        (("--rows", "0:9:2"), "steps are not taken"),
        (("--columns", "a:b"), "--columns expects FROM:TO"),
        (("--scale", "1/0"), "--scale expects a number"),
        (("--scale", "inf"), "--scale expects a number"),
    ):
        assert said in one_message(tilewise("convert", "A.npy", "-o", "B.npy", *words), 2), words
    message = one_message(tilewise("convert", "A.npy", "-o", "B.png", "--scale", "1/2"), 2)
    assert "cannot hold float64" in message
    assert tilewise.files() == {"A.npy", "E.npy"}
    record = done("A.npy", "-o", "B.npy", "--rows", "15:99")
    assert "A.npy: --rows 15:99 takes 5 rows, from 15 on: it has 20 rows" in record["warnings"]
    done("E.npy", "-o", "B.npy", "--columns", "3:5", "--force")
    assert numpy.load(tilewise.folder / "B.npy").shape == (0, 2)
