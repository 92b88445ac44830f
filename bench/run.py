"""A suite of benchmarks beside peers in one run; `make bench-SUITE` keeps results."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import losses
import readme_table
from cases import (
    chunks,
    cluster_levels,
    compute,
    files,
    limited,
    measure_files,
    measure_messages,
    measure_repeat,
    plan,
    plan_hosts,
    plan_simulated,
    products,
    sets,
    simulated_ranks,
    simulated_start,
    small,
    stencil_sweeps,
    strassen,
    strategies,
    svd_accuracy,
    svd_choice,
    svd_files,
    svd_memory,
    svd_streamed,
    svd_whole,
    symmetric,
    texts,
    thin,
    transpose_files,
    transpose_memory,
    transpose_schemes,
    truth,
)
from harness import ROOT, NotRun, Row, Setting, environment, say, table

SUITES: dict[str, dict[str, Callable[[Setting], list[Row]]]] = {
    "multiply": {
        "startup": small.startup,
        "volume": small.volume,
        "reading": files.reading,
        "file-to-file": files.file_to_file,
        "two-cores": compute.two_cores,
        "four-ranks": compute.four_ranks,
        "thin": thin.named,
        "thin-random": thin.random_shapes,
        "symmetric": symmetric.two_cores,
        "strassen": strassen.strassen,
    },
    "products": {"squares": products.squares, "random-shapes": products.random_shapes},
    "sets": {"sets": sets.sets},
    "io": {
        "strategies": strategies.strategies,
        "texts": texts.texts,
        "dialects": texts.dialects,
        "chunks": chunks.chunks,
        "memory": texts.memory,
    },
    "transpose": {
        "memory": transpose_memory.memory,
        "cached": transpose_files.cached,
        "capped": transpose_files.capped,
        "schemes": transpose_schemes.schemes,
    },
    "stencil": {
        "libraries": stencil_sweeps.libraries,
        "memory": stencil_sweeps.memory,
        "two-ranks": stencil_sweeps.two_ranks,
        "ways": stencil_sweeps.ways,
    },
    "svd": {
        "two-cores": svd_memory.two_cores,
        "graded": svd_accuracy.graded,
        "accuracy": svd_accuracy.accuracy,
        "two-stage": svd_whole.two_stages,
        "top": svd_whole.top,
        "components": svd_files.components,
        "speedups": svd_memory.speedups,
        "tall": svd_streamed.tall,
        "dask": svd_streamed.beside_dask,
        "choice": svd_choice.choice,
    },
    "measure": {
        "messages": measure_messages.messages,
        "repeat": measure_repeat.repeat,
        "model": measure_repeat.model,
        "files": measure_files.files,
    },
    "truth": {
        "memory": truth.memory,
        "arithmetic": truth.arithmetic,
        "files": truth.files,
        "messages": truth.messages,
    },
    "plan": {
        "simulated": plan_simulated.simulated,
        "hosts": plan_hosts.hosts,
        "plan": plan.plan,
    },
    "limited": {
        "products": limited.products,
        "stencil": limited.stencil,
        "safety": limited.safety,
    },
    "cluster": {"levels": cluster_levels.levels},
    "simulated": {
        "hosts": simulated_ranks.hosts,
        "slow-hosts": simulated_ranks.slow_hosts,
        "here": simulated_ranks.here,
        "start": simulated_start.start,
    },
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument(
        "--quick", action="store_true", help="small sizes, two rounds: for trying the benchmark out"
    )
    parser.add_argument("--only", action="append", metavar="NAME", help="a case of the suite; repeatable")
    parser.add_argument("--runs", type=int, metavar="N", help="rounds in which the sides take turns (3)")
    parser.add_argument("--work", type=Path, help="where large files may lie (build/bench)")
    parser.add_argument(
        "-o", "--output", type=Path, help="where the results go (bench/results/PROCESSOR/SUITE.json)"
    )
    asked = parser.parse_args()
    for name in asked.only or ():
        if name not in SUITES[asked.suite]:
            parser.error(f"{asked.suite} has the cases {', '.join(SUITES[asked.suite])}, not {name}")
    return asked


def main() -> None:
    asked = arguments()
    cases = SUITES[asked.suite]
    base = asked.work or ROOT / "build/bench"
    base.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=base))
    setting = Setting(rounds=asked.runs or (2 if asked.quick else 3), quick=asked.quick, work=work)
    rows: list[Row] = []
    try:
        facts = environment(work)
        for name in asked.only or cases:
            say(f"{name}:")
            try:
                rows += cases[name](setting)
            except NotRun as reason:
                rows.append(Row(name, name, "", 0, note=str(reason)))
    finally:
        shutil.rmtree(work)
    # A part of the benchmark, or a quick one, must not replace the results that the documentation quotes.
    whole = not (asked.quick or asked.only)
    kept = readme_table.RESULTS / readme_table.folder_of(facts["cpu"]) / f"{asked.suite}.json"
    output = asked.output or (kept if whole else readme_table.RESULTS / "partial.json")
    output.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "environment": {**facts, **setting.facts},
        "quick": asked.quick,
        "rows": [row.as_json() for row in rows],
    }
    output.write_text(json.dumps(result, indent=2) + "\n")
    if output == kept:
        readme_table.main()
    if lost := losses.losses(result["rows"]):
        print(f"{lost}\n")
    print(table(rows))
    print(f"Results, with every sample: {output}")


if __name__ == "__main__":
    main()
