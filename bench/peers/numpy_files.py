"""numpy from file to file: `numpy_files.py maps|load A B C`, by memory maps or all in memory."""

import sys

import numpy as np


def with_maps(a_path: str, b_path: str, c_path: str) -> None:
    a, b = np.load(a_path, mmap_mode="r"), np.load(b_path, mmap_mode="r")
    c = np.lib.format.open_memmap(c_path, mode="w+", dtype=a.dtype, shape=(a.shape[0], b.shape[1]))
    np.matmul(a, b, out=c)


def with_load(a_path: str, b_path: str, c_path: str) -> None:
    np.save(c_path, np.load(a_path) @ np.load(b_path))


if __name__ == "__main__":
    {"maps": with_maps, "load": with_load}[sys.argv[1]](*sys.argv[2:])
