"""Matrices with known spectra, and what their decomposition must be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy

Array = numpy.ndarray[Any, numpy.dtype[Any]]
KINDS = ("random", "graded", "repeated", "deficient", "zero")


def spectrum(kind: str, shape: tuple[int, int], seed: int = 0, dtype: str = "float64") -> Array:
    """A matrix whose singular values are scattered, graded, equal in groups, partly 0, or all 0."""
    random = numpy.random.default_rng(seed)
    rows, columns = shape

    def normal(shape: tuple[int, int]) -> Array:
        real = random.standard_normal(shape)
        return real + 1j * random.standard_normal(shape) if dtype.startswith("complex") else real

    if kind == "zero":
        return numpy.zeros(shape, dtype)
    if kind == "graded":
        scales = 10.0 ** (-20 * random.permutation(columns) / columns)
        return normal(shape) * scales
    if kind == "deficient":
        rank = max(1, min(shape) // 3)
        return normal((rows, rank)) @ normal((rank, columns))
    if kind == "repeated":
        k = min(shape)
        left = numpy.linalg.qr(normal((rows, k)))[0]
        right = numpy.linalg.qr(normal((columns, k)))[0]
        return (left * (1.0 + numpy.arange(k) // 3)[::-1]) @ right.T
    return normal(shape).astype(dtype)


def factors(folder: Path) -> tuple[Array, Array, Array]:
    """U, s and Vt, as they lie in the files."""
    u, s, vt = (numpy.load(folder / f"{name}.npy") for name in ("U", "s", "Vt"))
    return u, s, vt


def assert_decomposed(folder: Path, matrix: Array, components: int | None = None, exact: bool = True) -> None:
    """Checks the files in `folder`: shapes, type, order, signs, orthogonality, and that they are `matrix`.

    With `components` only so many, the largest; without `exact` what is left of the matrix is nobody's fault.
    """
    u, s, vt = factors(folder)
    k = min(matrix.shape) if components is None else components
    dtype = numpy.dtype("float32" if matrix.dtype in (numpy.float32, numpy.complex64) else "float64")
    turned = numpy.result_type(dtype, matrix.dtype) if numpy.iscomplexobj(matrix) else dtype
    assert (u.shape, s.shape, vt.shape) == ((len(matrix), k), (k,), (k, matrix.shape[1]))
    assert u.dtype == vt.dtype == turned and s.dtype == dtype
    assert (s >= 0).all() and (numpy.diff(s) <= 0).all()
    slack = 1e-13 if dtype == "float64" else 3e-6
    wider = numpy.result_type("float64", turned)
    u, s, vt = u.astype(wider), s.astype("float64"), vt.astype(wider)
    assert numpy.abs(u.conj().T @ u - numpy.eye(k)).max() <= slack
    assert numpy.abs(vt @ vt.conj().T - numpy.eye(k)).max() <= slack
    assert_signs(u, 1e-6 if dtype == "float64" else 1e-4)
    if not exact:
        return
    wide = matrix.astype(wider)
    largest = numpy.linalg.norm(wide, 2)
    expected = numpy.linalg.svd(wide, compute_uv=False)
    assert numpy.abs(s - expected[:k]).max() <= slack * max(largest, 1e-300)
    left = numpy.linalg.norm(wide - (u * s) @ vt, 2)
    tail = expected[k] if k < len(expected) else 0.0
    assert left <= tail + slack * largest


def assert_signs(u: Array, tie: float) -> None:
    """The largest element in each column is positive and real; of several within `tie` the first."""
    for column in u.T:
        sizes = numpy.abs(column)
        first = int(numpy.argmax(sizes >= (1 - tie) * sizes.max()))
        assert column[first].real > 0 and abs(column[first].imag) <= tie


def old_factors(folder: Path) -> None:
    """A folder of ours, with the factors of the unit matrix, as an earlier run may have left it."""
    folder.mkdir()
    files = []
    for name, array in (("U.npy", numpy.eye(3)), ("s.npy", numpy.ones(3)), ("Vt.npy", numpy.eye(3))):
        numpy.save(folder / name, array)
        files.append({"file": name, "shape": array.shape, "dtype": "float64"})
    listing = {"tilewise": 1, "command": "svd", "files": files}
    (folder / "manifest.json").write_text(json.dumps(listing))


def plain_values(matrix: Array) -> Array:
    """Singular values by one-sided Jacobi in long double, rotation by rotation: the reference for grading."""
    x = matrix.astype(numpy.clongdouble if numpy.iscomplexobj(matrix) else numpy.longdouble)
    x = x[:, numpy.argsort(-numpy.linalg.norm(matrix, axis=0))]
    for _ in range(60):
        worst = numpy.longdouble(0)
        for i in range(x.shape[1]):
            for j in range(i + 1, x.shape[1]):
                a, b = (numpy.vdot(x[:, k], x[:, k]).real for k in (i, j))
                c = numpy.vdot(x[:, i], x[:, j])
                cosine = abs(c) / numpy.sqrt(a * b)
                worst = max(worst, cosine)
                if cosine < 1e-18:
                    continue
                x[:, j] *= numpy.conj(c) / abs(c)  # now the product is real
                zeta = (b - a) / (2 * abs(c))
                t = (1 if zeta >= 0 else -1) / (abs(zeta) + numpy.sqrt(1 + zeta * zeta))
                cos = 1 / numpy.sqrt(1 + t * t)
                x[:, i], x[:, j] = cos * (x[:, i] - t * x[:, j]), cos * (t * x[:, i] + x[:, j])
        if worst < 1e-17:
            break
    norms = numpy.sqrt((x * x.conj()).real.sum(axis=0))
    return numpy.sort(norms)[::-1].astype("float64")
