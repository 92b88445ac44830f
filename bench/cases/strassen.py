"""Strassen's product: in memory, beside numpy's plain one."""

from __future__ import annotations

from harness import Row, Setting, alternate, compare

from cases.compute import numpy_matmul, ours

# Most of numpy's time that the product may take, by rows.
MOST = {4096: 0.88, 8192: 0.84, 16384: 0.78}


def strassen(setting: Setting) -> list[Row]:
    """One rank with two threads beside numpy with two threads, double precision, in memory."""
    rows = []
    for n in (4096,) if setting.quick else (4096, 8192, 16384):
        repeat = {4096: 4, 8192: 2}.get(n, 1)
        samples = alternate(
            {
                "tilewise": ours(setting, n, repeat, "-n", 1, "-t", 2, "--kernel", "strassen"),
                "numpy": numpy_matmul(setting, n, repeat),
            },
            setting.rounds,
        )
        row = Row(f"strassen-{n}", f"time of Strassen's product, N={n}, over numpy", "at most", MOST[n])
        row.samples = samples
        rows.append(compare(row, samples["tilewise"], samples["numpy"]))
    return rows
