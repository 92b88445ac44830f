"""`norm` through the real command: every type, order, format and way to read, against numpy."""

from __future__ import annotations

import json
import math
from typing import Any

import h5py
import numpy
import pytest
import tilewise as package
from conftest import Tilewise, one_message
from numpy.testing import assert_allclose
from tilewise.files.dtypes import ITEMSIZE
from tilewise.planning.names import ONE_FILE

WITHOUT_CHILD = True
RNG = numpy.random.default_rng(7)
NAMES = ("frobenius", "one", "infinity", "max")


def expected(a: Any) -> list[float]:
    """What numpy says of `a`."""
    wide = numpy.asarray(a).astype("complex128" if numpy.iscomplexobj(a) else "float64")
    return [float(numpy.linalg.norm(wide, order)) for order in ("fro", 1, numpy.inf)] + [
        float(abs(wide).max())
    ]


def numbers(dtype: str, shape: tuple[int, int] = (23, 17)) -> Any:
    values = RNG.standard_normal(shape) * 100
    if dtype.startswith("complex"):
        return (values + 1j * RNG.standard_normal(shape)).astype(dtype)
    return numpy.abs(values).astype(dtype) if dtype.startswith("u") else values.astype(dtype)


def record_of(tilewise: Tilewise, *words: object) -> dict[str, Any]:
    ended = tilewise("norm", *words, "--json", "-")
    assert ended.returncode == 0, ended.stderr
    record: dict[str, Any] = json.loads(ended.stdout)
    return record


def norms(tilewise: Tilewise, *words: object) -> list[float]:
    result = record_of(tilewise, *words)["result"]
    return [result[name] for name in NAMES]


@pytest.mark.parametrize("dtype", ITEMSIZE)
def test_every_type_in_every_order_and_byte_order(tilewise: Tilewise, dtype: str) -> None:
    a = numbers(dtype)
    swapped = a.astype(a.dtype.newbyteorder(">"))
    for ranks, form in enumerate((a, numpy.asfortranarray(a), swapped), 1):
        numpy.save(tilewise.folder / "A.npy", form)
        assert_allclose(norms(tilewise, "A.npy", "-n", ranks, "-t", 2), expected(a), rtol=1e-13)


@pytest.mark.parametrize("io", ONE_FILE)
def test_every_way_to_read(tilewise: Tilewise, io: str) -> None:
    a = numbers("float32", (31, 29))
    numpy.save(tilewise.folder / "A.npy", a)
    assert_allclose(norms(tilewise, "A.npy", "-n", 3, "--io", io), expected(a), rtol=1e-13)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
def test_any_number_of_ranks_and_uneven_shapes(tilewise: Tilewise, ranks: int) -> None:
    for shape in ((1, 50), (50, 1), (7, 3)):
        a = numbers("float64", shape)
        numpy.save(tilewise.folder / "A.npy", a)
        record = record_of(tilewise, "A.npy", "-n", ranks)
        assert_allclose([record["result"][name] for name in NAMES], expected(a), rtol=1e-13)
        assert record["ranks_working"] == min(ranks, shape[0])


def test_rows_longer_than_a_band_and_several_bands_of_rows(tilewise: Tilewise) -> None:
    for shape in ((3, 400_000), (400_000, 3)):
        a = numbers("float64", shape)
        numpy.save(tilewise.folder / "A.npy", a)
        for ranks in (1, 2):
            words = ("A.npy", "-n", ranks, "-t", 2, "--memory", f"{60 * ranks}MiB")
            assert_allclose(norms(tilewise, *words), expected(a), rtol=1e-12)


@pytest.mark.parametrize("name", ["A.csv", "A.mtx", "A.h5:/x", "A.tiles", "A.tif", "A.bin", "A.npz:a"])
def test_formats(tilewise: Tilewise, name: str) -> None:
    a = numbers("float64", (19, 11))
    if name.startswith("A.npz"):
        numpy.savez_compressed(tilewise.folder / "A.npz", a=a)
    else:
        numpy.save(tilewise.folder / "source.npy", a)
        assert tilewise("convert", "source.npy", "-o", name, "-n", 2).returncode == 0
    assert_allclose(norms(tilewise, name, "-n", 2), expected(a), rtol=1e-13)


def test_compressed_inputs_are_decoded_where_temporary_files_lie(tilewise: Tilewise) -> None:
    a = numbers("float64", (40, 30))
    with h5py.File(tilewise.folder / "A.h5", "w") as file:
        file.create_dataset("x", data=a, compression="gzip")
    scratch = tilewise.folder / "scratch"
    scratch.mkdir()
    tilewise.environment["TMPDIR"] = str(scratch)
    assert_allclose(norms(tilewise, "A.h5:/x", "-n", 2), expected(a), rtol=1e-13)
    assert not list(scratch.iterdir()) and tilewise.files() == {"A.h5", "scratch"}


