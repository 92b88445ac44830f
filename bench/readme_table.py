"""Writes the README's result table from bench/results/multiply.json, after a whole `make bench-multiply`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results/multiply.json"
README = ROOT / "README.md"
BEGIN, END = "<!-- figures: make bench-multiply -->", "<!-- end of figures -->"
HEAD = "| float64 on {cores} cores | tilewise | beside it | ratio |\n|---|---|---|---|"
# Row of the results; what it is; the size of the product where the figure is a speed; the peer.
LINES = (
    ("file-to-file", "8192² × 8192², file to file, whole command", 0, "numpy with memory maps"),
    ("numpy-ranks-8192", "8192² × 8192², in memory, 2 ranks", 8192, "numpy, 2 threads"),
    ("pdgemm-2-4096", "4096² × 4096², in memory, 2 ranks", 4096, "ScaLAPACK `pdgemm`, 2 ranks"),
    ("pdgemm-4-4096", "4096² × 4096², `cannon` on 4 ranks", 4096, "ScaLAPACK `pdgemm`, 4 ranks"),
)


def table(results: Mapping[str, Any]) -> str:
    rows = {row["name"]: row for row in results["rows"]}
    lines = [HEAD.format(cores=results["environment"]["cores"])]
    for name, what, size, peer in LINES:
        row = rows.get(name)
        if row is None or row["ratio"] is None:
            continue
        ours, theirs = row["medians"].values()
        ratio = f"**{row['ratio']:.2f}** × its {'speed' if size else 'time'}"
        lines.append(f"| {what} | {figure(ours, size)} | {peer}: {figure(theirs, size)} | {ratio} |")
    return "\n".join(lines)


def figure(seconds: float, size: int) -> str:
    return f"{2e-9 * size**3 / seconds:.0f} GFLOP/s" if size else f"{seconds:.2f} s"


def with_table(readme: str, results: Mapping[str, Any]) -> str:
    between = re.compile(f"(?<={re.escape(BEGIN)}\n\n).*?(?=\n\n{re.escape(END)})", re.DOTALL)
    return between.sub(lambda _: table(results), readme)


def main() -> None:
    README.write_text(with_table(README.read_text(), json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
