"""Parquet and Arrow files, beside pyarrow."""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import InProcess, one_message
from format_files import SHAPES, loaded, matrix, written
from tilewise import files
from tilewise.base.errors import UsageError
from tilewise.files import contents
from tilewise.files.decoded import decoded
from tilewise.files.formats import parquet as ours
from tilewise.files.formats import table as tables

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
for part in ("feather", "parquet"):
    pytest.importorskip(f"pyarrow.{part}")

KINDS = ("p.parquet", "z.feather", "u.feather", "s.arrow", "m.arrow")


def write(name: Path, table: Any) -> None:
    """Packed in groups of rows, packed, not packed, a stream of several batches, several batches."""
    kind = name.name.rpartition("-")[2]
    if kind == "p.parquet":
        pyarrow.parquet.write_table(table, name, row_group_size=100)
    elif kind in ("z.feather", "u.feather"):
        pyarrow.feather.write_feather(table, name, compression="lz4" if kind[0] == "z" else "uncompressed")
    else:
        make = pyarrow.ipc.new_stream if kind == "s.arrow" else pyarrow.ipc.new_file
        with make(name, table.schema) as out:
            out.write_table(table, max_chunksize=100)


def table_of(numbers: Any) -> Any:
    return pyarrow.table({f"column {place}": column for place, column in enumerate(numbers.T)})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", tables.FORMAT.numbers)
