"""The commands as functions of arrays: the same as numpy and scipy, whatever lies behind an array."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy
import pytest
import tilewise as package
from conftest import Tilewise
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage

RNG = numpy.random.default_rng(5)
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def nothing_left(tilewise: Tilewise, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In the folder of a test, with the real worker; nothing is left in shared memory."""
    monkeypatch.chdir(tilewise.folder)
    for key, value in tilewise.environment.items():
        monkeypatch.setenv(key, value)
    yield
    mine = f"tilewise-arrays-{os.getpid()}-"
    assert [name for name in os.listdir("/dev/shm") if name.startswith(mine)] == []


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int32", "uint8"])
def test_products(dtype: str) -> None:
    a, b = (RNG.random((17, 5)) * 9).astype(dtype), (RNG.random((5, 11)) * 9).astype(dtype)
    product = package.multiply(a, b, ranks=2)
    wide = {"int32": "int64", "uint8": "uint64"}  # whole numbers are multiplied in 64 bits
    assert type(product) is numpy.ndarray and product.dtype == wide.get(dtype, dtype)
    assert_allclose(product, a.astype(product.dtype) @ b, rtol=1e-5)
    product[0, 0] = 1  # it is the caller's


@pytest.mark.parametrize(
    ("m", "n"), [((3,), (3, 4)), ((4, 3), (3,)), ((3,), (3,)), ((0, 3), (3, 2)), ((2, 0), (0, 2))]
)
def test_shapes_mean_what_they_mean_to_numpy(m: tuple[int, ...], n: tuple[int, ...]) -> None:
    a, b = RNG.random(m), RNG.random(n)
    assert_allclose(package.multiply(a, b), a @ b)


def test_other_layouts_of_memory() -> None:
    a = RNG.random((30, 20))
    for each in (a[::2, ::-3], numpy.asfortranarray(a), a.T, a.astype(">f8"), numpy.ma.masked_invalid(a)):
        assert_array_equal(package.transpose(each), numpy.asarray(each).T)
    assert_array_equal(package.transpose([[1, 2], [3, 4], [5, 6]]), [[1, 3, 5], [2, 4, 6]])


def test_maps_of_files_are_read_where_they_lie() -> None:
    a = RNG.random((40, 30))
    numpy.save("A.npy", a)
    numpy.save("F.npy", numpy.asfortranarray(a))
    for name in ("A.npy", "F.npy"):
        with package.records() as done:
            assert_array_equal(package.transpose(numpy.load(name, mmap_mode="r")), a.T)
        assert done[0].inputs[0].path == os.path.abspath(name)
    writable = numpy.load("A.npy", mmap_mode="r+")
    writable[0, 0] = 7
    assert package.transpose(writable)[0, 0] == 7
    private = numpy.load("A.npy", mmap_mode="c")
    private[0, 0] = 8  # in memory alone
    assert package.transpose(private)[0, 0] == 8
    assert_array_equal(package.transpose(writable[3:, 2:]), writable[3:, 2:].T)
    raw = numpy.memmap("A.npy", dtype="float64", mode="r", shape=(5, 4), offset=256)
    assert_array_equal(package.transpose(raw), numpy.asarray(raw).T)


def test_decompositions() -> None:
    a = RNG.random((20, 12))
    u, s, vt = package.svd(a)
    assert (u.shape, s.shape, vt.shape) == ((20, 12), (12,), (12, 12))
    assert_allclose((u * s) @ vt, a, atol=1e-12)
    assert_allclose(s, numpy.linalg.svd(a, compute_uv=False))
    assert_allclose(package.svd(a, values_only=True), s)
    assert package.svd(a, components=3)[0].shape == (20, 3)
    assert package.svd(a, out="svd").outputs[0].path.endswith("U.npy") and Path("svd/s.npy").exists()


def test_stencils_with_an_array_of_weights() -> None:
    a, weights = RNG.random((25, 31)), RNG.random((3, 3)) / 9
    swept = package.stencil(a, steps=2, weights=weights, boundary="reflect", ranks=2)
    wanted = a
    for _ in range(2):
        wanted = ndimage.correlate(wanted, weights, mode="reflect")
    assert_allclose(swept, wanted)


def test_files_and_rules() -> None:
    numpy.savetxt("A.txt", [[1.5, 2], [3, 4]])
    assert_array_equal(package.convert("A.txt"), [[1.5, 2], [3, 4]])
    assert package.convert("A.txt", dtype="int16").dtype == "int16"
    made = package.generate(shape=(4, 5), kind="ramp", dtype="int32")
    assert made.shape == (4, 5) and made.dtype == "int32"
    assert package.generate("G.npy", shape="4x5").outputs[0].shape == (4, 5)
    assert package.info("G.npy", stats=True)["statistics"]["non_finite"] == 0
    assert package.info(numpy.zeros((2, 3)))["shape"] == [2, 3]


