"""Jobs on MATLAB files and tables, in place and decoded, and into them, on several numbers of ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
import scipy.io
from conftest import Tilewise, one_message

WITHOUT_CHILD = True


pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
feather, parquet = (pytest.importorskip(f"pyarrow.{part}") for part in ("feather", "parquet"))

A = numpy.random.default_rng(0).standard_normal((37, 24))


def fill(folder: Path) -> None:
    """A and its transpose: in place, packed, complex; the table has a column of text too."""
    scipy.io.savemat(folder / "A.mat", {"A": A, "c": A + 1j * A[::-1]})
    scipy.io.savemat(folder / "T.mat", {"T": A.T}, do_compression=True)
    names = [f"x{place}" for place in range(24)]
    parquet.write_table(pyarrow.table([*A.T, ["text"] * 37], names=[*names, "remark"]), folder / "A.parquet")
    table = pyarrow.table([*A], names=[f"x{place}" for place in range(37)])
    feather.write_feather(table, folder / "T.feather", "uncompressed")


def load(path: Path) -> Any:
    if path.suffix == ".mat":
        return scipy.io.loadmat(path)["matrix"]
    table = (parquet if path.suffix == ".parquet" else feather).read_table(path)
    return numpy.stack([column.to_numpy() for column in table.columns], axis=1)


@pytest.mark.parametrize(
    ("ranks", "left", "right", "made"),
    [
        (1, "A.mat:A", "T.feather", "C.mat"),
        (2, "A.mat:c", "T.mat", "C.mat"),
        (3, "A.parquet:" + ",".join(f"x{place}" for place in range(24)), "T.feather", "C.feather"),
        (4, "A.mat:A", "T.mat", "C.parquet"),
    ],
)
def test_products_and_transposes(tilewise: Tilewise, ranks: int, left: str, right: str, made: str) -> None:
    fill(tilewise.folder)
    inputs = tilewise.files()
    assert tilewise("multiply", left, right, "-o", made, "-n", ranks, "--verify", "fast").returncode == 0
    expected = (A + 1j * A[::-1] if left.endswith("c") else A) @ A.T
    assert numpy.allclose(load(tilewise.folder / made), expected)
    assert tilewise("transpose", right, "-o", f"B{made}", "-n", ranks).returncode == 0
    assert numpy.array_equal(load(tilewise.folder / f"B{made}"), A)
    assert tilewise.files() == {*inputs, made, f"B{made}"}


def test_what_fails_leaves_nothing(tilewise: Tilewise) -> None:
    fill(tilewise.folder)
    table = pyarrow.table({"a": [1, None, 3]})
    parquet.write_table(table, tilewise.folder / "holes.parquet")
    inputs = tilewise.files()
    for words, said in (
        (("convert", "holes.parquet", "-o", "B.mat"), "missing numbers in the column a"),
        (("convert", "A.mat:c", "-o", "B.parquet"), "cannot hold complex128"),
        (("convert", "A.mat:A", "-o", "B.parquet:x,y"), "24 columns, but 2 names"),
        (("convert", "A.mat:A", "-o", "B.mat:2x"), "no variable of MATLAB's"),
        (
            ("convert", "A.mat:A", "-o", "B.mat", "--order", "C"),
            "row by row: a .mat file is column by column",
        ),
        (("transpose", "A.parquet", "-o", "B.npy"), "the column remark of type string"),
    ):
        assert said in one_message(tilewise(*words), 2)
        assert tilewise.files() == inputs
