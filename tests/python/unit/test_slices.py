"""Slices of arrays with more dimensions, and arrays with one, in every format that has them, beside numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
from format_files import check_target
from safetensors.numpy import save_file
from scipy.io import netcdf_file
from tilewise import files
from tilewise.base.errors import UsageError
from tilewise.files.reading import binary, mapped

CUBE = numpy.random.default_rng(1).random((4, 3, 5))
SLICES: dict[str, Any] = {
    "2": 2,
    "-1": -1,
    ":,1": (slice(None), 1),
    "..., 4": (..., 4),
    "1,2": (1, 2),
    ":,2,0": (slice(None), 2, 0),
    "0,:,:": 0,
    "1,...": 1,
}
NAMES = ("c.npy", "f.npy", "b.npy", "s.npz", "z.npz", "c.h5:/x", "c.h5:/k", "c.safetensors", "c.nc", "u.nc:x")
GAPS = {name: {":,1", "..., 4", ":,2,0"} for name in NAMES} | {"f.npy": set(SLICES) - {"..., 4", ":,2,0"}}


def fill(folder: Path, cube: Any = CUBE) -> None:
    """One array in every format, row by row but in f.npy; b.npy is big endian, z.npz and /k are packed."""
    numpy.save(folder / "c.npy", cube)
    numpy.save(folder / "f.npy", numpy.asfortranarray(cube))
    numpy.save(folder / "b.npy", cube.astype(">f8"))
    numpy.savez(folder / "s.npz", x=cube)
    numpy.savez_compressed(folder / "z.npz", x=cube)
    save_file({"x": cube}, folder / "c.safetensors")
    with h5py.File(folder / "c.h5", "w") as book:
        book["x"] = cube
        book.create_dataset("k", data=cube, chunks=(2,) * cube.ndim, compression="gzip")
    for name, growing in (("c.nc", False), ("u.nc", True)):
        with netcdf_file(folder / name, "w") as book:
            axes = tuple("xyz"[: cube.ndim])
            for axis, extent in zip(axes, cube.shape, strict=True):
                book.createDimension(axis, None if growing and axis == "x" else extent)
            book.createVariable("x", "f8", axes)[:] = cube
            if growing:  # records of two variables lie in turn
                book.createVariable("other", "f8", ("x",))[:] = numpy.zeros(len(cube))


def loaded(name: str) -> Any:
    with binary(files.inspect(name)) as region:
        return numpy.array(mapped(region))


@pytest.mark.parametrize("name", NAMES)
def test_slices_are_numpys(tmp_path: Path, name: str) -> None:
    """Those in one piece are read in place, where the format's arrays are at all."""
    fill(tmp_path)
    for brackets, index in SLICES.items():
        path = f"{tmp_path / name}[{brackets}]"
        gaps = brackets in GAPS[name]
        if gaps and name == "z.npz":
            with pytest.raises(UsageError, match="rows lie apart, in a compressed array"):
                files.inspect(path)
            continue
        expected = CUBE[index]
        assert numpy.array_equal(loaded(path), expected.reshape(len(expected), -1))
        assert files.inspect(path).packed == (gaps or name in ("z.npz", "c.h5:/k", "u.nc:x"))


@pytest.mark.parametrize("name", NAMES)
def test_one_dimension_is_a_column(tmp_path: Path, name: str) -> None:
    fill(tmp_path, CUBE[0, 0])
    source = files.inspect(str(tmp_path / name))
    assert source.shape == (5, 1) and any("taken as a column" in note for note in source.notes)
    assert numpy.array_equal(loaded(str(tmp_path / name)), CUBE[0, 0, :, None])


@pytest.mark.parametrize(
    ("name", "said", "advice"),
    [
        ("c.npy", "has 3 dimensions (4, 3, 5), but a matrix has 2", "c.npy[0]"),
        ("c.npy[...]", "has 3 dimensions of (4, 3, 5)", "c.npy[0]"),
        ("c.npy[4]", "there is no 4 in dimension 0, which has 4", ""),
        ("c.npy[0,-4]", "there is no -4 in dimension 1, which has 3", ""),
        ("c.npy[0,0,0]", "is a single number", "write :"),
        ("c.npy[0,0,0,0]", "more than the array's 3 dimensions", ""),
        ("c.npy[x]", "is no slice that is read; write a number, FROM:TO or : for each axis", ""),
        ("c.npy[1:2:1]", "is no slice that is read", ""),
        ("c.npy[1:2]", "has 3 dimensions of (4, 3, 5)", "c.npy[0]"),
        ("c.npy[]", "is no slice that is read", ""),
        ("a.csv[0]", "names a slice by its number, but a matrix has rows FROM:TO", ""),
    ],
)
def test_what_names_no_matrix(tmp_path: Path, name: str, said: str, advice: str) -> None:
    fill(tmp_path)
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    with pytest.raises(UsageError) as error:
        files.inspect(f"{tmp_path}/{name}")
    assert said in error.value.message and advice in (error.value.advice or "")


def test_a_file_whose_name_has_brackets(tmp_path: Path) -> None:
    """What exists is a path; a page has its number in brackets or behind a colon."""
    numpy.save(tmp_path / "run[1].npy", CUBE)
    assert numpy.array_equal(loaded(f"{tmp_path}/run[1].npy[2]"), CUBE[2])
    (tmp_path / "c.npy[2]").mkdir()
    with pytest.raises(UsageError):
        files.inspect(f"{tmp_path}/c.npy[2]")


@pytest.mark.parametrize("name", ["c.npy[1,2]", "c.h5:/k[:,2,0]", "z.npz[1,2]"])
def test_a_list_may_be_a_row(tmp_path: Path, name: str) -> None:
    fill(tmp_path)
    source = files.inspect(f"{tmp_path}/{name}", lists_are_rows=True)
    with binary(source) as region:
        row = numpy.array(mapped(region))
    assert numpy.array_equal(row, loaded(f"{tmp_path}/{name}").T) and row.shape[0] == 1


def test_an_output_is_no_slice(tmp_path: Path) -> None:
    fill(tmp_path)
    with pytest.raises(UsageError, match="is a slice, but a whole file is written"):
        check_target(f"{tmp_path}/c.npy[0]", True)


@pytest.mark.parametrize(("shape", "said"), [((4, 3, 5), "4×3×5 float64"), ((7,), r"\(7,\) float64")])
def test_a_truncated_array_is_refused_with_its_own_shape(tmp_path: Path, shape: Any, said: str) -> None:
    path = tmp_path / "c.npy"
    numpy.save(path, numpy.zeros(shape))
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(UsageError, match=rf"\({said} from byte 128\) promises .*truncated"):
        files.inspect(f"{path}[0]" if len(shape) > 2 else str(path))


def test_brackets_with_letters_are_of_a_members_name(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as book:
        book["odd name,with[brackets]"] = numpy.arange(6.0).reshape(2, 3)
    name = f"{tmp_path / 'a.h5'}:/odd name,with[brackets]"
    assert files.inspect(name).columns == 3
    assert files.inspect(f"{name}[:,1:]").columns == 2
