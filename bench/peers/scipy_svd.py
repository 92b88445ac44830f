"""The largest components in Python: `scipy_svd.py FILE.npy COUNT SIDE RESIDUAL RUNS`.

SIDE: randomized_svd (scikit-learn) or svds. Prints as JSON the seconds of every run, with the matrix in
memory, and the largest of ‖Av − σu‖/σ and ‖Aᵀu − σv‖/σ. randomized_svd takes the least `n_iter` of a few that
reaches RESIDUAL, or the largest of them.
"""

import json
import sys
import time

import numpy as np
import scipy.sparse.linalg
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

Matrix = NDArray[np.float64]

ITERATIONS = (2, 4, 7, 10, 15, 20, 30)


def residual(a: Matrix, u: Matrix, s: Matrix, vt: Matrix) -> float:
    left, right = np.linalg.norm(a @ vt.T - u * s, axis=0), np.linalg.norm(a.T @ u - vt.T * s, axis=0)
    return float((np.maximum(left, right) / s).max())


def main() -> None:
    path, side = sys.argv[1], sys.argv[3]
    count, wanted, runs = int(sys.argv[2]), float(sys.argv[4]), int(sys.argv[5])
    a = np.load(path)

    def once(iterations: int) -> tuple[Matrix, Matrix, Matrix]:
        if side == "svds":
            u, s, vt = scipy.sparse.linalg.svds(a, k=count, tol=wanted)
            return u[:, ::-1], s[::-1], vt[::-1]
        u, s, vt = randomized_svd(a, count, n_iter=iterations, random_state=1)
        return u, s, vt

    for iterations in ITERATIONS:
        reached = residual(a, *once(iterations))
        if side == "svds" or reached <= wanted:
            break
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        once(iterations)
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "residual": reached, "iterations": iterations}))


if __name__ == "__main__":
    main()