def test_what_pyarrow_writes(tmp_path: Path, kind: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "_ROWS", 70)
    for shape in SHAPES:
        numbers, path = matrix(shape, dtype), tmp_path / kind
        write(path, table_of(numbers))
        source = files.inspect(str(path))
        assert (source.shape, source.dtype, source.order) == (shape, dtype, "F")
        assert numpy.array_equal(loaded(path), numbers)
        in_place = kind == "u.feather" and (shape[0] * numbers.itemsize % 8 == 0 or shape[1] == 1)
        assert source.encoded or kind in ("u.feather", "m.arrow", "s.arrow")
        assert not (in_place and source.encoded)
    write(tmp_path / kind, table_of(matrix((4, 3), dtype)).slice(0, 0))
    assert files.inspect(str(tmp_path / kind)).shape == (0, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_several_types_and_missing_numbers(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    for types in (("int8", "uint8"), ("int32", "float32"), ("float16", "float64"), ("int64", "uint64")):
        columns = [numpy.arange(5).astype(dtype) for dtype in types]
        write(path, pyarrow.table(columns, names=["a", "b"]))
        expected = numpy.stack(columns, axis=1)
        source = files.inspect(str(path))
        assert source.dtype == expected.dtype.name and numpy.array_equal(loaded(path), expected)
        assert any(f"taken as {expected.dtype}" in note for note in source.notes)
    columns = [[True, None, False], [1, 2, None], [None, 0.5, 1.5]]
    write(path, pyarrow.table(columns, names=["flag", "whole", "part"]))
    expected = numpy.array([[1, 1, numpy.nan], [numpy.nan, 2, 0.5], [0, numpy.nan, 1.5]])
    assert numpy.array_equal(loaded(path), expected, equal_nan=True)
    write(path, pyarrow.table([[True, False]], names=["flag"]))
    assert loaded(path).dtype == "uint8" and loaded(path).tolist() == [[1], [0]]
    half = pyarrow.array(numpy.array([1, 2], "f2"), mask=numpy.array([True, False]))
    write(path, pyarrow.table([half], names=["h"]))
    assert loaded(path).dtype == "float16" and numpy.array_equal(loaded(path)[:, 0], [numpy.nan, 2], True)
    write(path, pyarrow.table([[1, None], [3, 4]], names=["x", "y"]))
    with pytest.raises(UsageError, match="missing numbers in the column x, and int64 has no nan"):
        decoded(files.inspect(str(path)), str(tmp_path), "id")
    assert [each.name for each in tmp_path.iterdir()] == [kind]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_by_name(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    names = ["x", "y", "a,b", "a.b", "when", "x:y"]
    numbers = matrix((40, 6))
    columns = [pyarrow.array(column) for column in numbers.T]
    columns[4] = pyarrow.array([None] * 40, pyarrow.timestamp("ms"))
    write(path, pyarrow.table(columns, names=names))
    for member, places in (
        ("y", [1]),
        ("y,x", [1, 0]),
        ("a,b", [2]),
        ("a.b,x:y,x", [3, 5, 0]),
        ("x,x", [0, 0]),
    ):
        assert numpy.array_equal(loaded(f"{path}:{member}"), numbers[:, places]), member
    for member, said in (
        ("", r"column when of type timestamp\[ms\]"),
        ("z", "no column z; its columns are x, y"),
    ):
        with pytest.raises(UsageError, match=said) as refused:
            files.inspect(f"{path}:{member}" if member else str(path))
        assert member or refused.value.advice == f"name the columns to take: {path}:x,y,a.b,x:y"
    found = [(each.member, each.shape, each.dtype, each.matrix) for each in contents(str(path))]
    assert found[3:5] == [("a.b", (40,), "float64", False), ("when", (40,), "timestamp[ms]", False)]
    twice = pyarrow.table([numbers[:, 0], numbers[:, 1], numbers[:, 2]], names=["x", "x", "y"])
    write(path, twice)
    assert numpy.array_equal(loaded(path), numbers[:, :3])
    assert numpy.array_equal(loaded(f"{path}:y"), numbers[:, 2:3])
    with pytest.raises(UsageError, match="several columns called x"):
        files.inspect(f"{path}:x")


@pytest.mark.parametrize("kind", KINDS)
def test_other_columns_are_refused_by_type(tmp_path: Path, kind: str) -> None:
    for column, said in (
        (["a", "b"], "string"),
        ([[1], [2]], r"list<"),
        ([{"x": 1}, {"x": 2}], r"struct<"),
        (pyarrow.array(["a", "b"]).dictionary_encode(), "dictionary<"),
        (pyarrow.array([None, None]), "null"),
        (pyarrow.array([1, 2]).cast(pyarrow.decimal128(20)), "decimal128"),
    ):
        write(tmp_path / kind, pyarrow.table([column, [1.0, 2.0]], names=["it", "x"]))
        with pytest.raises(UsageError, match=f"the column it of type {said}"):
            files.inspect(str(tmp_path / kind))
        assert loaded(f"{tmp_path / kind}:x").tolist() == [[1.0], [2.0]]
    write(tmp_path / kind, pyarrow.table({}))
    with pytest.raises(UsageError, match="no columns"):
        files.inspect(str(tmp_path / kind))
    assert contents(str(tmp_path / kind)) == []


def test_rounded_integers_are_mentioned(tmp_path: Path) -> None:
    """A Parquet file says how large its numbers are, unless it does not."""
    path = tmp_path / "a.parquet"
    for largest, statistics, warned, noted in (
        (2**53, True, False, False),
        (2**53 + 1, True, True, False),
        (5, False, False, True),
    ):
        table = pyarrow.table({"big": numpy.array([1, largest]), "x": numpy.array([0.5, 1.5])})
        pyarrow.parquet.write_table(table, path, write_statistics=statistics)
        source = files.inspect(str(path))
        assert any("beyond 2⁵³ in big are rounded" in each for each in source.warnings) == warned
        assert any("beyond 2⁵³ in big may be rounded" in each for each in source.notes) == noted
        assert not files.inspect(f"{path}:big").warnings


def test_the_index_of_pandas_is_left_out(tmp_path: Path) -> None:
    said = b'{"index_columns": ["when", {"kind": "range"}], "columns": []}'
    table = pyarrow.table({"x": [1.0, 2.0], "when": ["a", "b"]}).replace_schema_metadata({"pandas": said})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    source = files.inspect(str(tmp_path / "a.parquet"))
    assert "the index when" in source.warnings[0] and source.shape == (2, 1)
    assert loaded(tmp_path / "a.parquet").tolist() == [[1.0], [2.0]]


def test_files_are_written_with_names_and_the_same_each_time(tmp_path: Path) -> None:
    numbers = matrix((300, 7))
    for kind, read in (("parquet", pyarrow.parquet.read_table), ("feather", pyarrow.feather.read_table)):
        for name in ("a", "b"):
            written(f"{tmp_path / name}.{kind}:" + ",".join("tuvwxyz"), numbers)
        assert read(tmp_path / f"a.{kind}").column_names == list("tuvwxyz")
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
        for member in ("x,y", "x,x,a,b,c,d,e", "a,,b,c,d,e,f"):
            with pytest.raises(UsageError, match="7 columns, but"):
                written(f"{tmp_path / 'c'}.{kind}:{member}", numbers)
        with pytest.raises(UsageError, match="a table has 1 to 65536"):
            written(tmp_path / f"c.{kind}", numpy.zeros((1, 65537)))
        with pytest.raises(UsageError, match="a table has 1 to 65536"):
            written(tmp_path / f"c.{kind}", numpy.zeros((3, 0)))
        written(f"{tmp_path / 'd'}.{kind}:a,b", numpy.zeros((0, 2)))
        assert files.inspect(f"{tmp_path / 'd'}.{kind}").shape == (0, 2)
    assert not files.inspect(str(tmp_path / "a.feather")).encoded


def test_an_old_feather_file_and_others_are_refused(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pyarrow.feather.write_feather(table_of(matrix((3, 2))), tmp_path / "a.feather", version=1)
    with pytest.raises(UsageError, match="Feather file of version 1"):
        files.inspect(str(tmp_path / "a.feather"))


def test_info_shows_the_matrix_and_its_columns(here: InProcess) -> None:
    """And the columns alone where they are no matrix."""
    pyarrow.parquet.write_table(pyarrow.table({"x": [1.0, 2.0], "words": ["a", "b"]}), "a.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"x": [1.0, 2.0], "y": [3, 5]}), "b.parquet")
    said = here("info", "a.parquet").stdout
    assert re.search(r"^words +2 +string ", said, re.MULTILINE) and "(rows × columns)" not in said
    assert re.search(r"^note +a.parquet has the column words of type string", said, re.MULTILINE)
    said = here("info", "b.parquet").stdout
    assert re.search(r"^y +2 +int64 ", said, re.MULTILINE) and "2×2 (rows × columns)" in said
    assert "a job takes columns by their names, such as" in said
    facts = json.loads(here("info", "b.parquet:y", "--stats", "--json", "-").stdout)
    assert (facts["shape"], facts["member"], facts["statistics"]["mean"]) == ([2, 1], "y", 4)
    written(Path.cwd() / "c.parquet", matrix((2, 300)))
    said = here("info", "c.parquet").stdout
    assert "and 200 more" in said and len(said.splitlines()) < 120
    assert len(json.loads(here("info", "c.parquet", "--json", "-").stdout)["members"]) == 300


def test_without_pyarrow(here: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    written(Path.cwd() / "a.parquet", matrix((3, 2)))
    written(Path.cwd() / "a.feather", matrix((3, 2)))
    numpy.save("a.npy", matrix((3, 2)))
    for module in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, module, None)
    for words in (("info", "a.parquet"), ("show", "a.feather"), ("convert", "a.npy", "-o", "b.arrow")):
        said = one_message(here(*words), 2)
        assert "needs the package pyarrow" in said and "'tilewise[arrow]'" in said
