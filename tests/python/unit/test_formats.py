"""Every format in both directions: what its own library writes is found, and what we write it reads."""

from __future__ import annotations

import itertools
import json
import os
import struct
import zipfile
from pathlib import Path

import numpy
import pytest
import scipy.io
import tifffile
from format_files import (
    COMPLEX,
    READERS,
    SHAPES,
    check_target,
    filled,
    loaded,
    matrix,
    require_library,
    written,
)
from tilewise import files
from tilewise.base.errors import Interrupted, RunError, UsageError
from tilewise.files.checks import number_type
from tilewise.files.decoded import decoded
from tilewise.files.dtypes import ITEMSIZE, parse_dtype
from tilewise.files.formats import FORMATS, format_module, format_name, format_of, split_name
from tilewise.files.output import create
from tilewise.files.target import check_holds, find_target


@pytest.mark.parametrize("extension", READERS)
def test_what_we_write_is_read_by_us_and_by_others(tmp_path: Path, extension: str) -> None:
    require_library("x" + extension)
    for dtype in format_of("x" + extension).numbers:
        for shape in SHAPES:
            path = tmp_path / f"a{dtype}{shape[0]}x{shape[1]}{extension}"
            numbers = matrix(shape, dtype)
            output = written(path, numbers)
            assert numpy.array_equal(loaded(path), numbers), (dtype, shape)
            if dtype in COMPLEX and output.region.separator and extension != ".mtx":
                continue  # numpy.loadtxt wants another dtype for these
            if extension in (".tif", ".tiff") and 1 in shape:
                assert tifffile.imread(path).size == numbers.size
                continue  # the library drops extents of one
            found = numpy.asarray(READERS[extension](path))
            assert found.shape == shape and numpy.array_equal(found, numbers), (dtype, shape)


def test_every_format_is_tried() -> None:
    elsewhere = {".npz", ".raw", ".ppm", ".jpg", ".jpeg", ".tiles"}
    assert set(READERS) | elsewhere == set(FORMATS)
    for extension in FORMATS:
        facts = format_of("x" + extension)
        assert set(facts.numbers) <= set(ITEMSIZE)
        assert hasattr(format_module("x" + extension), "create") == (facts.numbers != () and not facts.folder)


@pytest.mark.parametrize("extension", FORMATS)
def test_a_new_file_is_what_its_formats_facts_say(tmp_path: Path, extension: str) -> None:
    require_library("x" + extension)
    facts = format_of("x" + extension)
    for dtype, order in itertools.product(facts.numbers, facts.orders):
        target = find_target(str(tmp_path / f"a{extension}"), colours=True)
        planes = facts.planes[0]
        region = create(target, (planes * 4, 3), dtype, order, f"id{dtype}{order}", planes=planes).region
        assert (region.encoding == "text", bool(region.tiles)) == (facts.text, facts.folder)
        assert (region.byte_order, region.order) == (facts.byte_order_of(dtype), order)
        stored = 3 if order == "C" else planes * 4
        assert region.line_numbers == facts.line_numbers(stored) * (1 + region.pairs)


@pytest.mark.parametrize("dtype", ITEMSIZE)
@pytest.mark.parametrize("packed", [False, True])
def test_npz(tmp_path: Path, dtype: str, packed: bool) -> None:
    save = numpy.savez_compressed if packed else numpy.savez
    for order in ("C", "F"):
        for mark in "<>":
            numbers = matrix((13, 11), dtype).astype(numpy.dtype(dtype).newbyteorder(mark), order=order)
            save(tmp_path / "a.npz", a=numbers, b=numpy.zeros(3), c=numpy.zeros((2, 2)))
            source = files.inspect(str(tmp_path / "a.npz:a"))
            assert (source.encoded, source.member, source.order) == (packed, "a", order)
            assert numpy.array_equal(loaded(tmp_path / "a.npz:a"), numbers)
    with pytest.raises(UsageError, match="a, c"):
        files.inspect(str(tmp_path / "a.npz"))


