"""`A.npy[100:200, 0:50]` in every operation, format, strategy and order, against numpy."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import tilewise as api
from conftest import InProcess, one_message
from test_convert_cuts import KINDS, stored
from tilewise.planning.names import ONE_FILE

Run = Callable[..., Any]
MATRIX = numpy.random.default_rng(1).integers(0, 200, (29, 23)).astype(float)


@pytest.fixture
def run(inside: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a job whose result is a file, and loads that; of `norm`, what the record says."""
    monkeypatch.chdir(tmp_path)
    paths = (tmp_path / f"{number}.npy" for number in itertools.count())

    def result(command: str, *words: object) -> Any:
        out = next(paths)
        ended = inside(command, *words, *(() if command == "norm" else ("-o", out)), "-q", "--json", "-")
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)["result"] if command == "norm" else numpy.load(out)

    return result


def save(folder: Path, name: str, matrix: Any) -> None:
    numpy.save(folder / f"{name}.npy", matrix)
    numpy.save(folder / f"{name}F.npy", numpy.asfortranarray(matrix))


@pytest.mark.parametrize(("kind", "ranks"), list(zip(KINDS, itertools.cycle((1, 3)))))
def test_every_format(run: Run, inside: InProcess, tmp_path: Path, kind: str, ranks: int) -> None:
    name, whole = stored(tmp_path, kind, MATRIX), MATRIX.astype("f2" if kind == "half" else "f8")
    first = "1," if name.endswith("[:,1]") else ""
    name = name.removesuffix("[:,1]")
    for rows, columns, part in (
        ("5:19", "3:", whole[5:19, 3:]),
        (":", " 4:-9", whole[:, 4:-9]),
        ("-9:", ":", whole[-9:]),
    ):
        cut = f"{name}[{rows},{first}{columns}]"
        assert numpy.array_equal(run("transpose", cut, "-n", ranks), part.T)
        wanted = part.astype("f8")
        product = run("multiply", cut, cut, "--transpose-b", "-n", ranks)
        assert numpy.allclose(product, wanted @ wanted.T, rtol=2e-3 if kind == "half" else 1e-12)
        norm = run("norm", cut, "-n", ranks)["frobenius"]
        assert norm == pytest.approx(numpy.linalg.norm(wanted), rel=1e-6)
        shown = inside("show", cut, ":").stdout.splitlines()
        assert numpy.array_equal([[float(word) for word in line.split()] for line in shown], part)
        facts = json.loads(inside("info", cut, "--stats", "--json", "-").stdout)
        assert facts["shape"] == list(part.shape) and facts["statistics"]["max"] == part.max()
        assert facts["statistics"]["mean"] == pytest.approx(wanted.mean())


@pytest.mark.parametrize("io", ONE_FILE)
def test_every_strategy(run: Run, tmp_path: Path, io: str) -> None:
    a, b = numpy.random.default_rng(3).random((2, 211, 173))
    save(tmp_path, "A", a)
    save(tmp_path, "B", b * (1 + 2j))
    expected = a[40:150, 7:90] @ b[100:183, 3:61] * (1 + 2j)
    for ranks, left, right in ((1, "A", "BF"), (3, "AF", "B"), (4, "A", "B")):
        words = f"{left}.npy[40:150,7:90]", f"{right}.npy[100:183, 3:61]", "-n", ranks, "--io", io
        assert numpy.allclose(run("multiply", *words), expected)
        for part, text in ((a[40:150, 7:90], "40:150,7:90"), (a[40:150], "40:150"), (a[:, 7:90], ":,7:90")):
            assert numpy.array_equal(run("transpose", f"{left}.npy[{text}]", *words[2:]), part.T)


@pytest.mark.parametrize("ranks", [1, 3])
def test_every_operation(run: Run, tmp_path: Path, ranks: int) -> None:
    save(tmp_path, "A", MATRIX)
    for name in ("A.npy", "AF.npy"):
        for cut, part in (
            (f"{name}[2:25,3:20]", MATRIX[2:25, 3:20]),
            (f"{name}[2:25]", MATRIX[2:25]),
            (f"{name}[:,3:9]", MATRIX[:, 3:9]),
        ):
            how = ("-n", ranks, "--verify", "fast")
            assert numpy.array_equal(run("convert", cut, *how, "--order", "F"), part)
            inner = run("stencil", cut, "--steps", 1, "--weights", "box3", "--boundary", "fixed", *how)
            assert numpy.array_equal(inner[0], part[0]) and inner.shape == part.shape
            s = numpy.linalg.svd(part, compute_uv=False)
            for more in ((), ("--components", 3)):
                values = api.svd(cut, values_only=True, ranks=ranks, components=3 if more else None)
                assert numpy.allclose(numpy.ravel(values), s[: 3 if more else None], rtol=1e-4)
    cut = "AF.npy[2:25,3:20]"  # a product with its own transpose is half a product
    assert numpy.allclose(
        run("multiply", cut, cut, "--transpose-a", "-n", ranks), MATRIX[2:25, 3:20].T @ MATRIX[2:25, 3:20]
    )
    cube = numpy.random.default_rng(5).random((4, 30, 20))
    numpy.save(tmp_path / "C.npy", cube)
    for text, part in (("[:,3:20,2:9]", cube[:, 3:20, 2:9]), ("[:,3:20]", cube[:, 3:20])):
        each = run("transpose", f"C.npy{text}", "--each", 0, "-n", ranks)
        assert numpy.array_equal(each, part.transpose(0, 2, 1))
    each = run("transpose", "C.npy[1:3,:,2:9]", "--each", 1, "-n", ranks)
    assert numpy.array_equal(each, cube[1:3, :, 2:9].transpose(2, 1, 0))
    whole = run("convert", "random:50x40:float64:7")
    made = run("multiply", "random:50x40:float64:7[3:9,2:5]", "random:50x40:float64:7[30:33]", "-n", ranks)
    assert numpy.allclose(made, whole[3:9, 2:5] @ whole[30:33])


def test_what_is_said(inside: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    numpy.save("A.npy", MATRIX)
    numpy.savetxt("A.csv", MATRIX, delimiter=",")
    with h5py.File("A.h5", "w") as book:
        book.create_dataset("list", data=MATRIX[0])
    record = json.loads(
        inside("convert", "A.npy[3:99,2:4]", "-o", "B.npy", "--rows", "1:5", "--json", "-").stdout
    )
    assert record["inputs"][0]["shape"] == [4, 2]
    assert record["inputs"][0]["window"] == [[4, 8], [2, 4]]
    assert "A.npy[3:99,2:4]: [3:99,2:4] takes 26 rows, from 3 on: it has 29 rows" in record["warnings"][0]
    assert numpy.array_equal(numpy.load("B.npy"), MATRIX[4:8, 2:4])
    assert numpy.array_equal(api.convert("A.h5:/list[3:9]", as_="row"), MATRIX[:1, 3:9])
    assert "takes rows 3:9 and columns 0:2" in inside("plan", "norm", "A.csv[3:9,:2]").stdout
    for name, said in (
        ("A.npy[40:50]", "[40:50] takes no rows: A.npy has 29 rows"),
        ("A.csv[:,5:5]", "takes no columns"),
        ("A.npy[0:9:2]", "no slice that is read; write a number, FROM:TO or :"),
        ("A.csv[3]", "names a slice by its number, but a matrix has rows FROM:TO"),
        ("A.npy[1:2,3:4,5:6]", "more than the array's 2 dimensions"),
        ("random:50x40[60:]", "takes no rows"),
    ):
        assert said in one_message(inside("norm", name), 2), name
