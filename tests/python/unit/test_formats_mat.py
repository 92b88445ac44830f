"""MATLAB files of the versions 5 to 7.3, beside scipy and h5py."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import scipy.io
import scipy.sparse
from format_files import SHAPES, check_target, loaded, matrix, written
from tilewise import files
from tilewise.base.errors import UsageError
from tilewise.files import contents
from tilewise.files.decoded import decoded
from tilewise.files.formats import mat
from tilewise.files.target import written_warnings

CUBE = numpy.random.default_rng(1).random((4, 3, 5))
SLICES: dict[str, Any] = {
    ":,:,2": (slice(None), slice(None), 2),
    "...,-1": (..., -1),
    "2": 2,
    ":,1": (slice(None), 1),
    ":,2,0": (slice(None), 2, 0),
    "1,2": (1, 2),
}
IN_ONE_PIECE = {":,:,2", "...,-1", ":,2,0"}


def reversed_bytes(numbers: Any, name: bytes) -> bytes:
    """A file of version 5 from a machine with the other byte order; scipy says below whether it is one."""
    big = numpy.asarray(numbers, ">f8")
    head = struct.pack(">IIII", 6, 8, 6, 0) + struct.pack(">IIii", 5, 8, *big.shape)
    head += struct.pack(">HH", len(name), 1) + name.ljust(4, b"\0")
    data = big.tobytes(order="F")
    body = head + struct.pack(">II", 9, len(data)) + data
    start = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">HH", 0x0100, 0x4D49)
    return start + struct.pack(">II", 14, len(body)) + body


def version_7_3(path: Path, **variables: Any) -> None:
    """As MATLAB writes it: behind 512 bytes, extents in reverse, classes as attributes."""
    with h5py.File(path, "w", userblock_size=512) as book:
        for name, numbers in variables.items():
            stored = numbers.T
            if numpy.iscomplexobj(stored):
                parts = numpy.empty(stored.shape, [("real", "<f8"), ("imag", "<f8")])
                parts["real"], parts["imag"] = stored.real, stored.imag
                stored = parts
            packed: Any = (
                {"chunks": (2,) * stored.ndim, "compression": "gzip"} if name.startswith("z") else {}
            )
            kind = {"float64": "double", "float32": "single", "complex128": "double"}
            book.create_dataset(name, data=stored, **packed).attrs["MATLAB_class"] = numpy.bytes_(
                kind.get(numbers.dtype.name, numbers.dtype.name)
            )
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + struct.pack("<HH", 0x0200, 0x4D49))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", mat.FORMAT.numbers)
def test_what_scipy_writes(tmp_path: Path, dtype: str, packed: bool) -> None:
    path = tmp_path / "a.mat"
    for shape in (*SHAPES, (0, 3), (3, 0)):
        numbers = matrix(shape, dtype)
        scipy.io.savemat(path, {"a_long_name": numbers, "line": "words"}, do_compression=packed)
        source = files.inspect(str(path))
        assert (source.member, source.dtype, source.order, source.shape) == ("a_long_name", dtype, "F", shape)
        assert source.encoded == (packed or (dtype.startswith("complex") and 0 not in shape))
        assert shape[0] == 0 or numpy.array_equal(loaded(path), numbers)
    numbers = numpy.concatenate([numpy.arange(300.0), [1e300, -0.0, numpy.nan]])[None]
    scipy.io.savemat(path, {"x": numbers}, do_compression=packed)
    assert numpy.array_equal(loaded(path), numbers, equal_nan=True)


def test_numbers_that_are_stored_as_smaller_ones(tmp_path: Path) -> None:
    """As MATLAB does with whole numbers."""
    scipy.io.savemat(tmp_path / "a.mat", {"x": matrix((8, 3), "uint8")})
    data = bytearray((tmp_path / "a.mat").read_bytes())
    data[128 + 8 + 8] = 6  # a double
    (tmp_path / "a.mat").write_bytes(data)
    expected = scipy.io.loadmat(tmp_path / "a.mat", mat_dtype=True)["x"]
    source = files.inspect(str(tmp_path / "a.mat"))
    assert source.dtype == expected.dtype.name == "float64" and source.encoded
    assert numpy.array_equal(loaded(tmp_path / "a.mat"), expected)
    data[128 + 8 + 8], data[128 + 8 + 9] = 9, 2  # a logical
    (tmp_path / "a.mat").write_bytes(data)
    assert files.inspect(str(tmp_path / "a.mat")).dtype == "uint8"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_other_byte_order(tmp_path: Path, shape: tuple[int, int]) -> None:
    numbers = matrix(shape)
    (tmp_path / "a.mat").write_bytes(reversed_bytes(numbers, b"x"))
    assert numpy.array_equal(scipy.io.loadmat(tmp_path / "a.mat")["x"], numbers)
    source = files.inspect(str(tmp_path / "a.mat:x"))
    assert source.byte_order == "big" and not source.encoded
    assert numpy.array_equal(loaded(tmp_path / "a.mat"), numbers)


@pytest.mark.parametrize("name", ["s.mat", "c.mat", "p.mat", "h.mat:x", "h.mat:z"])
def test_slices_are_numpys(tmp_path: Path, name: str) -> None:
    cube = CUBE + 1j * CUBE[::-1] if name == "c.mat" else CUBE
    if name.startswith("h.mat"):
        version_7_3(tmp_path / "h.mat", x=cube, z=cube)
    else:
        scipy.io.savemat(tmp_path / name, {"x": cube}, do_compression=name == "p.mat")
    for brackets, index in SLICES.items():
        path = f"{tmp_path / name}[{brackets}]"
        expected = cube[index]
        assert numpy.array_equal(loaded(path), expected.reshape(len(expected), -1)), brackets
        assert files.inspect(path).encoded == (
            name not in ("s.mat", "h.mat:x") or brackets not in IN_ONE_PIECE
        )


def test_version_7_3(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    floats, numbers = matrix((13, 11), "float32"), matrix((13, 11), "complex128")
    version_7_3(path, x=floats, y=numbers, z=numbers, i=matrix((7, 1), "int16"))
    with h5py.File(path, "r+") as book:
        book.create_dataset("text", data=numpy.zeros((3, 1), "u2")).attrs["MATLAB_class"] = b"char"
        none = book.create_dataset("none", data=numpy.array([0, 5], "u8"))
        none.attrs["MATLAB_class"], none.attrs["MATLAB_empty"] = b"double", numpy.uint8(1)
        book.create_group("s").attrs["MATLAB_sparse"] = numpy.uint64(4)
        book.create_group("r/field")
        book["#refs#/a"] = 1.0
    for name, expected in (("x", floats), ("y", numbers), ("/z", numbers), ("i", matrix((7, 1), "int16"))):
        assert numpy.array_equal(loaded(f"{path}:{name}"), expected)
        assert files.inspect(f"{path}:{name}").encoded == (name == "/z")
    assert files.inspect(f"{path}:none").shape == (0, 5) and loaded(f"{path}:none").shape == (0, 5)
    found = {each.member: (each.shape, each.dtype, each.matrix) for each in contents(str(path))}
    assert found == {
        "x": ((13, 11), "float32", True),
        "y": ((13, 11), "complex128", True),
        "z": ((13, 11), "complex128", True),
        "i": ((7, 1), "int16", True),
        "none": ((0, 5), "float64", True),
        "text": ((1, 3), "char", False),
        "s": ((), "sparse", False),
        "r": ((), "struct", False),
    }
    for member, said in (("text", "text"), ("s", "a sparse"), ("r", "a structure")):
        with pytest.raises(UsageError, match=f"is {said}"):
            files.inspect(f"{path}:{member}")


def test_what_is_no_matrix_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    cells = numpy.empty((1, 2), object)
    cells[:] = 1.0
    variables = {
        "cells": cells,
        "record": {"a": 1.0},
        "words": "text",
        "thin": scipy.sparse.eye(3, format="csc"),
        "x": matrix((2, 3)),
        "y": matrix((3, 2), "int8"),
        "flags": numpy.array([[True, False]]),
    }
    for packed in (False, True):
        scipy.io.savemat(path, variables, do_compression=packed)
        found = {each.member: (each.dtype, each.matrix) for each in contents(str(path))}
        assert found == {
            "cells": ("cell", False),
            "record": ("struct", False),
            "words": ("char", False),
            "thin": ("sparse", False),
            "x": ("float64", True),
            "y": ("int8", True),
            "flags": ("uint8", True),
        }
        for member, said in (
            ("cells", "a cell array"),
            ("record", "a structure"),
            ("words", "text"),
            ("thin", "a sparse matrix"),
        ):
            with pytest.raises(UsageError, match=f"is {said}, but numbers were expected"):
                files.inspect(f"{path}:{member}")
        assert loaded(f"{path}:flags").tolist() == [[1, 0]]
        with pytest.raises(UsageError, match="no variable, but one was expected: x, y, flags"):
            files.inspect(str(path))
        with pytest.raises(UsageError, match="no variable gone; its variables are .*x, y, flags"):
            files.inspect(f"{path}:gone")
    scipy.io.savemat(tmp_path / "empty.mat", {})
    with pytest.raises(UsageError, match="no variable gone; it holds no variable of numbers"):
        files.inspect(f"{tmp_path}/empty.mat:gone")


@pytest.mark.parametrize("dtype", mat.FORMAT.numbers)
def test_large_variables_are_of_version_7_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    monkeypatch.setattr(mat, "_LARGEST", 1030)
    numbers = matrix((13, 11), dtype)
    written(f"{tmp_path / 'a.mat'}:some_name", numbers)
    with h5py.File(tmp_path / "a.mat") as book:
        stored = book["some_name"]
        real = "double" if dtype == "complex128" else "single" if dtype == "complex64" else dtype
        assert stored.attrs["MATLAB_class"].decode() == {"float64": "double", "float32": "single"}.get(
            real, real
        )
        found = stored[:].T
        if found.dtype.names:
            found = found["real"] + 1j * found["imag"]
        assert numpy.array_equal(found, numbers)
    assert (tmp_path / "a.mat").read_bytes()[124:128] == b"\x00\x02IM"
    assert numpy.array_equal(loaded(tmp_path / "a.mat"), numbers)
    target = check_target(str(tmp_path / "b.mat"), False)
    assert "version 7.3" in written_warnings(target, (13, 11), dtype, "F")[0]
    monkeypatch.undo()
    assert written_warnings(target, (13, 11), dtype, "F") == ()


def test_names_of_new_variables_are_matlabs(tmp_path: Path) -> None:
    written(f"{tmp_path / 'a.mat'}:{'x' * 63}", matrix((2, 3)))
    assert numpy.array_equal(scipy.io.loadmat(tmp_path / "a.mat")["x" * 63], matrix((2, 3)))
    for name in ("1x", "_x", "a b", "x" * 64, "a.b", "é"):
        with pytest.raises(UsageError, match="no variable of MATLAB's"):
            written(f"{tmp_path / 'b.mat'}:{name}", matrix((2, 3)))
    scipy.io.savemat(tmp_path / "c.mat", {"x": matrix((2, 3))}, format="4")
    with pytest.raises(UsageError, match="version 4"):
        files.inspect(str(tmp_path / "c.mat"))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_stack_is_its_slices_one_behind_the_other(tmp_path: Path, dtype: str, axis: int) -> None:
    array = (CUBE + 1j * CUBE[::-1] if dtype == "complex128" else CUBE).astype(dtype)
    scipy.io.savemat(tmp_path / "a.mat", {"x": array})
    scipy.io.savemat(tmp_path / "p.mat", {"x": array}, do_compression=True)
    version_7_3(tmp_path / "b.mat", x=array)
    slices = numpy.moveaxis(array, axis, 0)
    for name in ("a.mat", "p.mat", "b.mat"):
        source = files.inspect(str(tmp_path / name), each=(axis,))
        raw = decoded(source, str(tmp_path), f"{name}{axis}") if source.encoded else source
        for number, expected in enumerate(slices):
            offset = raw.offset + number * raw.steps[0]
            found: Any = numpy.memmap(raw.path, dtype, "r", offset, expected.shape, raw.order)  # type: ignore
            assert numpy.array_equal(found, expected), (name, number)