@pytest.mark.parametrize("dtype", ITEMSIZE)
def test_raw(tmp_path: Path, dtype: str) -> None:
    numbers = matrix((13, 11), dtype)
    path = tmp_path / "a.raw"
    written(path, numbers)
    assert path.stat().st_size == numbers.nbytes
    assert numpy.array_equal(loaded(f"{path}:13x11:{dtype}"), numbers)
    path.write_bytes(b"head" + numbers.astype(numpy.dtype(dtype).newbyteorder(">")).tobytes() + b"tail")
    assert numpy.array_equal(loaded(f"{path}:13x11:>{dtype}:4"), numbers)
    with pytest.raises(UsageError, match="bytes"):
        files.inspect(f"{path}:13x11:{dtype}")
    written(f"{path}:13x11:{dtype}", numbers, force=True)
    with pytest.raises(UsageError, match="a different layout"):
        written(f"{path}:11x13:{dtype}", numbers, force=True)
    with pytest.raises(UsageError, match="ROWSxCOLUMNS"):
        try:
            files.inspect(str(path))
        except UsageError as error:
            raise UsageError(error.text()) from None


@pytest.mark.parametrize("dtype", [dtype for dtype in ITEMSIZE if dtype not in ("complex128",)])
def test_safetensors(tmp_path: Path, dtype: str) -> None:
    library = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "a.safetensors"
    numbers = matrix((13, 11), dtype)
    try:
        library.save_file({"x": numbers, "v": numpy.zeros(5)}, path, {"some": "remark"})
    except Exception as error:
        pytest.skip(f"the library does not write {dtype}: {error}")
    assert numpy.array_equal(loaded(path), numbers)
    assert numpy.array_equal(loaded(f"{path}:x"), numbers)
    written(f"{tmp_path / 'b.safetensors'}:y", numbers)
    assert numpy.array_equal(library.load_file(tmp_path / "b.safetensors")["y"], numbers)


