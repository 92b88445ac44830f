"""The transpose of a .npy file by numpy or Dask: `transpose_files.py naive|blocked|dask|check A B`."""

import importlib
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BLOCK = 1024  # rows and columns: 8 MiB of float64 a block, which was the fastest of 256 … 4096 here


def naive(a: Array, b: Array) -> None:
    b[:] = a.T


def blocked(a: Array, b: Array) -> None:
    for i in range(0, a.shape[0], BLOCK):
        for j in range(0, a.shape[1], BLOCK):
            b[j : j + BLOCK, i : i + BLOCK] = a[i : i + BLOCK, j : j + BLOCK].T


def dask(a: Array, b: Array) -> None:
    arrays = importlib.import_module("dask.array")  # a peer, which only the benchmark installs
    arrays.store(arrays.from_array(a, chunks=(2 * BLOCK, 2 * BLOCK)).T, b, lock=False)


def check(a: Array, b: Array) -> None:
    """Every element, in bands."""
    if b.shape != a.shape[::-1] or b.dtype != a.dtype:
        raise SystemExit(f"{b.shape} {b.dtype} is not the transpose's shape and type")
    for i in range(0, b.shape[0], BLOCK):
        if not np.array_equal(b[i : i + BLOCK], np.ascontiguousarray(a[:, i : i + BLOCK].T)):
            raise SystemExit(f"rows {i} … of the transpose are wrong")


if __name__ == "__main__":
    how, a_path, b_path = sys.argv[1:]
    source = np.load(a_path, mmap_mode="r")
    if how == "check":
        check(source, np.load(b_path, mmap_mode="r"))
    else:
        turned = np.lib.format.open_memmap(b_path, "w+", dtype=source.dtype, shape=source.shape[::-1])
        {"naive": naive, "blocked": blocked, "dask": dask}[how](source, turned)
