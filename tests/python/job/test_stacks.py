"""`--each`: jobs on every slice of a stack do what numpy and scipy do with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import tilewise as package
from conftest import InProcess, Tilewise, one_message
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import load_file
from scipy import ndimage

WITHOUT_CHILD = True
RNG = numpy.random.default_rng(31)
STACK = RNG.random((5, 4, 6))
FOUR = RNG.random((2, 3, 4, 6))
RIGHT = RNG.random((5, 6, 3))
APART = ("-n", "2", "--slices", "apart")
TOGETHER = ("-n", "3", "--slices", "together")


def turned(stack: Any, axis: int) -> Any:
    """Every slice along `axis` transposed."""
    first = numpy.moveaxis(stack, axis, 0)
    return numpy.moveaxis(first.swapaxes(1, 2), 0, axis)


def smooth(stack: Any, axis: int = 0) -> Any:
    for _ in range(3):
        slices = [
            ndimage.correlate(each, numpy.full((3, 3), 1 / 9), mode="constant")
            for each in numpy.moveaxis(stack, axis, 0)
        ]
        stack = numpy.moveaxis(numpy.stack(slices), 0, axis)
    return stack


BOTH = ("two axes", "stacks", "stencil", "convert")  # jobs that ranks do together, too
BOX = ("--steps", "3", "--weights", "box3")
JOBS = {
    "transpose": (("transpose", "a.npy", "--each", "0", "--verify", "fast"), turned(STACK, 0)),
    "gaps": (("transpose", "a.npy", "--each", "1"), turned(STACK, 1)),
    "two axes": (("transpose", "four.npy", "--each", "-1,0"), FOUR.swapaxes(1, 2)),
    "of a slice": (("transpose", "four.npy[:,1]", "--each", "0"), FOUR[:, 1].swapaxes(1, 2)),
    "stacks": (("multiply", "a.npy", "b.npy", "--each", "0"), STACK @ RIGHT),
    "a stack and a matrix": (
        ("multiply", "one.npy", "a.npy", "--each", "0", "--transpose-a", "--transpose-b", "--verify", "fast"),
        RIGHT[0].T @ STACK.swapaxes(1, 2),
    ),
    "stencil": (("stencil", "a.npy", "--each", "0", *BOX, "--verify", "fast"), smooth(STACK)),
    "stencil by columns": (("stencil", "f.npy", "--each", "2", *BOX), smooth(STACK, 2)),
    "convert": (
        ("convert", "big.npy", "--each", "0", "--order", "F", "--verify", "fast"),
        STACK.astype("f4"),
    ),
}


@pytest.fixture
def stacks(tilewise: Tilewise) -> Tilewise:
    """The command in a folder with stacks."""
    arrays = {"a": STACK, "b": RIGHT, "one": RIGHT[0], "four": FOUR, "f": numpy.asfortranarray(STACK)}
    for name, array in {**arrays, "big": STACK.astype(">f4")}.items():
        numpy.save(tilewise.folder / f"{name}.npy", array)
    return tilewise


@pytest.mark.parametrize(
    ("job", "how"),
    [
        *((job, APART) for job in JOBS),
        *((job, TOGETHER) for job in ("two axes", "stacks", "stencil", "convert")),
    ],
    ids=lambda each: each if isinstance(each, str) else each[-1],
)
def test_slices_of_the_result_are_those_of_numpy(stacks: Tilewise, job: str, how: tuple[str, ...]) -> None:
    words, expected = JOBS[job]
    done = stacks(*words, *how, "-o", "out.npy", "--json", "-")
    assert done.returncode == 0, done.stderr
    out, record = numpy.load(stacks.folder / "out.npy"), json.loads(done.stdout)
    assert out.shape == expected.shape and out.dtype == expected.dtype
    assert_allclose(out, expected, rtol=1e-13)
    assert out.flags.f_contiguous == (job in ("stencil by columns", "convert"))
    each = record["variant"]["each"]
    assert each["slices"] == numpy.prod(each["extents"]) and each["apart"] == (how == APART)
    assert record["outputs"][0]["shape"] == list(expected.shape)
    assert record["verification"] is None or record["verification"]["passed"]
    assert not [name for name in stacks.files() if name.startswith(".")]


@pytest.mark.parametrize("how", [APART, TOGETHER], ids=["apart", "together"])
def test_svd_is_that_of_a_stack(stacks: Tilewise, how: tuple[str, ...]) -> None:
    done = stacks("svd", "four.npy", "--each", "0,1", "--scaled", *how, "-o", "out")
    assert done.returncode == 0, done.stderr
    u, s, vt, us = (numpy.load(stacks.folder / "out" / f"{name}.npy") for name in ("U", "s", "Vt", "US"))
    expected = numpy.linalg.svd(FOUR, full_matrices=False)
    assert [each.shape for each in (u, s, vt)] == [each.shape for each in expected]
    assert_allclose(s, expected[1], rtol=1e-12)
    assert_allclose(us @ vt, FOUR, rtol=1e-11)
    assert_allclose(u * s[..., None, :], us, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        *(("f.npy", axis) for axis in (0, 1, 2)),
        ("big.npy", 1),
        *(("c.npz", axis) for axis in (0, 1)),
        ("a.h5:x", 1),
        *(("a.h5:c", axis) for axis in (0, 2)),
        *(("f.raw:5x4x6:>float64:F", axis) for axis in (1, 2)),
    ],
)
def test_stacks_are_read_from_any_array(stacks: Tilewise, name: str, axis: int) -> None:
    folder, expected = stacks.folder, STACK.astype("f4") if name == "big.npy" else STACK
    numpy.savez_compressed(folder / "c.npz", x=STACK)
    STACK.T.astype(">f8").tofile(folder / "f.raw")
    with h5py.File(folder / "a.h5", "w") as book:
        book["x"] = STACK
        book.create_dataset("c", data=STACK, chunks=(2, 3, 4), compression="gzip")
    done = stacks("transpose", name, "--each", axis, "-o", "out.npy", "-n", "1")
    if name == "c.npz" and axis > 0:
        assert "without compression" in one_message(done, 2)
        return
    assert done.returncode == 0, done.stderr
    assert_array_equal(numpy.load(folder / "out.npy"), turned(expected, axis))
    assert not [each for each in stacks.files() if each.startswith(".")]


def read(path: Path) -> Any:
    """What other programs find in a file."""
    if path.suffix in (".h5", ".nc"):
        with h5py.File(path) as book:
            return book["matrix"][()]
    if path.suffix == ".npz":
        return numpy.load(path)["arr_0"]
    if path.suffix == ".safetensors":
        return load_file(path)["matrix"]
    return numpy.fromfile(path).reshape(6, 5, 4) if path.suffix == ".raw" else numpy.load(path)


@pytest.mark.parametrize("kind", ["npy", "npz", "h5", "nc", "safetensors", "raw"])
def test_stacks_are_written_in_every_format_that_holds_arrays(stacks: Tilewise, kind: str) -> None:
    """Along an axis whose slices have gaps, for which the numbers are moved at the end."""
    done = stacks("transpose", "a.npy", "--each", "1", "-o", f"out.{kind}", "-n", "1")
    assert done.returncode == 0, done.stderr
    expected = turned(STACK, 1)
    assert_array_equal(read(stacks.folder / f"out.{kind}").reshape(expected.shape), expected)
    assert not [each for each in stacks.files() if each.startswith(".")]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("transpose", "one.npy", "--each", "0"), "one.npy has 2 dimensions, and a stack of matrices has 3"),
        (("transpose", "a.npy", "--each", "3"), "--each 3: a.npy has 3 dimensions, counted from 0"),
        (("transpose", "a.npy", "--each", "0,-3"), "--each 0,-3 names an axis twice"),
        (("transpose", "a.npy", "--each", "x"), "--each expects an axis such as 0"),
        (("transpose", "four.npy", "--each", "0"), "--each 0 leaves 3 dimensions of four.npy"),
        (("transpose", "a.npy[0|0]", "--each", "0"), "[0|0] is no slice"),
        (("transpose", "random:4x4:float64", "--each", "0"), "is no stack"),
        (("transpose", "a.npy", "--each", "0", "-o", "out.csv"), "out.csv cannot hold a stack: a .csv file"),
        (
            ("multiply", "a.npy", "four.npy[0]", "--each", "0"),
            "a.npy has 5 slices along axis 0, and four.npy[0] has 3",
        ),
        (("multiply", "one.npy", "one.npy", "--each", "0"), "neither one.npy nor one.npy is a stack"),
        (("multiply", "a.npy", "a.npy", "--each", "0"), "do not fit: 6 columns meet 4 rows"),
    ],
)
def test_what_makes_no_sense_is_refused(
    fake: Tilewise, here: InProcess, words: tuple[str, ...], expected: str
) -> None:
    for name, array in {"a": STACK, "one": RIGHT[0], "four": FOUR}.items():
        numpy.save(fake.folder / f"{name}.npy", array)
    where = () if "-o" in words else ("-o", "out.npy")
    assert expected in one_message(here(*words, *where), 2)


@pytest.mark.parametrize("how", [("-n", "1"), APART, TOGETHER], ids=["alone", "apart", "together"])
def test_an_error_names_the_slice_and_nothing_is_published(stacks: Tilewise, how: tuple[str, ...]) -> None:
    broken = STACK.copy()
    broken[3, 2, 1] = numpy.nan
    numpy.save(stacks.folder / "broken.npy", broken)
    before = stacks.files()
    message = one_message(stacks("svd", "broken.npy", "--each", "0", *how, "-o", "out"), 2)
    assert "broken.npy[3]: row 2, column 1 (from 0) is nan" in message
    assert stacks.files() == before


def test_slices_that_fail_their_proof_are_named(stacks: Tilewise) -> None:
    stacks.environment["TILEWISE_FAULT"] = "element"
    before = stacks.files()
    done = stacks("transpose", "a.npy", "--each", "1", "--verify", "fast", "-n", "2", "-o", "out.npy", "-q")
    assert "slices 0, 1, 2 and 3 of the result failed its fast verification" in one_message(done, 3)
    assert stacks.files() == before


def test_empty_stacks_have_empty_results(stacks: Tilewise) -> None:
    numpy.save(stacks.folder / "none.npy", numpy.zeros((0, 4, 6)))
    assert stacks("transpose", "none.npy", "--each", "0", "-n", "2", "-o", "out.npy").returncode == 0
    assert numpy.load(stacks.folder / "out.npy").shape == (0, 6, 4)


def test_functions_take_and_return_stacks(stacks: Tilewise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stacks.folder)
    for key, value in stacks.environment.items():
        monkeypatch.setenv(key, value)
    assert_allclose(package.multiply(STACK, RIGHT, each=0, ranks=1), STACK @ RIGHT, rtol=1e-13)
    u, s, vt = package.svd(STACK, each=0, ranks=1)
    assert_allclose((u * s[:, None]) @ vt, STACK, rtol=1e-11)
    norms = package.norm(FOUR, each=(0, 1), ranks=1)
    assert_allclose(norms.frobenius, numpy.linalg.norm(FOUR, axis=(2, 3)), rtol=1e-13)
    assert package.plan("svd", STACK, each=0).variants[0].variant.each.slices == 5
