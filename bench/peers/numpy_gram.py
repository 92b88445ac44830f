"""numpy, a matrix times its transpose: `numpy_gram.py ROWS COLUMNS DTYPE SIDE WARMUP RUNS`, SIDE a or b.

Prints the seconds of every run as JSON. numpy sees that both operands are one array and calls syrk.
"""

import json
import sys
import time

import numpy as np


def main() -> None:
    rows, columns, dtype, side = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    warmup, runs = map(int, sys.argv[5:])
    a = np.random.default_rng(1).random((rows, columns)).astype(dtype)
    left, right = (a.T, a) if side == "a" else (a, a.T)
    c = np.empty((left.shape[0], right.shape[1]), dtype)
    seconds = []
    for run in range(warmup + runs):
        start = time.perf_counter()
        np.matmul(left, right, out=c)
        if run >= warmup:
            seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "numpy": np.__version__}))


if __name__ == "__main__":
    main()
