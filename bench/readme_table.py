"""Writes the README's table of figures from what whole benchmarks left in bench/results/."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
README = ROOT / "README.md"
BEGIN, END = "<!-- figures: make bench -->", "<!-- end of figures -->"
HEAD = "| on {cores} cores | tilewise | beside it | ratio |\n|---|---|---|---|"


class Line(NamedTuple):
    """A row of a suite's results, in words; `flops` where speed is shown and not time."""

    suite: str
    row: str
    what: str
    peer: str
    flops: float = 0
    ratio: str = "speed"


PRODUCT, SWEEPS, VALUES = (
    "product of float64",
    "200 sweeps over float32",
    "singular values and vectors, float64",
)
TURNED = "transposition of float64, 16384², file to file"
LINES = (
    Line(
        "multiply",
        "file-to-file",
        f"{PRODUCT}, 8192², file to file",
        "numpy with memory maps",
        ratio="time",
    ),
    Line(
        "multiply",
        "numpy-ranks-8192",
        f"{PRODUCT}, 8192², in memory, 2 ranks",
        "numpy, 2 threads",
        2.0 * 8192**3,
    ),
    Line(
        "multiply",
        "pdgemm-2-4096",
        f"{PRODUCT}, 4096², in memory, 2 ranks",
        "ScaLAPACK `pdgemm`, 2 ranks",
        2.0 * 4096**3,
    ),
    Line("transpose", "transpose-files-16384x16384 float64-cp", TURNED, "`cp` of the same file"),
    Line("transpose", "transpose-files-16384x16384 float64-peer", TURNED, "numpy memory maps, in blocks"),
    Line("stencil", "stencil-numba-8000", f"{SWEEPS}, 8000²", "numba, parallel"),
    Line("stencil", "stencil-devito-8000", f"{SWEEPS}, 8000²", "Devito"),
    Line("stencil", "stencil-scipy-8000", f"{SWEEPS}, 8000²", "`scipy.ndimage`"),
    Line("svd", "svd-gesdd-2-threads-1024²", f"{VALUES}, 1024²", "LAPACK `gesdd`, 2 threads", ratio="time"),
    Line("svd", "svd-gesdd-2-threads-2048²", f"{VALUES}, 2048²", "LAPACK `gesdd`, 2 threads", ratio="time"),
    Line("svd", "svd-pdgesvd-2-ranks-1536²", f"{VALUES}, 1536², 2 ranks", "ScaLAPACK `pdgesvd`, 2 ranks"),
)


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The table's lines from {suite: what it left}; a row that a suite lacks is left out."""
    lines = [HEAD.format(cores=max(each["environment"]["cores"] for each in results.values()))]
    for line in LINES:
        rows = {row["name"]: row for row in results[line.suite]["rows"]} if line.suite in results else {}
        row = rows.get(line.row)
        if row is None or row["ratio"] is None:
            continue
        # Ours comes first, or is called so.
        ours, theirs = sorted(row["medians"].items(), key=lambda side: side[0] != "tilewise")
        sides = f"{figure(ours[1], line.flops)} | {line.peer}: {figure(theirs[1], line.flops)}"
        lines.append(f"| {line.what} | {sides} | **{row['ratio']:.2f}** × its {line.ratio} |")
    return "\n".join(lines)


def figure(seconds: float, flops: float) -> str:
    return f"{1e-9 * flops / seconds:.0f} GFLOP/s" if flops else f"{seconds:.3g} s"


def with_table(readme: str, results: Mapping[str, Mapping[str, Any]]) -> str:
    between = re.compile(f"(?<={re.escape(BEGIN)}\n\n).*?(?=\n\n{re.escape(END)})", re.DOTALL)
    return between.sub(lambda _: table(results), readme)


def kept() -> dict[str, Any]:
    """What the suites of the table left, as far as they were run."""
    paths = {line.suite: RESULTS / f"{line.suite}.json" for line in LINES}
    return {suite: json.loads(path.read_text()) for suite, path in paths.items() if path.exists()}


def main() -> None:
    README.write_text(with_table(README.read_text(), kept()))


if __name__ == "__main__":
    main()
