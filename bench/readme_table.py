"""Writes the figures of docs/benchmarks.md and of the README from what is in bench/results/."""

from __future__ import annotations

import json
import math
import re
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
HEAD = "| task | tilewise | compared with | times faster | processor |\n|---|---|---|---|---|"
WORST = 15  # kernels of an instruction set that the page shows

Suites = Mapping[str, Mapping[str, Any]]
Results = Mapping[str, Suites]  # by the folder of a processor


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
    """The table, a row for each processor that ran a line's suite; rows that were not run are left out."""
    shown = [HEAD]
    for line in lines:
        for suites in results.values():
            rows = {row["name"]: row for row in suites[line.suite]["rows"]} if line.suite in suites else {}
            if line.row in rows and rows[line.row]["ratio"] is not None:
                cpu = suites[line.suite]["environment"]["cpu"]
                shown.append(f"{_shown(line, rows[line.row])} {cpu} |")
    return "\n".join(shown)


def kernels(results: Results) -> str:
    """Of each processor and instruction set the kernels that reach the smallest share of what is asked."""
    parts = []
    for suites in results.values():
        if "sets" not in suites:
            continue
        environment = suites["sets"]["environment"]
        for name in environment["sets"]:
            rows = [row for row in suites["sets"]["rows"] if row["name"].startswith(f"{name}-")]
            short = [row for row in rows if not row["met"]]
            parts += [
                f"**{environment['cpu']}, {name}**: {len(rows) - len(short)} of {len(rows)} measurements "
                "reach 0.7 of their bound or 0.9 of their peer."
                + (" The worst of the others:" if short else ""),
                "",
            ]
            parts += [
                f"* {row['what'].partition(', ')[2]}: {row['note'].partition(', ')[2]}"
                for row in short[:WORST]
            ]
            parts.append("")
    return "\n".join(parts).strip()


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
    environments = [each["environment"] for suites in results.values() for each in suites.values()]
    days = sorted({datetime.fromisoformat(each["time"]).date() for each in environments})
    machines = sorted({_machine(each) for each in environments})
    return (
        f"Measured from {days[0]:%d %B} to {days[-1]:%d %B %Y} on {' and '.join(machines)}.\n"
        "Below 1, tilewise is slower. Times are medians of alternating runs; brackets hold the 95 %\n"
        "interval of the ratio."
    )


def _machine(environment: Mapping[str, Any]) -> str:
    memory = f"{environment['memory_bytes'] / 2**30:.0f} GiB"
    return f"{environment['cores']} cores, {memory}, {environment['system']}"


def two_digits(value: float) -> str:
    """`value` rounded to two significant digits, as text."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:.0f}" if rounded >= 10 else f"{rounded:#.2g}"


def _figure(seconds: float, flops: float) -> str:
    return f"{two_digits(1e-9 * flops / seconds)} GFLOP/s" if flops else f"{two_digits(seconds)} s"


def readme(results: Results) -> str:
    """The part of the README between its markers: a few rows, and where the others are."""
    lines = [line for line in LINES if line.front]
    suites = {line.suite for line in lines}
    shown = {
        folder: {name: suite[name] for name in suite if name in suites} for folder, suite in results.items()
    }
    return f"{table(shown, lines)}\n\n{origin(shown)} [Benchmarks](docs/benchmarks.md) has more rows."


def page(results: Results) -> str:
    """The part of docs/benchmarks.md between its markers: every row, kernels, and links to every sample."""
    links = ", ".join(
        f"[{suite} on {folder}](../bench/results/{folder}/{suite}.json)"
        for folder, suites in results.items()
        for suite in suites
    )
    return f"""{table(results)}

{origin(results)} Where a
processor has no design in brackets, it was measured before the design was recorded. Every sample:
{links}.

## Every kernel on every instruction set

`make bench-sets` times each kernel on one thread beside a loop that bounds it (multiply-adds in registers,
memory read, copied or written), and beside a peer where there is one, told to use the same instructions.

{kernels(results)}"""


def with_part(text: str, part: str) -> str:
    """`text` with `part` between its markers; ValueError where it lacks them."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise ValueError(f"the page needs {BEGIN} and {END}, once each")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{part}\n\n{END}{rest.partition(END)[2]}"


def folder_of(cpu: str) -> str:
    """`AMD EPYC (Zen 5)` as the name of a folder: amd-epyc-zen-5."""
    return re.sub(r"[^a-z0-9]+", "-", cpu.lower()).strip("-")


def kept() -> dict[str, dict[str, Any]]:
    """The results of the suites that pages show, by the folder of the processor that ran them."""
    suites = dict.fromkeys([*(line.suite for line in LINES), "sets"])
    found = {}
    for folder in sorted(path for path in RESULTS.iterdir() if path.is_dir()):
        paths = {suite: folder / f"{suite}.json" for suite in suites}
        if here := {suite: json.loads(path.read_text()) for suite, path in paths.items() if path.exists()}:
            found[folder.name] = here
    return found


def main() -> None:
    results = kept()
    for path, part in ((README, readme(results)), (PAGE, page(results))):
        path.write_text(with_part(path.read_text(), part))


if __name__ == "__main__":
    main()
