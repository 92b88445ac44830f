"""What multiply must show, beside its peers in one run; `make bench-multiply` keeps the results as JSON."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import readme_table
from cases import compute, files, small
from harness import ROOT, NotRun, Row, Setting, environment, say, table

CASES: dict[str, Callable[[Setting], list[Row]]] = {
    "startup": small.startup,
    "volume": small.volume,
    "reading": files.reading,
    "file-to-file": files.file_to_file,
    "two-cores": compute.two_cores,
    "four-ranks": compute.four_ranks,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, two rounds: for trying the benchmark out"
    )
    parser.add_argument(
        "--only", action="append", choices=CASES, metavar="NAME", help=f"of {', '.join(CASES)}"
    )
    parser.add_argument("--runs", type=int, metavar="N", help="rounds in which the sides take turns (3)")
    parser.add_argument("--work", type=Path, help="where large files may lie (build/bench)")
    parser.add_argument(
        "-o", "--output", type=Path, help="where the results go (bench/results/multiply.json)"
    )
    return parser.parse_args()


def main() -> None:
    asked = arguments()
    base = asked.work or ROOT / "build/bench"
    base.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=base))
    setting = Setting(rounds=asked.runs or (2 if asked.quick else 3), quick=asked.quick, work=work)
    rows: list[Row] = []
    try:
        facts = environment(work)
        for name in asked.only or CASES:
            say(f"{name}:")
            try:
                rows += CASES[name](setting)
            except NotRun as reason:
                rows.append(Row(name, name, "", 0, note=str(reason)))
    finally:
        shutil.rmtree(work)
    # A part of the benchmark, or a quick one, must not replace the results that the documentation quotes.
    whole = not (asked.quick or asked.only)
    output = asked.output or ROOT / "bench/results" / ("multiply.json" if whole else "partial.json")
    output.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "environment": {**facts, **setting.facts},
        "quick": asked.quick,
        "rows": [row.as_json() for row in rows],
    }
    output.write_text(json.dumps(result, indent=2) + "\n")
    if output == readme_table.RESULTS:
        readme_table.main()
    print(table(rows))
    print(f"Results, with every sample: {output}")


if __name__ == "__main__":
    main()
