"""numpy's matmul of given shapes: `numpy_thin.py RUNS MxKxN:TYPE …` prints seconds as JSON.

A list of runs for each shape, after one to warm up, into memory that is there already.
"""

import json
import sys
import time

import numpy as np


def main() -> None:
    runs, answers = int(sys.argv[1]), []
    random = np.random.default_rng(1)
    for word in sys.argv[2:]:
        shape, dtype = word.split(":")
        m, k, n = map(int, shape.split("x"))
        a, b = random.random((m, k)).astype(dtype), random.random((k, n)).astype(dtype)
        c = np.empty((m, n), dtype)
        seconds = []
        for _ in range(runs + 1):
            start = time.perf_counter()
            np.matmul(a, b, out=c)
            seconds.append(time.perf_counter() - start)
        answers.append(seconds[1:])
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