def test_safetensors_refuses_types_by_name(tmp_path: Path) -> None:
    head = json.dumps({"x": {"dtype": "F8_E4M3", "shape": [1, 2], "data_offsets": [0, 2]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + b"ab")
    with pytest.raises(UsageError, match="F8_E4M3"):
        files.inspect(str(tmp_path / "a.safetensors:x"))


def test_bfloat16_is_the_upper_half_of_float32(tmp_path: Path) -> None:
    numbers = numpy.random.default_rng(1).standard_normal((5, 3, 7)).astype("float32")
    numbers[0, 0, :4] = [numpy.inf, -numpy.inf, 0.0, -0.0]
    halves = (numbers.view("uint32") >> 16).astype("<u2")
    head = json.dumps(
        {"x": {"dtype": "BF16", "shape": [5, 3, 7], "data_offsets": [0, halves.nbytes]}}
    ).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + halves.tobytes())
    expected = (halves.astype("uint32") << 16).view("float32")
    for brackets, index in (("2", 2), (":,1", (slice(None), 1))):
        found = loaded(f"{tmp_path / 'a.safetensors'}[{brackets}]")
        assert numpy.array_equal(found.view("uint32"), expected[index].copy().view("uint32"))


@pytest.mark.parametrize("dtype", ITEMSIZE)
def test_npz_is_written_as_numpy_reads_it(tmp_path: Path, dtype: str) -> None:
    for shape in SHAPES:
        numbers = matrix(shape, dtype)
        for name, member in (("a.npz", "arr_0"), ("b.npz:some name", "some name")):
            written(tmp_path / name, numbers, force=True)
            with numpy.load(tmp_path / name.partition(":")[0]) as archive:
                assert archive.files == [member]
                assert numpy.array_equal(archive[member], numbers) and archive[member].dtype == numbers.dtype
            assert not files.inspect(str(tmp_path / name)).encoded
            assert numpy.array_equal(loaded(tmp_path / name), numbers)


@pytest.mark.parametrize(
    "word", ["f4", "single", "float", "double", "int", "i2", "u8", "complex", "c8", "bool"]
)
def test_types_have_numpys_short_names(word: str) -> None:
    assert parse_dtype(word, "--dtype") == number_type(numpy.dtype(word), "it")


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric", "hermitian"])
@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_matrix_market(tmp_path: Path, dtype: str, symmetry: str) -> None:
    numbers = matrix((6, 6), dtype) + 1
    if symmetry != "general":
        upper = numpy.triu(numbers, 1)
        sign = -1 if symmetry == "skew-symmetric" else 1
        lower = upper.conj().T if symmetry == "hermitian" else upper.T
        numbers = upper + sign * lower
        numbers = numbers.astype(dtype)
    scipy.io.mmwrite(tmp_path / "a.mtx", numbers, comment="two\nlines", symmetry=symmetry)
    source = files.inspect(str(tmp_path / "a.mtx"))
    assert source.dtype == dtype and source.encoded == (symmetry != "general")
    assert numpy.array_equal(loaded(tmp_path / "a.mtx"), numbers)


def test_tiles(tmp_path: Path) -> None:
    path = tmp_path / "a.tiles"
    numbers = matrix((13, 11), "int32")
    cut = [((0, 5), (0, 11)), ((5, 13), (0, 4)), ((5, 9), (4, 11)), ((9, 13), (4, 11)), ((13, 13), (0, 11))]
    output = written(path, numbers, rectangles=cut)
    assert len(output.region.tiles) == 5 and numpy.array_equal(loaded(path), numbers)
    assert numpy.array_equal(numpy.load(path / "tile-id-000001.npy"), numbers[5:, :4])
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["tilewise"] == 1 and manifest["shape"] == [13, 11] and manifest["dtype"] == "int32"
    with pytest.raises(UsageError, match="exists already"):
        check_target(str(path), False)
    target = check_target(str(path) + "/", True)
    other = create(target, (3, 3), "float64", "C", "other")
    assert numpy.array_equal(loaded(path), numbers)
    assert other.discard() == [] and numpy.array_equal(loaded(path), numbers)
    other = create(target, (3, 3), "float64", "C", "other")
    filled(other.region, matrix((3, 3)))
    other.commit(sync=True, force=True)
    assert sorted(os.listdir(path)) == ["manifest.json", "tile-other-000000.npy"]
    assert numpy.array_equal(loaded(path), matrix((3, 3)))
    (path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"notes\.txt"):
        check_target(str(path), True)


def test_tiles_never_replace_what_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "empty.tiles").mkdir()
    (tmp_path / "file.tiles").write_text("")
    (tmp_path / "other.tiles").mkdir()
    (tmp_path / "other.tiles" / "manifest.json").write_text('{"name": "a web page"}')
    for name in ("empty", "file", "other"):
        with pytest.raises(UsageError):
            check_target(str(tmp_path / f"{name}.tiles"), True)
    output = create(check_target(str(tmp_path / "new.tiles"), False), (2, 2), "int8", "C", "id")
    assert output.discard() == [] and not (tmp_path / "new.tiles").exists()
    with pytest.raises(UsageError, match="overlap"):
        cut = [((0, 2), (0, 2)), ((1, 2), (1, 2))]
        create(check_target(str(tmp_path / "new.tiles"), False), (2, 2), "int8", "C", "id", rectangles=cut)


def test_names_with_colons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    numpy.save("a.npz:b.npy", matrix((2, 3)))
    assert loaded("a.npz:b.npy").shape == (2, 3)
    numpy.savez("A.npz", b=matrix((3, 2)))
    os.rename("A.npz", "A.NPZ")
    assert split_name("A.NPZ:b") == ("A.NPZ", "b")
    assert split_name("x.h5:/g/y.npy:z") == ("x.h5", "/g/y.npy:z")
    assert format_name("x.h5:/g/y.npy") == "h5" and format_name("random:3x3") == "generated"
    assert loaded("A.NPZ:b").shape == (3, 2)
    numpy.save("plain.npy", matrix((2, 2)))
    with pytest.raises(UsageError, match="one matrix only"):
        files.inspect("plain.npy:x")
    with pytest.raises(UsageError, match="nothing after"):
        files.inspect("A.NPZ:")
    with pytest.raises(UsageError, match="does not exist"):
        files.inspect("gone.h5:/x")