def test_records_are_of_the_calls_within() -> None:
    a = RNG.random((6, 6))
    with package.records() as outer:
        package.transpose(a)
        with package.records() as inner:
            package.multiply(a, a, ranks=2)
        thread = threading.Thread(target=package.transpose, args=(a,))
        thread.start()
        thread.join()
    assert [each.command for each in outer] == ["transpose"] and [each.command for each in inner] == [
        "multiply"
    ]
    assert inner[0].variant.ranks == 2 and inner[0].verification.passed


def test_calls_from_several_threads() -> None:
    a = RNG.random((20, 20))
    results: list[numpy.ndarray] = []
    crew = [threading.Thread(target=lambda: results.append(package.multiply(a, a))) for _ in range(3)]
    for each in crew:
        each.start()
    for each in crew:
        each.join()
    assert len(results) == 3
    for each in results:
        assert_allclose(each, a @ a)


def test_errors_speak_of_the_callers_arrays() -> None:
    with pytest.raises(package.UsageError, match=r"^a \(2×3\) and b \(2×3\) do not fit") as usage:
        package.multiply(numpy.ones((2, 3)), numpy.ones((2, 3)))
    assert usage.value.advice == "--transpose-a" and usage.value.record is None
    assert isinstance(usage.value, package.TilewiseError)
    with pytest.raises(package.UsageError, match="a is an array of Python objects, and a"):
        package.transpose(numpy.array([[object()]]))
    with pytest.raises(package.UsageError, match="a is neither a path nor an array"):
        package.transpose([[1, 2], [3]])
    with pytest.raises(package.UsageError, match="a has 3 dimensions"):
        package.transpose(numpy.ones((2, 2, 2)))
    with pytest.raises(package.VerificationError, match="not orthogonal after 1 sweep") as verdict:
        package.svd(RNG.random((40, 40)), max_sweeps=1, algorithm="jacobi", start="qr")
    assert verdict.value.record.command == "svd" and verdict.value.record.result["sweeps"] == 1


def test_warnings_are_those_that_the_command_prints() -> None:
    """With and without `out`, and of the line that calls; records speak of arrays as the caller does, too."""
    a = RNG.random((5, 4))
    a[1, 2] = numpy.nan
    with h5py.File("P.h5", "w") as book:
        book["x"] = a
        book["x"].attrs["scale_factor"] = 0.5
    packed, cut = "P.h5:/x: the attribute scale_factor is not applied", "1 number is beyond the output's type"
    calls: list[tuple[Callable[[], object], list[str]]] = [
        (lambda: package.convert("P.h5:/x", out="B.npy", dtype="int16"), [packed, "truncates", cut]),
        (lambda: package.convert("P.h5:/x", dtype="int16"), [packed, "truncates", cut]),
        (lambda: package.transpose("P.h5:/x"), [packed]),
        (lambda: package.run("transpose", "P.h5:/x", out="T.npy"), [packed]),
        (lambda: package.info("P.h5:/x"), [packed]),
        (lambda: package.plan("transpose", "P.h5:/x"), [packed]),
        (lambda: package.stencil(a, steps=1), ["1 number of the input is NaN"]),
        (lambda: package.norm(a), ["1 of 20 numbers of a is NaN"]),
        (
            lambda: package.multiply(a, numpy.ones((4, 3))),
            ["numbers of a is NaN or infinite, and so are 3 of 15"],
        ),
        (lambda: package.generate(shape=(3, 3)), []),
    ]
    for call, wanted in calls:
        with warnings.catch_warnings(record=True) as caught, package.records() as done:
            warnings.simplefilter("always")
            call()
        texts = [str(each.message) for each in caught]
        for words in wanted:
            assert any(words in text for text in texts), (words, texts)
        assert not texts or wanted
        assert {(each.category, each.filename) for each in caught} <= {(package.TilewiseWarning, __file__)}
        if done:
            assert done[0].warnings == texts
    with warnings.catch_warnings(), pytest.raises(package.UsageError):
        warnings.simplefilter("error")
        package.transpose("P.h5:/x", out="T.npy")
    with warnings.catch_warnings(), pytest.raises(package.TilewiseWarning, match="scale_factor"):
        warnings.simplefilter("error")
        package.transpose("P.h5:/x", out="T.npy", force=True)


