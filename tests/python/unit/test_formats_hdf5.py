"""HDF5 and both kinds of NetCDF: in place where they are contiguous, decoded where not."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import h5py
import numpy
import pytest
import scipy.io
from format_files import check_target, loaded, matrix, written
from tilewise import files
from tilewise.base.errors import UsageError
from tilewise.files import contents
from tilewise.files.dtypes import ITEMSIZE
from tilewise.files.formats.nc_variables import NO_VARIABLE
from tilewise.files.output import create
from tilewise.files.target import check_holds


@pytest.mark.parametrize("mark", "<>")
@pytest.mark.parametrize("dtype", ITEMSIZE)
def test_hdf5_in_both_byte_orders(tmp_path: Path, dtype: str, mark: str) -> None:
    numbers = matrix((13, 11), dtype).astype(numpy.dtype(dtype).newbyteorder(mark))
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=512) as book:
        book["group/plain"] = numbers
        book.create_dataset("group/chunked", data=numbers, chunks=(5, 4), compression="gzip", shuffle=True)
        book.create_dataset("compact", data=numbers)
        book["vector"] = numpy.zeros(3)
    plain = files.inspect(str(tmp_path / "a.h5:/group/plain"))
    assert not plain.encoded and plain.offset > 512 and plain.member == "/group/plain"
    assert files.inspect(str(tmp_path / "a.h5:group/chunked")).encoded
    for member in ("group/plain", "group/chunked", "/compact"):
        assert numpy.array_equal(loaded(tmp_path / f"a.h5:{member}"), numbers)


def test_hdf5_members_links_and_what_is_no_matrix(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(tmp_path / "b.h5", "w") as other:
        other["far"] = matrix((2, 3))
    with h5py.File(path, "w") as book:
        book["a"] = matrix((2, 3))
        book["b"] = matrix((3, 2))
        book["vector"] = numpy.zeros(3)
        book["cube"] = numpy.zeros((2, 3, 4))
        book["text"] = "hello"
        book["empty"] = h5py.Empty("f8")
        book["inner/x"] = matrix((4, 4))
        book["soft"] = h5py.SoftLink("/inner/x")
        book["turn"] = h5py.SoftLink("turn")
        book["out"] = h5py.ExternalLink("b.h5", "/far")
        book["over"] = h5py.SoftLink("/out")
        book.create_dataset("later", (5, 4), "f8")
        book.create_dataset("outside", (2, 2), "f8", external=[(str(tmp_path / "x.dat"), 0, 32)])[:] = 5
        layout = h5py.VirtualLayout((2, 3), "f8")
        layout[:] = h5py.VirtualSource("b.h5", "far", (2, 3))
        book.create_virtual_dataset("virtual", layout)
        gone = h5py.VirtualLayout((2, 3), "f8")
        gone[:] = h5py.VirtualSource("gone.h5", "far", (2, 3))
        book.create_virtual_dataset("gone", gone)
        book.create_dataset("odd", (2, 3), h5py.check_enum_dtype(None) or "i4")
        book["flags"] = numpy.eye(3, dtype=bool)
    assert loaded(f"{path}:soft").shape == (4, 4)
    assert numpy.array_equal(loaded(f"{path}:later"), numpy.zeros((5, 4)))
    assert numpy.array_equal(loaded(f"{path}:virtual"), matrix((2, 3)))
    assert numpy.array_equal(loaded(f"{path}:flags"), numpy.eye(3))
    assert numpy.array_equal(loaded(f"{path}:outside"), numpy.full((2, 2), 5))
    for member, said in (
        ("cube", "3 dimensions"),
        ("text", "holds strings"),
        ("empty", "null"),
        ("inner", "no dataset inner"),
        ("nope", "/a, /b"),
        ("a/b", "no dataset"),
        ("turn", "32 links"),
        ("out", r"another file, b\.h5"),
        ("over", "another file"),
        ("gone", r"gone\.h5 does not exist"),
    ):
        with pytest.raises(UsageError, match=said):
            files.inspect(f"{path}:{member}")
    with pytest.raises(UsageError, match="no dataset, but one was expected: /a, /b"):
        files.inspect(str(path))


def test_hdf5_chunks_larger_than_a_panel_are_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewise.files.slices._PANEL", 4096)
    numbers = matrix((211, 97))
    with h5py.File(tmp_path / "a.h5", "w") as book:
        for chunks in ((64, 8), (1, 97), (211, 97), (7, 5), (200, 1)):
            book.create_dataset("x", data=numbers, chunks=chunks, compression="lzf")
            book.flush()
            assert numpy.array_equal(loaded(tmp_path / "a.h5"), numbers)
            del book["x"]


def test_hdf5_keeps_other_datasets(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    written(f"{path}:/x/y", matrix((5, 4)))
    written(f"{path}:/z", matrix((3, 3), "int16"))
    with pytest.raises(UsageError, match="exists already"):
        check_target(f"{path}:/z", False)
    with pytest.raises(UsageError, match="exists already"):
        check_target(str(path), False)
    with pytest.raises(UsageError, match="is a group"):
        check_target(f"{path}:/x", True)
    with pytest.raises(UsageError):
        check_target(f"{path}:/z/inside", True)
    written(f"{path}:/z", matrix((4, 6), "complex64"), force=True)
    with h5py.File(path) as book:
        assert numpy.array_equal(book["x/y"][:], matrix((5, 4)))
        assert numpy.array_equal(book["z"][:], matrix((4, 6), "complex64"))
    output = create(check_target(f"{path}:/w", False), (2, 2), "float64", "C", "id")
    assert output.discard() == [] and os.listdir(tmp_path) == ["a.h5"]
    path.write_bytes(b"nonsense")
    with pytest.raises(UsageError, match="root group"):
        create(check_target(f"{tmp_path / 'b.h5'}:/", False), (2, 2), "float64", "C", "id")
    assert os.listdir(tmp_path) == ["a.h5"]
    with pytest.raises(UsageError, match="cannot be added"):
        check_target(f"{path}:/w", True)


def test_netcdf_4_has_named_dimensions(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    written(path, matrix((5, 4), "float32"))
    written(f"{path}:square", matrix((5, 5)))
    written(f"{path}:square", matrix((5, 6)), force=True)
    assert numpy.array_equal(loaded(f"{path}:square"), matrix((5, 6)))
    written(f"{path}:/group/inner", matrix((3, 6), "int16"))
    with h5py.File(path) as book:
        names = [dimension[0].name for dimension in book["matrix"].dims]
        assert names == ["/matrix_rows", "/matrix_columns"]
        assert book["matrix_rows"].attrs["CLASS"] == b"DIMENSION_SCALE"
        numbers = [
            item.attrs["_Netcdf4Dimid"]
            for item in (*book.values(), *book["group"].values())
            if "_Netcdf4Dimid" in item.attrs
        ]
        assert len(set(numbers)) == len(numbers) == 7
    with pytest.raises(UsageError, match="is a dimension in that file"):
        check_target(f"{path}:matrix_rows", True)
    with pytest.raises(UsageError, match="cannot hold complex64"):
        check_holds(check_target(str(tmp_path / "new.nc"), False), "complex64")


def test_netcdf_4_variables_that_are_shorter_than_their_dimension(tmp_path: Path) -> None:
    """As NetCDF has them: filled up, and under the names of dimensions."""
    path = tmp_path / "a.nc"
    with h5py.File(path, "w") as book:
        for number, (name, extent, limit) in enumerate([("t", 2, None), ("x", 3, 3), ("u", 4, None)]):
            scale = book.create_dataset(name, (extent,), "f8", maxshape=(limit,), chunks=(1,))
            scale.make_scale(name if name == "t" else NO_VARIABLE % extent)
            scale.attrs["_Netcdf4Dimid"] = number
        book["t"][:] = [1, 2]
        lengths = {"long": (5, 3), "short": (3, 3), "none": (0, 3), "across": (3, 2), "inner/part": (6, 3)}
        for name, shape in lengths.items():
            axes = "xu" if name == "across" else "tx"
            limits = tuple(None if axis in "tu" else extent for axis, extent in zip(axes, shape, strict=True))
            kind = {"across": "u1", "none": "i8"}.get(name, "f4")
            stored = book.create_dataset(
                name, shape, kind, maxshape=limits, chunks=(1, 1), compression="gzip"
            )
            stored[...] = 2
            for axis, dimension in enumerate(axes):
                stored.dims[axis].attach_scale(book[dimension])
        book.create_dataset("cube", (2, 3, 3), "i2", maxshape=(None, 3, 3), fillvalue=-5)[:] = 4
        book["cube"].dims[0].attach_scale(book["t"])
        # A variable with dimensions of its own that has the name of another one's.
        book["_nc4_non_coord_x"] = matrix((4, 4))
        # A dimension with a variable of more dimensions, which has no list of them.
        wide = book.create_dataset("v", (3, 7), "f8", maxshape=(None, None), fillvalue=1)
        wide.make_scale("v")
        wide.attrs.update({"_Netcdf4Dimid": 3, "_Netcdf4Coordinates": [3, 0]})
    default = 9.969209968386869e36
    for name, rows, fill in (
        ("t", [[1], [2]], default),
        ("short", [[2, 2, 2]] * 3, default),
        ("none", [], -9223372036854775806),
        ("long", [[2, 2, 2]] * 5, default),
        ("cube[:,1]", [[4, 4, 4]] * 2, -5),
        ("inner/part", [[2, 2, 2]] * 6, default),
    ):
        source = files.inspect(f"{path}:{name}")
        found = loaded(f"{path}:{name}")
        assert found.shape[0] == 7 and found[: len(rows)].tolist() == rows
        assert (found[len(rows) :] == numpy.array(fill, found.dtype)).all()
        assert f"the others are the fill value {fill}" in source.warnings[0]
    assert numpy.array_equal(loaded(f"{path}:across"), [[2, 2, 255, 255]] * 3)
    assert files.inspect(f"{path}:v").warnings == ()
    assert numpy.array_equal(loaded(f"{path}:x"), matrix((4, 4)))
    with pytest.raises(UsageError, match="dimension without numbers"):
        files.inspect(f"{path}:u")
    listed = {each.member: each.shape for each in contents(str(path))}
    assert listed["/x"] == (4, 4) and listed["/short"] == (7, 3) and "/u" not in listed
    os.rename(path, tmp_path / "a.h5")
    assert loaded(tmp_path / "a.h5:short").shape == (3, 3)


@pytest.mark.parametrize("version", [1, 2])
def test_classic_netcdf(tmp_path: Path, version: int) -> None:
    path = tmp_path / "a.nc"
    numbers = {
        code: matrix((13, 11), dtype)
        for code, dtype in (("d", "float64"), ("f", "float32"), ("i", "int32"), ("h", "int16"), ("b", "int8"))
    }
    with scipy.io.netcdf_file(path, "w", version=version) as book:
        for dimension, extent in (("time", None), ("rows", 13), ("columns", 11)):
            book.createDimension(dimension, extent)
        for code, values in numbers.items():
            book.createVariable(code, code, ("rows", "columns"))[:] = values
        for record in ("first", "second"):
            book.createVariable(record, "f4", ("time", "columns"))[:] = matrix((4, 11), "float32")
        book.createVariable("vector", "f4", ("rows",))[:] = numpy.arange(13)
    for code, values in numbers.items():
        source = files.inspect(f"{path}:{code}")
        assert (source.encoded, source.byte_order) == (False, "big" if code != "b" else "little")
        assert numpy.array_equal(loaded(f"{path}:{code}"), values)
    assert files.inspect(f"{path}:second").encoded
    assert numpy.array_equal(loaded(f"{path}:second"), matrix((4, 11)))
    assert numpy.array_equal(loaded(f"{path}:vector"), numpy.arange(13)[:, None])
    with pytest.raises(UsageError, match="no variable nope"):
        files.inspect(f"{path}:nope")
    with pytest.raises(UsageError, match="but one was expected: d, f, i, h, b, vector, first, second"):
        files.inspect(str(path))


@pytest.mark.parametrize(("code", "columns"), [("b", 1), ("b", 7), ("h", 1), ("h", 3), ("h", 4), ("i", 3)])
def test_classic_netcdf_has_no_gaps_between_the_records_of_one_variable(
    tmp_path: Path, code: str, columns: int
) -> None:
    numbers = matrix((5, columns), numpy.dtype(code).name)
    with scipy.io.netcdf_file(tmp_path / "a.nc", "w") as book:
        book.createDimension("time", None)
        book.createDimension("columns", columns)
        book.createVariable("q", code, ("time", "columns"))[:] = numbers
    # The size in the header has a gap where NetCDF's own library has written it, though none follows.
    data, kind = (tmp_path / "a.nc").read_bytes(), {"b": 1, "h": 3, "i": 4, "d": 6}[code]
    size = columns * numbers.itemsize
    sizes = [struct.pack(">QII", 0, kind, each) for each in (size, -(-size // 4) * 4)]
    assert data.count(sizes[0]) == 1
    (tmp_path / "a.nc").write_bytes(data.replace(*sizes))
    for member in ("", ":q", ":/q"):
        assert numpy.array_equal(loaded(f"{tmp_path}/a.nc{member}"), numbers)
    assert not files.inspect(f"{tmp_path}/a.nc").encoded
    with scipy.io.netcdf_file(tmp_path / "b.nc", "w") as book:
        book.createDimension("time", None)
        for name in "ab":  # where b would begin lies beyond the end
            book.createVariable(name, "d", ("time",))
    assert loaded(f"{tmp_path}/b.nc:b").shape == (0, 1)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((40, 64), ""),
        ((), r"one\.raw, which does not exist"),
        ((40, None), r"two\.raw, which does not exist"),
        ((0, 64), r"one\.raw, which has 0 bytes, but 32 from byte 8 on"),
        ((39, 64), r"one\.raw, which has 39 bytes, but 32 from byte 8 on"),
        ((40, 31), r"two\.raw, which has 31 bytes, but 64 from byte 0 on"),
    ],
)
def test_raw_files_of_hdf5_are_as_long_as_they_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int | None, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    numbers = numpy.arange(12.0).reshape(3, 4)
    with h5py.File("a.h5", "w") as book:
        raw = [("one.raw", 8, 32), ("two.raw", 0, h5py.h5f.UNLIMITED)]
        book.create_dataset("x", (3, 4), "f8", external=raw)
        layout = h5py.VirtualLayout((3, 4), "f8")
        layout[:] = h5py.VirtualSource(".", "x", (3, 4))
        book.create_virtual_dataset("virtual", layout)
    bytes_ = numbers.tobytes()
    for name, data, size in zip(
        ("one.raw", "two.raw"), (bytes(8) + bytes_[:32], bytes_[32:]), sizes, strict=False
    ):
        if size is not None:
            Path(name).write_bytes(data.ljust(size, b"?")[:size])
    for member in ("x", "virtual"):
        if not said:
            assert numpy.array_equal(loaded(f"a.h5:{member}"), numbers)
            continue
        with pytest.raises(UsageError, match=said):
            files.inspect(f"a.h5:{member}")


@pytest.mark.parametrize("how", ["external", "virtual", "part of a part", "linked", "over a link"])
def test_numbers_in_other_folders_are_refused(tmp_path: Path, how: str) -> None:
    folder, secret = tmp_path / "theirs", tmp_path / "mine.h5"
    folder.mkdir()
    path = folder / "x.h5"
    with h5py.File(secret, "w") as book:
        book["s"] = matrix((2, 2))
    layout = h5py.VirtualLayout((2, 2), "f8")
    with h5py.File(path, "w") as book:
        if how == "external":
            book.create_dataset("a", (2, 2), "f8", external=[(str(secret), 0, 32)])
        elif how == "part of a part":
            book.create_dataset("inner", (2, 2), "f8", external=[(str(secret), 0, 32)])
            layout[:] = h5py.VirtualSource(".", "inner", (2, 2))
        elif how == "over a link":
            book["inner"] = h5py.ExternalLink(str(secret), "/s")
            layout[:] = h5py.VirtualSource(".", "inner", (2, 2))
        else:
            (folder / "link.h5").symlink_to(secret)
            layout[:] = h5py.VirtualSource("link.h5" if how == "linked" else "../mine.h5", "s", (2, 2))
        if how != "external":
            book.create_virtual_dataset("a", layout)
    with pytest.raises(UsageError, match=r"another (folder|file)"):
        files.inspect(f"{path}:/a")
