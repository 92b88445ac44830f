"""The .npy format: everything numpy writes is understood, or refused in one sentence."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy
import pytest
from format_files import check_target
from hypothesis import given
from hypothesis import strategies as st
from stopwatch import within
from tilewise import files
from tilewise.base.errors import RunError, UsageError
from tilewise.files.dtypes import ITEMSIZE, of_product
from tilewise.files.formats import npy
from tilewise.files.output import create
from tilewise.files.reading import mapped

DTYPES = [*ITEMSIZE]


def saved(path: Path, array: object, name: str = "x.npy") -> str:
    numpy.save(path / name, array, allow_pickle=True)
    return str(path / name)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("byte_order", ["<", ">"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_numpy_writes_is_found(tmp_path: Path, dtype: str, byte_order: str, order: str) -> None:
    array = numpy.arange(15).reshape(3, 5).astype(numpy.dtype(dtype).newbyteorder(byte_order), order=order)
    region = files.inspect(saved(tmp_path, array))
    assert (region.rows, region.columns, region.dtype, region.order) == (3, 5, dtype, order)
    if ITEMSIZE[dtype] > 1:
        assert region.byte_order == {"<": "little", ">": "big"}[byte_order]
    assert region.file_bytes == os.path.getsize(region.path)
    assert numpy.array_equal(mapped(region), array)


def test_bool_counts_as_uint8(tmp_path: Path) -> None:
    assert files.inspect(saved(tmp_path, numpy.eye(2, dtype=bool))).dtype == "uint8"


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_header_version_is_read(tmp_path: Path, version: tuple[int, int]) -> None:
    path = tmp_path / "x.npy"
    with path.open("wb") as file:
        numpy.lib.format.write_array(file, numpy.ones((2, 2)), version=version)
    assert files.inspect(str(path)).rows == 2


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (1, 1)])
def test_empty_and_tiny_matrices(tmp_path: Path, shape: tuple[int, int]) -> None:
    region = files.inspect(saved(tmp_path, numpy.zeros(shape)))
    assert (region.rows, region.columns) == shape
    assert mapped(region).shape == shape


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (numpy.array([[object()]]), "never unpickles"),
        (numpy.zeros((2, 2), [("a", "f8"), ("b", "i4")]), "fields a, b"),
        (numpy.array([["x", "yz"]]), "text"),
        (numpy.array([[b"x"]]), "text or raw bytes"),
        (numpy.zeros((2, 2), "V8"), "raw bytes"),
        (numpy.zeros((2, 2), "M8[s]"), "dates"),
        (numpy.zeros((2, 2), "m8[s]"), "durations"),
        (numpy.zeros((2, 2), numpy.longdouble), "from machine to machine"),
        (numpy.zeros((2, 2), numpy.clongdouble), "from machine to machine"),
        (numpy.float64(1), "(1, 1)"),
        (numpy.zeros((2, 3, 4)), "x.npy[0]"),
        (numpy.zeros((2, 0, 4, 5)), "4 dimensions"),
    ],
)
def test_what_is_no_matrix_of_numbers_is_refused(tmp_path: Path, array: object, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        files.inspect(saved(tmp_path, array))
    assert said in refused.value.text()


def test_a_header_that_lies_is_refused_with_both_sizes(tmp_path: Path) -> None:
    path = Path(saved(tmp_path, numpy.zeros((5, 5))))
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(UsageError, match=r"329 bytes.*promises 328.*more data than"):
        files.inspect(str(path))


def test_what_is_no_npy_at_all(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_text("1 2 3\n4 5 6\n")
    with pytest.raises(UsageError, match="magic"):
        files.inspect(str(tmp_path / "x.npy"))


def test_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.npy")
    with within(1), pytest.raises(UsageError, match="pipe"):
        files.inspect(str(tmp_path / "x.npy"))


def test_folders_devices_links_and_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "d.npy").mkdir()
    with pytest.raises(UsageError, match="folder"):
        files.inspect(str(tmp_path / "d.npy"))
    (tmp_path / "l.npy").symlink_to("gone.npy")
    with pytest.raises(UsageError, match=r"link to gone\.npy"):
        files.inspect(str(tmp_path / "l.npy"))
    (tmp_path / "n.npy").symlink_to("/dev/null")
    with pytest.raises(UsageError, match="device"):
        files.inspect(str(tmp_path / "n.npy"))
    path = Path(saved(tmp_path, numpy.zeros((2, 2))))
    with pytest.raises(UsageError, match="does not exist"):
        files.inspect(str(path / "deeper.npy"))
    if os.geteuid() != 0:
        path.chmod(0)
        with pytest.raises(UsageError, match="permission"):
            files.inspect(str(path))


def test_a_slip_of_the_keyboard_is_pointed_out(tmp_path: Path) -> None:
    saved(tmp_path, numpy.zeros((2, 2)), "matrix.npy")
    with pytest.raises(UsageError) as refused:
        files.inspect(str(tmp_path / "matrx.npy"))
    assert refused.value.advice.endswith("matrix.npy")


def test_an_unknown_extension_says_which_are_known(tmp_path: Path) -> None:
    (tmp_path / "x.foo").write_text("")
    (tmp_path / "plain").write_text("")
    for name in ("x.foo", "plain"):
        with pytest.raises(UsageError, match=r"expected one of \.npy"):
            files.inspect(str(tmp_path / name))


def test_a_name_that_is_no_utf8_is_refused() -> None:
    with pytest.raises(UsageError, match="UTF-8"):
        files.inspect(os.fsdecode(b"\xff.npy"))


@given(
    st.tuples(st.integers(0, 3000), st.integers(0, 3000)),
    st.sampled_from(DTYPES),
    st.sampled_from(["C", "F"]),
)
def test_our_headers_are_read_back_by_numpy(shape: tuple[int, int], dtype: str, order: str) -> None:
    import io

    head = npy.header_bytes(shape, dtype, order)
    size = shape[0] * shape[1] * ITEMSIZE[dtype]
    assert len(head) % (4096 if size >= 1 << 20 else 64) == 0
    file = io.BytesIO(head)
    assert numpy.lib.format.read_magic(file) == (1, 0)
    found = numpy.lib.format.read_array_header_1_0(file)
    assert found == (shape, order == "F", numpy.dtype(dtype))
    assert file.tell() == len(head)


@pytest.mark.parametrize("shape", [(3, 5), (400, 400), (0, 7)])
def test_an_output_is_a_part_file_until_it_is_committed(tmp_path: Path, shape: tuple[int, int]) -> None:
    output = create(check_target(str(tmp_path / "C.npy"), False), shape, "float64", "C", "id7")
    assert [path.name for path in tmp_path.iterdir()] == [".C.npy.id7.part"]
    region = output.region
    assert os.path.getsize(region.path) == region.file_bytes == region.offset + shape[0] * shape[1] * 8
    output.commit(sync=True)
    assert [path.name for path in tmp_path.iterdir()] == ["C.npy"]
    assert numpy.array_equal(numpy.load(tmp_path / "C.npy"), numpy.zeros(shape))


def test_a_discarded_output_leaves_the_old_file_as_it_was(tmp_path: Path) -> None:
    path = saved(tmp_path, numpy.ones((2, 2)), "C.npy")
    with pytest.raises(UsageError, match="exists already"):
        check_target(path, False)
    output = create(check_target(path, True), (3, 3), "float64", "C", "id")
    assert output.discard() == [] and output.discard() == []
    assert numpy.array_equal(numpy.load(path), numpy.ones((2, 2)))


def test_modes_and_links(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        create(check_target(str(tmp_path / "new.npy"), False), (1, 1), "int8", "C", "a").commit()
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new.npy").stat().st_mode) == 0o640
    (tmp_path / "elsewhere").mkdir()
    target = Path(saved(tmp_path / "elsewhere", numpy.ones((2, 2))))
    target.chmod(0o604)
    (tmp_path / "link.npy").symlink_to(target)
    output = create(check_target(str(tmp_path / "link.npy"), True), (1, 1), "int8", "C", "b")
    assert Path(output.region.path).parent == target.parent
    output.commit()
    assert (tmp_path / "link.npy").is_symlink() and numpy.load(target).shape == (1, 1)
    assert stat.S_IMODE(target.stat().st_mode) == 0o604


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "d.npy").mkdir()
    (tmp_path / "file").write_text("")
    for name, said in (
        ("d.npy", "folder"),
        ("nowhere/C.npy", "does not exist"),
        ("file/C.npy", "cannot be"),
        ("C.dat", "expected one of"),
    ):
        with pytest.raises(UsageError, match=said):
            check_target(str(tmp_path / name), True)
    (tmp_path / "loop.npy").symlink_to("loop.npy")
    with pytest.raises(UsageError):
        check_target(str(tmp_path / "loop.npy"), True)
    if os.geteuid() != 0:
        (tmp_path / "locked").mkdir(mode=0o500)
        with pytest.raises(UsageError, match="permission"):
            check_target(str(tmp_path / "locked" / "C.npy"), False)


def test_a_full_disk_is_known_before(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"the disk is too full.* needs .* left"):
        create(check_target(str(tmp_path / "C.npy"), False), (1 << 28, 1 << 28), "float64", "C", "x")
    assert not list(tmp_path.iterdir())


def test_a_very_long_name_still_gets_its_part(tmp_path: Path) -> None:
    name = "ä" * 123 + ".npy"
    output = create(check_target(str(tmp_path / name), False), (1, 1), "int8", "C", "1234567890")
    output.commit()
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("left", "right", "product"),
    [
        ("int8", "int32", "int64"),
        ("uint8", "uint16", "uint64"),
        ("uint64", "int8", "int64"),
        ("float16", "float16", "float32"),
        ("float16", "int8", "float32"),
        ("float32", "float32", "float32"),
        ("int64", "float32", "float64"),
        ("complex64", "float64", "complex128"),
        ("complex64", "float32", "complex64"),
    ],
)
def test_types_of_products(left: str, right: str, product: str) -> None:
    assert of_product(left, right) == of_product(right, left) == product


def test_generated_names() -> None:
    region = files.inspect("random:4x6:float32:7")
    assert (region.generator, region.rows, region.columns, region.dtype, region.seed) == (
        "random",
        4,
        6,
        "float32",
        7,
    )
    assert files.inspect("random:4x6").dtype == "float64"
    for wrong in ("random:", "random:4", "random:4x4:float64:x", "random:4x4:float64:1:2", "random:4x4:f5"):
        with pytest.raises(UsageError):
            files.inspect(wrong)


def test_a_list_is_shown_as_a_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as singular values."""
    from tilewise.cli import main

    name = saved(tmp_path, numpy.array([3.5, 2.0, 0.25]), "s.npy")
    assert main(["show", name]) == 0 and capsys.readouterr().out.split() == ["3.5", "2", "0.25"]
    assert main(["show", name, "-2:"]) == 0 and capsys.readouterr().out == "2.0\n0.25\n"
    assert main(["info", name]) == 0
    said = capsys.readouterr().out
    assert "3×1" in said and "one dimension, taken as a column" in said