def test_records_call_arrays_what_the_caller_does() -> None:
    a = RNG.random((40, 30))
    with package.records() as done:
        package.multiply(a, a.T)
        package.svd(a, components=2)
    assert [each.path for each in done[0].inputs + done[0].outputs] == ["a", "b", "the result"]
    assert [each.path for each in done[1].outputs] == [
        "the result/U.npy",
        "the result/s.npy",
        "the result/Vt.npy",
    ]
    assert {each.path for each in done[0].environment.storage} == {"a", "b", "the result"}
    assert package.info(a)["path"] == "a"


def test_what_killed_callers_left_goes_with_the_next_call() -> None:
    code = "import numpy, os, tilewise.api.arrays as a; a.Arrays({'x': numpy.ones(2)}).word('x'); os._exit(1)"
    child = subprocess.Popen([sys.executable, "-c", code])
    child.wait()
    left = lambda: [name for name in os.listdir("/dev/shm") if f"-arrays-{child.pid}-" in name]  # noqa: E731
    assert left()
    package.transpose(numpy.ones((2, 2)))
    assert not left()


def test_tables_of_the_package_are_what_commands_declare() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import package_tables
    finally:
        sys.path.pop(0)
    installed = Path(package.__file__).with_name("api") / "options.pyi"
    assert installed.read_text(encoding="utf-8") == package_tables.formatted()
    assert package_tables.COMPLETIONS.read_text(encoding="utf-8") == package_tables.completions()


def test_callers_are_type_checked(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    caller = tmp_path / "caller.py"
    caller.write_text(
        "import numpy, tilewise\n"
        "a = numpy.ones((2, 2))\n"
        "x: numpy.ndarray = tilewise.multiply(a, 'B.npy', ranks=2, grid=(1, 2), memory='1GiB')\n"
        "y: float = tilewise.multiply(a, a, out='C.npy').seconds.total.max\n"
        "tilewise.stencil(a, steps='two')\n"
        "tilewise.stencil(a)\n"
        "tilewise.transpose(a, rnks=2)\n"
        "u, s, vt = tilewise.svd(a)\n"
        "z: numpy.ndarray = tilewise.svd(a, values_only=True)\n"
        "w: numpy.ndarray = tilewise.svd(a)\n"
        "tilewise.run('norm', a).lines\n"
        "tilewise.run('measure', 'ping').lines\n"
    )
    said = api.run(["--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), str(caller)])[0]
    wrong = {line.split(":")[1] for line in said.splitlines() if ": error:" in line}
    assert wrong == {"5", "6", "7", "10", "11"}, said


def test_plans_run_nothing() -> None:
    a = RNG.random((30, 20))
    with package.records() as done:
        planned = package.plan("multiply", a, a.T, ranks=4, grid=(2, 2), exchange="overlap")
    assert done == [] and planned.command == "multiply" and planned.shape == (30, 30)
    chosen = planned.variants[0]
    assert chosen.chosen and chosen.fits and chosen.memory_bytes > 0 and chosen.predicted_seconds["total"] > 0
    assert (chosen.variant.ranks, chosen.variant.grid, chosen.variant.exchange) == (4, (2, 2), "overlap")
    assert set(planned.fixed) >= {"ranks", "grid", "exchange"} and planned.chosen_by == "plan"
    assert package.plan("svd", a).variants[0].variant.algorithm
    assert package.plan("stencil", a, steps=3, weights=numpy.ones((3, 3))).outputs == ["the result"]
    shown = planned._repr_html_()
    assert "plan of multiply" in shown and "chosen" in shown and "summa" in shown
    assert (
        package.plan("generate", out="G.npy", shape=(2, 3)).dtype == "float64" and not Path("G.npy").exists()
    )
    with pytest.raises(package.UsageError, match="do not fit"):
        package.plan("multiply", a, a)


def test_functions_are_there_beside_packages_of_the_same_floor() -> None:
    import tilewise.engine.planned  # noqa: F401 - imports much of the package

    assert callable(package.plan) and callable(package.measure)
    found = package.measure("compute", sizes=[16], dtypes=["float64"], launches=1, runs=1)
    assert {line.size for line in found.lines} == {16}


def test_a_mask_is_not_dropped() -> None:
    masked = numpy.ma.masked_array([[1.0, 2.0], [3.0, 1e20]], [[0, 0], [0, 1]])
    with pytest.raises(package.UsageError, match="masks some of its numbers") as caught:
        package.norm(masked)
    assert "filled(numpy.nan)" in caught.value.advice
    assert package.norm(numpy.ma.masked_array([[3.0, 4.0]])).frobenius == 5
