"""Builds and runs the program that times LAPACK's decompositions and finds reference singular values."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from harness import BIN, ROOT, run


@cache
def build(target: str) -> Path:
    """A benchmark program of the CMake tree, with the BLAS that tilewise uses."""
    folder = ROOT / "build/bench-memory"
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DTILEWISE_BENCH=ON", f"-DPython_EXECUTABLE={BIN / 'python'}"]
    run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options])
    run(["cmake", "--build", folder, "--target", target])
    return folder / "bench" / target


def measure(side: str, matrix: Path, threads: int, warmup: int, runs: int) -> dict[str, Any]:
    """What the program says of a side: gesdd, gejsv, extended or quadruple.

    It has `seconds`, `sigma` and `kernel`; where there are vectors, `residual` and `orthogonality`.
    """
    program = build("tilewise-lapack-svd")
    answer: dict[str, Any] = json.loads(run([program, matrix, threads, warmup, runs, side]))
    return answer