def test_what_a_format_cannot_hold(tmp_path: Path) -> None:
    for name, dtype, said in (
        ("a.png", "float64", "uint8 or uint16"),
        ("a.jpg", "uint16", "uint8"),
        ("a.bin", "float32", "float64"),
        ("a.petsc", "int8", "complex128"),
    ):
        with pytest.raises(UsageError, match=said) as refused:
            check_holds(check_target(str(tmp_path / name), False), dtype)
        assert "--dtype" in refused.value.advice
    for name in ("a.bin", "a.csv", "a.h5", "a.png", "a.tif"):
        dtype = format_of(name).numbers[-1] if name != "a.bin" else "float64"
        with pytest.raises(UsageError, match="column by column"):
            create(check_target(str(tmp_path / name), False), (2, 2), dtype, "F", "id")
    for name in ("a.png", "a.tif", "a.pgm"):
        with pytest.raises(UsageError, match="at least one number"):
            create(check_target(str(tmp_path / name), False), (0, 2), "uint8", "C", "id")
    assert not os.listdir(tmp_path)


def test_a_column_after_the_other_is_all_that_mtx_has(tmp_path: Path) -> None:
    target = check_target(str(tmp_path / "a.mtx"), False)
    with pytest.raises(UsageError, match="row by row: a .mtx file is column by column") as refused:
        create(target, (2, 2), "float64", "C", "id")
    assert refused.value.advice == "--order F" and not os.listdir(tmp_path)


def test_fortran_order_where_it_can_be_written(tmp_path: Path) -> None:
    numbers = matrix((13, 11))
    written(tmp_path / "a.npy", numbers, order="F")
    assert numpy.load(tmp_path / "a.npy").flags.f_contiguous
    assert numpy.array_equal(loaded(tmp_path / "a.npy"), numbers)
    written(tmp_path / "a.raw", numbers, order="F")
    assert numpy.array_equal(loaded(f"{tmp_path / 'a.raw'}:11x13"), numbers.T)


def test_a_decoded_file_is_removed_when_that_fails(tmp_path: Path) -> None:
    numpy.savez_compressed(tmp_path / "a.npz", a=numpy.arange(5000.0).reshape(50, 100))
    source = files.inspect(str(tmp_path / "a.npz"))
    first, second = decoded(source, str(tmp_path), "id"), decoded(source, str(tmp_path), "id")
    assert os.path.basename(first.path) == ".a.npz.id.raw" and first.path != second.path
    assert os.path.getsize(first.path) == first.file_bytes == 40000
    os.unlink(first.path)
    os.unlink(second.path)
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[300:340] = bytes(40)
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(UsageError, match=r"a\.npz"):
        decoded(source, str(tmp_path), "id")
    assert os.listdir(tmp_path) == ["a.npz"]


def test_a_full_disk_ends_a_decoding_as_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numpy.savez_compressed(tmp_path / "a.npz", a=matrix((5, 5)))
    source = files.inspect(str(tmp_path / "a.npz"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tilewise.files.formats.npz.decode", full)
    with pytest.raises(RunError, match="No space left"):
        decoded(source, str(tmp_path), "id")


def test_zip_members_are_found_behind_other_bytes(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("notes.txt", "hello")
        info = zipfile.ZipInfo("x.npy")
        info.extra = b"\x99\x99\x04\x00abcd"
        with archive.open(info, "w") as file:
            numpy.lib.format.write_array(file, matrix((4, 3)))
    assert numpy.array_equal(loaded(tmp_path / "a.npz"), matrix((4, 3)))


def test_an_interruption_passes_through_a_library_that_wraps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numpy.save(tmp_path / "a.npy", matrix((2, 2)))

    def wrapping(*_: object) -> None:
        try:
            raise Interrupted("a signal")
        except Interrupted as error:
            raise ValueError("the callback failed") from error

    monkeypatch.setattr("tilewise.files.formats.npy.inspect", wrapping)
    with pytest.raises(Interrupted):
        files.inspect(str(tmp_path / "a.npy"))
    monkeypatch.setattr("tilewise.files.formats.npy.create", wrapping)
    with pytest.raises(Interrupted):
        create(check_target(str(tmp_path / "b.npy"), False), (2, 2), "int8", "C", "id")
    assert os.listdir(tmp_path) == ["a.npy"]
