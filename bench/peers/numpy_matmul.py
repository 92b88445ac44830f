"""numpy's matmul in memory: `numpy_matmul.py N WARMUP RUNS` prints the seconds of every run as JSON."""

import ctypes
import json
import re
import sys
import time
from pathlib import Path

import numpy as np


def kernel() -> str:
    """The kernel that numpy's own OpenBLAS has chosen for this processor."""
    for path in sorted(set(re.findall(r"/\S*openblas\S*\.so\S*", Path("/proc/self/maps").read_text()))):
        library = ctypes.CDLL(path)
        for name in (
            "scipy_openblas_get_corename64_",
            "scipy_openblas_get_corename",
            "openblas_get_corename",
        ):
            if hasattr(library, name):
                getattr(library, name).restype = ctypes.c_char_p
                return str(getattr(library, name)().decode())
    return "unknown"


def main() -> None:
    n, warmup, runs = map(int, sys.argv[1:])
    random = np.random.default_rng(1)
    a, b, c = random.random((n, n)), random.random((n, n)), np.empty((n, n))
    seconds = []
    for run in range(warmup + runs):
        start = time.perf_counter()
        np.matmul(a, b, out=c)
        if run >= warmup:
            seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "kernel": kernel(), "numpy": np.__version__}))


if __name__ == "__main__":
    main()
