"""Dask's compressed SVD of a matrix in a .npy, in a process with bounded memory: a program of its own.

`dask_svd.py A.npy K ITERATIONS MEBIBYTES ROWS` prints one JSON object. The memory that it may write to is
limited as by `ulimit -d`, so that pages of the file do not count, as with tilewise. It takes blocks of ROWS.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy


class Rows:
    """A file as Dask reads it block by block: of a memory map of numpy's it would first make a copy."""

    def __init__(self, path: str) -> None:
        self._numbers = numpy.load(path, mmap_mode="r")
        self.shape, self.dtype, self.ndim = self._numbers.shape, self._numbers.dtype, self._numbers.ndim

    def __getitem__(self, key: Any) -> Any:
        return numpy.asarray(self._numbers[key])


def run(path: str, k: int, iterations: int, mebibytes: int, rows: int) -> dict[str, Any]:
    """Seconds, the K values and what was resident."""
    dask = importlib.import_module("dask")
    array = importlib.import_module("dask.array")
    before = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()  # of its modules
    limit = before + (mebibytes << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    begin = time.monotonic()
    matrix = array.from_array(Rows(path), chunks=(rows, -1), name=False)
    factors = array.linalg.svd_compressed(matrix, k, n_power_iter=iterations, seed=0)
    with dask.config.set(scheduler="threads", num_workers=2):
        _, s, _ = dask.compute(*factors)
    seconds = time.monotonic() - begin
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return {"seconds": seconds, "s": s.tolist(), "resident": resident, "dask": dask.__version__}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], *map(int, sys.argv[2:]))))
