"""numpy's matmul in memory: answers each line `TYPE M N K KERNEL THREADS` with the seconds of one product.

KERNEL and THREADS are for our side: OPENBLAS_NUM_THREADS says how many threads numpy has.
"""

import sys
import time

import numpy as np


def main() -> None:
    last, random = "", np.random.default_rng(1)
    for line in sys.stdin:
        dtype, m, n, k = line.split()[:4]
        if line != last:
            a = random.random((int(m), int(k))).astype(dtype)
            b = random.random((int(k), int(n))).astype(dtype)
            c, last = np.zeros((int(m), int(n)), dtype), line
        start = time.perf_counter()
        np.matmul(a, b, out=c)
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
