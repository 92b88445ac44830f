"""Where tilewise is slower than what it is compared with: the first thing that a benchmark says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
SUITES = (
    "multiply",
    "io",
    "transpose",
    "stencil",
    "svd",
)  # `measure` compares what is measured, not how fast
BOUNDS = ("copy", "one read")  # of a job that does more than these: nothing could be as fast
OURS = ("tilewise", "2 ranks", "2 threads", "below")  # names of our side in a row's medians


def sides(row: Mapping[str, Any]) -> tuple[tuple[str, float], tuple[str, float]] | None:
    """Our side of a row and the other, each with the median of its seconds; None where it has not the two."""
    ours = [side for side in row["medians"].items() if side[0] in OURS]
    others = [side for side in row["medians"].items() if side[0] not in (*OURS, *BOUNDS)]
    return (ours[0], others[0]) if len(ours) == len(others) == 1 else None


def faster(row: Mapping[str, Any]) -> float | None:
    """How many times faster our side was, below 1 where it was slower; None where no two sides were timed."""
    both = sides(row)
    return both[1][1] / both[0][1] if both is not None and both[0][1] > 0 else None


def losses(rows: Iterable[Mapping[str, Any]]) -> str:
    """A line for each row in which we were slower, the worst first; empty where there is none."""
    found = [(times, row["what"]) for row in rows if (times := faster(row)) is not None and times < 1]
    lines = [f"  {times:5.2f} times as fast: {what}" for times, what in sorted(found)]
    return "\n".join([f"Slower in {len(lines)} comparisons:", *lines]) if lines else ""


def main() -> None:
    """The same of all suites that have left results."""
    for path in sorted(RESULTS.glob("*/*.json")):
        if path.stem in SUITES:
            kept = json.loads(path.read_text())
            found = losses(kept["rows"]) or "slower nowhere"
            print(f"{path.stem}, {kept['environment']['cpu']}: {found}")


if __name__ == "__main__":
    main()