@pytest.mark.parametrize(
    ("values", "nans", "infinities"),
    [
        ([[1.0, numpy.nan], [2, 3]], 1, 0),
        ([[1.0, numpy.inf], [-numpy.inf, 3]], 0, 2),
        ([[numpy.nan, numpy.inf], [2, numpy.nan]], 2, 1),
    ],
)
def test_what_is_not_finite(tilewise: Tilewise, values: Any, nans: int, infinities: int) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.array(values))
    ended = tilewise("norm", "A.npy", "-n", 2, "--json", "r.json")
    result = json.loads((tilewise.folder / "r.json").read_text())["result"]
    assert result == {
        **dict.fromkeys(NAMES),
        "nan_numbers": nans,
        "infinite_numbers": infinities,
    }
    assert f"max norm   {'nan' if nans else 'inf'}\n" in ended.stdout
    assert "× NaN" in ended.stdout if nans else "2 × ±∞" in ended.stdout
    with pytest.warns(package.TilewiseWarning, match=r"of 4 numbers of .*A\.npy (is|are) NaN or infinite"):
        found = package.norm(tilewise.folder / "A.npy")
    assert numpy.array_equal(found, expected(values), equal_nan=True)


def test_huge_and_tiny_numbers_keep_their_digits(tilewise: Tilewise) -> None:
    """Squares of them are beyond float64, and numpy says inf or 0."""
    pattern = RNG.random((60, 50)) + 0.5
    for factor in (2.0**1000, 2.0**-1000):
        numpy.save(tilewise.folder / "A.npy", pattern * factor)
        frobenius, one, infinity, most = norms(tilewise, "A.npy", "-n", 3)
        assert_allclose(
            [each / factor for each in (frobenius, one, infinity, most)], expected(pattern), rtol=1e-13
        )
    numpy.save(tilewise.folder / "A.npy", numpy.full((2, 2), 1.5e308))  # sums are beyond it, numbers are not
    assert norms(tilewise, "A.npy") == [None, None, None, 1.5e308]
    assert package.norm(tilewise.folder / "A.npy").frobenius == math.inf
    numpy.save(tilewise.folder / "A.npy", numpy.full((3, 5), -(2**63), "int64"))
    assert_allclose(
        norms(tilewise, "A.npy"), [2.0**63 * 15**0.5, 2.0**63 * 3, 2.0**63 * 5, 2.0**63], rtol=1e-15
    )


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_a_matrix_without_numbers_has_norms_of_0(tilewise: Tilewise, shape: tuple[int, int]) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.zeros(shape))
    assert norms(tilewise, "A.npy", "-n", 2) == [0, 0, 0, 0]


def test_nothing_is_written_and_the_norms_are_said(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.array([[3.0, 4.0], [0.0, 0.0]]))
    ended = tilewise("norm", "A.npy")
    assert ended.returncode == 0 and ended.stderr == ""
    said = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    assert said[-4:] == ["Frobenius 5", "1 norm 4", "∞ norm 7", "max norm 4"]
    assert "output" not in ended.stdout and "exchange" not in ended.stdout
    quiet = tilewise("norm", "A.npy", "-q")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    assert record_of(tilewise, "A.npy")["outputs"] == []
    planned = tilewise("plan", "norm", "A.npy", "--json", "-")
    assert json.loads(planned.stdout)["outputs"] == []
    shown = tilewise("plan", "norm", "A.npy")
    assert "result" not in shown.stdout and "positioned in\n" in shown.stdout
    assert tilewise.files() == {"A.npy"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("A.npy -o B.npy", "no flag -o"),
        ("missing.npy", "missing.npy"),
        ("A.npy --io sieve:positioned", "--io sieve:positioned makes no sense with norm"),
        ("A.npy --io per_rank", "expects a folder of tiles"),
        ("A.npy --memory 1MiB", "this needs"),
        ("A.npy --json A.npy", "also an input"),
    ],
)
def test_what_makes_no_sense_is_refused(tilewise: Tilewise, words: str, said: str) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.ones((3, 3)))
    assert said in one_message(tilewise("norm", *words.split()), 2)
    assert tilewise.files() == {"A.npy"}


def test_memory_is_bounded_and_stated(tilewise: Tilewise) -> None:
    record = record_of(tilewise, "random:6000x6000:float64", "-n", 2, "-t", 1, "--memory", "160MiB")
    assert record["peak_rss_bytes"]["node_sum"] < record["needed_bytes"] <= 160 << 20 < 6000 * 6000 * 8
    assert_allclose(record["result"]["frobenius"], 6000 / 3**0.5, rtol=1e-3)  # of numbers uniform in [0, 1)
    planned = json.loads(tilewise("plan", "norm", "random:3x10000000:float64", "-t", 3, "--json", "-").stdout)
    assert planned["variants"][0]["memory_bytes"] > 3 * 10**7 * 8  # sums of columns on each thread


def test_from_python(tilewise: Tilewise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tilewise.folder)
    for key, value in tilewise.environment.items():
        monkeypatch.setenv(key, value)
    a = RNG.standard_normal((30, 20))
    with package.records() as done:
        found = package.norm(a, ranks=2)
    assert_allclose([found.frobenius, found.one, found.infinity, found.max], expected(a), rtol=1e-13)
    assert done[0].command == "norm" and done[0].outputs == []
    assert package.plan("norm", a).outputs == [] and package.norm([1, -2, 2]).frobenius == 3
    with pytest.raises(package.UsageError, match="no flag --output"):
        package.plan("norm", a, out="B.npy")
