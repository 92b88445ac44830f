"""Writes the figures of docs/benchmarks.md and of the README from what is in bench/results/."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import losses

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
README = ROOT / "README.md"
PAGE = ROOT / "docs/benchmarks.md"
BEGIN, END = "<!-- figures: make bench -->", "<!-- end of figures -->"
HEAD = "| task | tilewise | compared with | times faster |\n|---|---|---|---|"

Results = Mapping[str, Mapping[str, Any]]


class Line(NamedTuple):
    """A row of a suite's results as pages show it; `flops` where speed is shown and not time.

    The README shows the rows that stand in `front`.
    """

    suite: str
    row: str
    task: str
    peer: str
    flops: float = 0
    front: bool = False


PRODUCT, SWEEPS, VALUES = "float64 product", "200 float32 sweeps, 8000²", "float64 SVD"
TURNED = "transposition file to file, 16384² float64"
LINES = (
    Line("multiply", "file-to-file", f"{PRODUCT} file to file, 8192²", "numpy, memory maps", front=True),
    Line("multiply", "numpy-ranks-8192", f"{PRODUCT} in memory, 8192²", "numpy, 2 threads", 2.0 * 8192**3),
    Line(
        "multiply",
        "pdgemm-2-4096",
        f"{PRODUCT} in memory, 4096²",
        "ScaLAPACK `pdgemm`",
        2.0 * 4096**3,
        front=True,
    ),
    Line("transpose", "transpose-files-16384x16384 float64-cp", TURNED, "`cp`, which only copies"),
    Line(
        "transpose",
        "transpose-files-16384x16384 float64-peer",
        TURNED,
        "numpy, memory maps in blocks",
        front=True,
    ),
    Line(
        "transpose",
        "transpose-float64 8192x8192-speed over HPTT's",
        "transposition in memory, 8192² float64",
        "HPTT",
    ),
    Line(
        "transpose",
        "transpose-float32 8192x8192-speed over HPTT's",
        "transposition in memory, 8192² float32",
        "HPTT",
    ),
    Line("stencil", "stencil-numba-8000", SWEEPS, "numba, parallel", front=True),
    Line("stencil", "stencil-devito-8000", SWEEPS, "Devito"),
    Line("stencil", "stencil-opencv-8000", SWEEPS, "OpenCV"),
    Line("svd", "svd-gesdd-2-threads-2048²", f"{VALUES}, 2048²", "LAPACK `gesdd`, 2 threads"),
    Line(
        "svd",
        "svd-graded-gesdd-2 threads-1024",
        f"{VALUES}, graded 1024²",
        "`gesdd`, whose small values are wrong",
        front=True,
    ),
    Line("svd", "svd-pdgesvd-2-ranks-1536²", f"{VALUES}, 1536²", "ScaLAPACK `pdgesvd`"),
    Line("io", "text-read-numpy.loadtxt", "reading text, 2000² numbers", "`numpy.loadtxt`"),
    Line("io", "text-read-pandas", "reading text, 2000² numbers", "pandas"),
)


def table(results: Results, lines: Iterable[Line] = LINES) -> str:
    """The table from {suite: what it left}; rows that were not run are left out."""
    shown = [HEAD]
    for line in lines:
        rows = {row["name"]: row for row in results[line.suite]["rows"]} if line.suite in results else {}
        if line.row in rows and rows[line.row]["ratio"] is not None:
            shown.append(_shown(line, rows[line.row]))
    return "\n".join(shown)


def _shown(line: Line, row: Mapping[str, Any]) -> str:
    """One line: both sides, and the ratio of their medians with its interval, above 1 where we are faster."""
    both = losses.sides(row)
    assert both is not None, f"{line.row} has not two sides"
    ours, theirs = both
    ratio = theirs[1] / ours[1]
    interval = row["low"], row["high"]
    low, high = interval if _is_speed(row, ratio) else (1 / interval[1], 1 / interval[0])
    faster = f"**{two_digits(ratio)}** ({two_digits(low)} – {two_digits(high)})"
    sides = f"{_figure(ours[1], line.flops)} | {line.peer}: {_figure(theirs[1], line.flops)}"
    return f"| {line.task} | {sides} | {faster} |"


def _is_speed(row: Mapping[str, Any], ratio: float) -> bool:
    """Whether the row's own ratio says how much faster we are; else it is our time over the peer's."""
    return math.isclose(row["ratio"], ratio)


def origin(results: Results) -> str:
    """Where and when the table was measured, and what its numbers are."""
    environments = [each["environment"] for each in results.values()]
    days = sorted({datetime.fromisoformat(each["time"]).date() for each in environments})
    on = " and ".join(f"{day:%d %B %Y}".lstrip("0") for day in days)
    first = environments[0]
    memory = f"{first['memory_bytes'] / 2**30:.0f} GiB"
    machine = f"{first['cores']} cores of an {first['cpu']}, {memory}, {first['system']}"
    return (
        f"Measured on {on}: {machine}.\n"
        "Below 1, tilewise is slower. Times are medians of alternating runs; brackets hold the 95 %\n"
        "interval of the ratio."
    )


def two_digits(value: float) -> str:
    """`value` rounded to two significant digits, as text."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:.0f}" if rounded >= 10 else f"{rounded:#.2g}"


def _figure(seconds: float, flops: float) -> str:
    return f"{two_digits(1e-9 * flops / seconds)} GFLOP/s" if flops else f"{two_digits(seconds)} s"


def readme(results: Results) -> str:
    """The part of the README between its markers: a few rows, and where the others are."""
    rows = table(results, (line for line in LINES if line.front))
    return f"{rows}\n\n{origin(results)} [Benchmarks](docs/benchmarks.md) has more rows."


def page(results: Results) -> str:
    """The part of docs/benchmarks.md between its markers: every row, and links to every sample."""
    links = ", ".join(f"[{suite}](../bench/results/{suite}.json)" for suite in results)
    return f"{table(results)}\n\n{origin(results)} Every sample:\n{links}."


def with_part(text: str, part: str) -> str:
    """`text` with `part` between its markers; ValueError where it lacks them."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"the page needs {BEGIN} and {END}, once each")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{part}\n\n{END}{rest.partition(END)[2]}"


def kept() -> dict[str, Any]:
    """The results of the suites of the table, as far as they were run."""
    paths = {line.suite: RESULTS / f"{line.suite}.json" for line in LINES}
    return {suite: json.loads(path.read_text()) for suite, path in paths.items() if path.exists()}


def main() -> None:
    results = kept()
    for path, part in ((README, readme(results)), (PAGE, page(results))):
        path.write_text(with_part(path.read_text(), part))


if __name__ == "__main__":
    main()
