"""The largest components of a matrix that does not fit: the command beside reading its file as often."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy
from harness import Row, Setting, alternate, compare, run, tilewise

from cases.svd_side import reported

# Two processes, each its half, in pieces that stay in the caches: what reading costs and nothing else.
_READ = """
import os, sys, time
path, processes, piece = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
size = os.path.getsize(path)
def read(begin, end):
    file, place = os.open(path, os.O_RDONLY), bytearray(piece)
    while begin < end:
        begin += os.preadv(file, [memoryview(place)[: min(piece, end - begin)]], begin)
cores = sorted(os.sched_getaffinity(0))
start = time.perf_counter()
children = []
for k in range(processes):
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {cores[k % len(cores)]})
        read(size * k // processes, size * (k + 1) // processes)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
print(time.perf_counter() - start)
"""


def components(setting: Setting) -> list[Row]:
    """20 components of 200,000 x 1,000 float32 under 256 MiB, on two ranks and on two threads."""
    shape, count = ((4000, 100), 5) if setting.quick else ((200_000, 1000), 20)
    path = _made(setting.work / "tall.npy", shape)
    rows = []
    for way, how in (("2 ranks", ("-n", 2, "-t", 1)), ("2 threads", ("-n", 1, "-t", 2))):
        what = f"{count} components of {shape[0]}x{shape[1]}, {way}"
        rows += reported(f"svd-components-{way}", what, _way, setting, path, count, what, how)
    return rows


def _way(setting: Setting, path: Path, count: int, what: str, how: tuple[object, ...]) -> list[Row]:
    output = setting.work / "svd"
    records: list[dict[str, Any]] = []

    def whole() -> list[float]:
        shutil.rmtree(output, ignore_errors=True)
        fixed = ["--algorithm", "randomized", "--components", count, "--memory", "256MiB"]
        words = ["svd", path, "-o", output, *fixed, *how]
        records.append(tilewise(*words, record=setting.work / "record.json"))
        return [float(records[-1]["seconds"]["wall"])]

    samples = alternate({"tilewise": whole, "one read": lambda: [_read(path)]}, setting.rounds)
    record = records[-1]
    reads, seconds, peak = record["result"]["reads"], record["seconds"], record["peak_rss_bytes"]["node_sum"]
    row = Row(f"svd-components-{what}", f"{what}: seconds over {reads} readings", "at most", 1.5)
    row.samples = samples
    row.note = (
        f"{seconds['wall']:.3f} s, {seconds['total']['max']:.3f} s of it in the ranks, "
        f"proof {seconds['verify']['max']:.3f} s; "
        f"{record['variant']['algorithm']}, {record['variant']['io']}; resident {peak / 2**20:.0f} MiB"
    )
    compare(row, samples["tilewise"], [reads * once for once in samples["one read"]])
    return [row, _quality(setting, path, what, count)]


def _quality(setting: Setting, path: Path, what: str, count: int) -> Row:
    """How much more is left over than the best approximation of this rank leaves."""
    u, s, vt = (numpy.load(setting.work / "svd" / f"{name}.npy") for name in ("U", "s", "Vt"))
    a = numpy.load(path, mmap_mode="r")
    gram = numpy.zeros((a.shape[1], a.shape[1]))
    left = 0.0
    for begin in range(0, a.shape[0], 20_000):
        piece = numpy.asarray(a[begin : begin + 20_000], dtype=numpy.float64)
        gram += piece.T @ piece
        left += float(((piece - (u[begin : begin + 20_000] * s) @ vt) ** 2).sum())
    best = float(numpy.linalg.eigvalsh(gram)[:-count].sum())
    row = Row(f"svd-quality-{what}", f"{what}: |A - U S V'| over the best of this rank", "at most", 1.01)
    row.ratio = (left / best) ** 0.5
    row.note = f"orthogonality of U {numpy.abs(u.T.astype(float) @ u - numpy.eye(count)).max():.1e}"
    return row


def _made(path: Path, shape: tuple[int, int]) -> Path:
    """Noise, and twice as many directions as are sought above it, ever weaker."""
    draw = numpy.random.default_rng(1)
    strong = 40 if shape[1] > 100 else 10
    directions = draw.standard_normal((strong, shape[1]), dtype=numpy.float32)
    directions *= (0.9 ** numpy.arange(strong, dtype=numpy.float32))[:, None]
    a = numpy.lib.format.open_memmap(path, "w+", numpy.dtype("<f4"), shape)
    for begin in range(0, shape[0], 10_000):
        end = min(begin + 10_000, shape[0])
        weights = draw.standard_normal((end - begin, strong), dtype=numpy.float32)
        a[begin:end] = weights @ directions + 0.1 * draw.standard_normal(
            (end - begin, shape[1]), dtype=numpy.float32
        )
    a.flush()
    return path


def _read(path: Path) -> float:
    """Seconds to read the file once with two processes; the faster of two sizes of the pieces."""
    sizes = (1 << 18, 1 << 21)
    return min(float(run([sys.executable, "-c", _READ, path, 2, piece])) for piece in sizes)
