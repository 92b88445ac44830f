"""What the cases of the decomposition share: test matrices in files, our side, errors found from files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
from harness import NotRun, Row, Sample, Setting, tilewise
from numpy.typing import NDArray
from peers import lapack_svd

Matrix = NDArray[numpy.float64]
TWO_RANKS, TWO_THREADS = ("-n", 2, "-t", 1), ("-n", 1, "-t", 2)


def matrix(kind: str, rows: int, columns: int) -> Matrix:
    """float64, of one of the kinds.

    random: normal; graded: that with its columns scaled by 10^(-20 perm/n); deficient: of half the rank;
    repeated: with singular values 3, 2 and 1, a third each; zero.
    """
    draw = numpy.random.default_rng(1)
    normal = draw.standard_normal((rows, columns))
    least = min(rows, columns)
    match kind:
        case "graded":
            return numpy.asarray(normal * 10.0 ** (-20.0 * draw.permutation(columns) / columns))
        case "deficient":
            return numpy.asarray(normal[:, : least // 2] @ draw.standard_normal((least // 2, columns)))
        case "repeated":
            left = numpy.linalg.qr(normal[:, :least])[0]
            right = numpy.linalg.qr(draw.standard_normal((columns, least)))[0]
            return numpy.asarray(left * (3.0 - 3 * numpy.arange(least) // least) @ right.T)
        case "zero":
            return numpy.zeros((rows, columns))
    return normal


def stored(setting: Setting, kind: str, rows: int, columns: int) -> Path:
    """The file with it; made once."""
    path = setting.work / f"{kind}-{rows}x{columns}.npy"
    if not path.exists():
        numpy.save(path, matrix(kind, rows, columns))
    return path


def decomposed(setting: Setting, path: Path, *how: object, algorithm: str = "jacobi") -> dict[str, Any]:
    """The record; the output lies in the folder `svd` until the next call."""
    output = setting.work / "svd"
    shutil.rmtree(output, ignore_errors=True)
    words = ["svd", path, "-o", output, "--algorithm", algorithm, *how]
    return tilewise(*words, record=setting.work / "record.json")


def in_memory(record: dict[str, Any]) -> list[float]:
    """Seconds of each repetition without reading, writing and proof: the ranks begin and end it together."""
    return [one["compute"] + one["exchange"] for one in record["samples"]]


def ours(setting: Setting, path: Path, repeat: int, *how: object) -> Sample:
    def sample() -> list[float]:
        record = decomposed(setting, path, *how, "--no-verify", "--warmup", 1, "--repeat", repeat)
        setting.facts["tilewise_blas_kernel"] = record["environment"]["blas_kernel"]
        setting.facts["tilewise_mpi"] = record["environment"]["mpi_library"]
        return in_memory(record)

    return sample


def lapack(setting: Setting, path: Path, name: str, warmup: int, runs: int) -> Sample:
    def sample() -> list[float]:
        answer = lapack_svd.measure(name, path, 2, warmup, runs)
        setting.facts["lapack_kernel"] = answer["kernel"]
        return list(answer["seconds"])

    return sample


def written(setting: Setting) -> tuple[Matrix, Matrix, Matrix]:
    """U, s and V' of the last decomposition."""
    folder = setting.work / "svd"
    return numpy.load(folder / "U.npy"), numpy.load(folder / "s.npy"), numpy.load(folder / "Vt.npy")


def errors(a: Matrix, u: Matrix, s: Matrix, vt: Matrix) -> dict[str, float]:
    """|A - U S V'| / |A| (Frobenius), and the largest number of |U'U - I| and of |V'V - I|."""
    rest = numpy.linalg.norm(a - (u * s) @ vt)
    return {
        "residual": float(rest / (numpy.linalg.norm(a) or 1.0)),
        "U": float(numpy.abs(u.T @ u - numpy.eye(u.shape[1])).max()),
        "V": float(numpy.abs(vt @ vt.T - numpy.eye(vt.shape[0])).max()),
    }


def relative(values: Matrix | list[float], reference: Matrix | list[float]) -> float:
    """The largest relative error of any singular value."""
    true = numpy.asarray(reference)
    wrong: Matrix = numpy.abs(numpy.asarray(values) - true)
    return float((wrong / numpy.where(true == 0, 1, true)).max())


def reported(name: str, what: str, work: Callable[..., list[Row]], *arguments: object) -> list[Row]:
    """The rows of a part of a case; where it fails, one that says why, so that the rest is still measured."""
    try:
        return work(*arguments)
    except NotRun as reason:
        return [Row(name, what, "", 0, note=str(reason))]
