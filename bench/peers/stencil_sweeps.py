"""Five-point sweeps over a float32 square by a library, in memory: prints {"seconds": [...], "version": ...}.

    stencil_sweeps.py numba|opencv|scipy|devito N SWEEPS THREADS ROUNDS

Seconds are those of SWEEPS sweeps, each round from the same state; what must be compiled is compiled before.
Every library is compared with numpy on a small field first.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

Sweeps = Callable[[int], Any]  # so many sweeps, on from where the last ones ended: the last state
Prepare = Callable[[Any], Sweeps]  # takes a state, and gets all memory that it needs


def opencv(threads: int) -> Prepare:
    import numpy

    cv2: Any = importlib.import_module("cv2")

    cv2.setNumThreads(threads)
    weights = numpy.array([[0, 0.1, 0], [0.1, 0.6, 0.1], [0, 0.1, 0]], "float32")

    def prepare(state: Any) -> Sweeps:
        fields = [state.copy(), state.copy()]

        def sweep(steps: int) -> Any:
            for _ in range(steps):
                cv2.filter2D(fields[0], cv2.CV_32F, weights, fields[1], borderType=cv2.BORDER_CONSTANT)
                fields.reverse()
            return fields[0]

        return sweep

    return prepare


def scipy(threads: int) -> Prepare:
    import numpy

    ndimage: Any = importlib.import_module("scipy.ndimage")

    weights = numpy.array([[0, 0.1, 0], [0.1, 0.6, 0.1], [0, 0.1, 0]], "float32")

    def prepare(state: Any) -> Sweeps:
        fields = [state.copy(), state.copy()]

        def sweep(steps: int) -> Any:
            for _ in range(steps):
                ndimage.correlate(fields[0], weights, output=fields[1], mode="constant")
                fields.reverse()
            return fields[0]

        return sweep

    return prepare


def numba(threads: int) -> Prepare:
    import numpy

    compiler: Any = importlib.import_module("numba")
    compiler.set_num_threads(threads)
    centre, beside = numpy.float32(0.6), numpy.float32(0.1)

    def loops(a: Any, b: Any) -> None:
        for i in compiler.prange(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = centre * a[i, j] + beside * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])

    once = compiler.njit(parallel=True, fastmath=True)(loops)

    def prepare(state: Any) -> Sweeps:
        fields = [numpy.pad(state, 1), numpy.pad(state, 1)]

        def sweep(steps: int) -> Any:
            for _ in range(steps):
                once(*fields)
                fields.reverse()
            return fields[0][1:-1, 1:-1]

        return sweep

    return prepare


def devito(threads: int) -> Prepare:
    os.environ |= {
        "OMP_NUM_THREADS": str(threads),
        "DEVITO_LANGUAGE": "openmp",
        "DEVITO_LOGGING": "ERROR",
        "DEVITO_ARCH": "gcc",
    }
    import numpy

    compiler: Any = importlib.import_module("devito")

    known: dict[int, tuple[Any, Any]] = {}

    def prepare(state: Any) -> Sweeps:
        n = state.shape[0]
        if n not in known:
            grid = compiler.Grid(shape=state.shape, dtype=numpy.float32)
            u = compiler.TimeFunction(name="u", grid=grid, space_order=2)
            x, y = grid.dimensions
            near = u.subs(x, x - x.spacing) + u.subs(x, x + x.spacing)
            near += u.subs(y, y - y.spacing) + u.subs(y, y + y.spacing)
            known[n] = u, compiler.Operator(compiler.Eq(u.forward, 0.6 * u + 0.1 * near))
        u, operator = known[n]
        u.data[0] = u.data[1] = state

        def sweep(steps: int) -> Any:
            operator.apply(time_m=0, time_M=steps - 1)
            return u.data[steps % 2]

        return sweep

    return prepare


PEERS = {"opencv": opencv, "scipy": scipy, "numba": numba, "devito": devito}
PACKAGES = {"opencv": "opencv-python-headless"}


def check(prepare: Prepare) -> None:
    """Ends the program unless the inside of a small field is right; at edges libraries may differ."""
    import numpy

    state = numpy.random.default_rng(1).random((64, 64), dtype=numpy.float32)
    expected = state.copy()
    for _ in range(4):
        p = numpy.pad(expected, 1)
        expected = 0.6 * expected + 0.1 * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])
    result = numpy.array(prepare(state)(4))
    if not numpy.allclose(result[5:-5, 5:-5], expected[5:-5, 5:-5], atol=1e-5):
        raise SystemExit("the peer computes something else")


def main() -> None:
    name, n, steps, threads, rounds = sys.argv[1], *map(int, sys.argv[2:])
    prepare = PEERS[name](threads)
    import numpy

    check(prepare)
    state = numpy.random.default_rng(1).random((n, n), dtype=numpy.float32)
    seconds = []
    for _ in range(rounds):
        sweep = prepare(state)
        sweep(2)
        begin = time.perf_counter()
        sweep(steps)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": seconds, "version": importlib.metadata.version(PACKAGES.get(name, name))}))


if __name__ == "__main__":
    main()
