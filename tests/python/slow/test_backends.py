"""TILEWISE_KERNELS: every operation with each backend of this processor against numpy; what is refused."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import numpy
import pytest
from conftest import Tilewise, one_message
from scipy.ndimage import correlate
from tilewise.launch import worker

WITHOUT_CHILD = True


def rows(tilewise: Tilewise) -> list[dict[str, Any]]:
    """The worker's table."""
    path = worker.find()
    assert path is not None
    said = subprocess.run([path, "--describe"], capture_output=True, env=tilewise.environment, check=True)
    found: list[dict[str, Any]] = json.loads(said.stdout)["backends"]
    return found


@pytest.fixture(params=["avx512", "avx2", "neon", "baseline"])
def forced(request: pytest.FixtureRequest, tilewise: Tilewise) -> Tilewise:
    """The command with a backend forced; skipped where the processor lacks it."""
    if request.param not in {row["name"] for row in rows(tilewise) if row["supported"]}:
        pytest.skip(f"this processor has no {request.param}")
    tilewise.environment["TILEWISE_KERNELS"] = request.param
    assert [row["name"] for row in rows(tilewise) if row["used"]] == [request.param]
    return tilewise


def result(tilewise: Tilewise, *words: object) -> Any:
    """What a command that ends well writes to C.npy."""
    run = tilewise(*words, "-o", "C.npy", "-n", 2, "--force", "-q")
    assert run.returncode == 0, run.stderr
    return numpy.load(tilewise.folder / "C.npy")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
def test_every_operation(forced: Tilewise, dtype: str) -> None:
    generator = numpy.random.default_rng(5)
    a = (generator.standard_normal((131, 150)) * 10).astype(dtype)
    b = (generator.standard_normal((150, 117)) * 10).astype(dtype)
    numpy.save(forced.folder / "A.npy", a)
    numpy.save(forced.folder / "B.npy", b)
    tolerance = {"float64": 1e-12, "int64": 0}.get(dtype, 1e-5)
    product = result(forced, "multiply", "A.npy", "B.npy", "--verify", "fast")
    exact = a.astype("float64") @ b.astype("float64")
    assert numpy.abs(product - exact).max() <= tolerance * numpy.abs(exact).max()
    assert (result(forced, "transpose", "A.npy", "--verify", "fast") == a.T).all()
    if dtype.startswith("float") and dtype != "float16":
        swept = result(forced, "stencil", "A.npy", "--steps", 3, "--weights", "box3", "--boundary", "zero")
        wanted = a
        for _ in range(3):
            wanted = correlate(wanted.astype("float64"), numpy.full((3, 3), 1 / 9), mode="constant")
        assert numpy.abs(swept - wanted).max() <= tolerance * numpy.abs(wanted).max()
        run = forced("svd", "A.npy", "-o", "D", "--components", 5, "-n", 2, "-q", "--force")
        assert run.returncode == 0, run.stderr
        values = numpy.linalg.svd(a.astype("float64"), compute_uv=False)[:5]
        found = numpy.load(forced.folder / "D/s.npy")
        assert numpy.abs(found - values).max() <= 1e-4 * values[0]


def test_an_unknown_backend_is_refused(tilewise: Tilewise) -> None:
    tilewise.environment["TILEWISE_KERNELS"] = "mmx"
    said = one_message(tilewise("multiply", "random:9x9:float64", "random:9x9:float64", "-o", "C.npy"), 2)
    assert "TILEWISE_KERNELS is 'mmx'" in said and "baseline" in said
    assert not (tilewise.folder / "C.npy").exists()
