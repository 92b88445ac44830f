"""Made-up records and a made-up study of every kind of table, plot and claim, for tests of reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from measurements import EVIL
from studies import Runner, flag, run
from tilewise.engine.child import Ended

STUDY = """
description = "What is read, and how fast."
source = "report <b>9</b>"
command = "multiply"
axes.size = [{sizes}]
axes.ranks = [1, 2, 4, 8]
axes.io = ["root", "positioned", "collective"]
flags = {{ verify = "off" }}
limits = ["ranks <= 2 * cores"]
launches = {launches}
output = "C.npy"
words = ["random:{{size}}x{{size}}:float64:1", "random:{{size}}x{{size}}:float64:2"]

[[tables]]
name = "total"
title = "Seconds <script>alert(1)</script>"
where = "io == 'root'"
rows = "size"
columns = "ranks"
unit = "s"
[tables.reference]
source = "report 9, Table 1"
rows = [64, 128]
columns = [1, 2]
values = [[9.5, 4.5], [8.25, "–"]]
note = "on 8 nodes"

[[tables]]
name = "speedup"
title = "Speedup over one rank"
where = "size == 64"
rows = "ranks"
columns = "io"
base = {{ ranks = 1 }}

[[tables]]
name = "parts"
title = "Parts"
rows = ["size", "ranks", "io"]
columns = [
    {{ title = "in", value = "seconds.input.max", unit = "s" }},
    {{ title = "share", value = "seconds.input.max / seconds.total.max * 100", unit = "%" }},
]

[[plots]]
name = "lines"
title = "Speedup"
where = "size == 64"
x = "ranks"
series = "io"
base = {{ ranks = 1 }}
ideal = "x"
log = "xy"
references = [{{ label = "root", source = "report 9", x = [1, 2, 4], y = [1.0, 1.5, 1.7] }}]

[[plots]]
name = "bars"
title = "Seconds by way of reading"
where = "size == 64"
x = "io"
series = "ranks"
kind = "bar"
unit = "s"

[[plots]]
name = "map"
title = "Seconds over size and ranks"
where = "io == 'root'"
x = "size"
series = "ranks"
kind = "heat"
unit = "s"

[[plots]]
name = "cloud"
title = "Every point"
where = "io == 'root'"
x = "size"
series = "ranks"
kind = "scatter"

[[claims]]
text = "Two ranks are <i>faster</i>"
source = "page 3"
figure = "at('speedup', ranks=2, io='root')"
holds = "figure > 1"
unit = "×"

[[claims]]
text = "Eight ranks are faster still"
figure = "at('speedup', ranks=8, io='root')"
holds = "figure > 4"

[[claims]]
text = "Rank 0 is as fast"
figure = "at('speedup', ranks=4, io='root')"
holds = "figure > 100"
note = "its own tables say otherwise"
"""
SPREAD = {"min": 0.25, "mean": 0.5, "max": 1.0}


def record(**more: Any) -> dict[str, Any]:
    """A whole record of a product on four ranks, as `--json` writes it; `more` replaces fields."""
    matrix = {"path": "A.npy", "format": "npy", "shape": [64, 64], "dtype": "float64", "order": "C"}
    return {
        "tilewise": "0.1.0",
        "command": "multiply",
        "inputs": [matrix, {**matrix, "path": "B.npy"}],
        "outputs": [{**matrix, "path": f"C{EVIL}.npy"}],
        "variant": {
            "algorithm": "cannon",
            "exchange": "nonblocking",
            "io": "root_collective:positioned",
            "grid": [2, 2],
            "ranks": 4,
            "threads": 1,
            "copies": 1,
            "kernel": "fast",
            "remainder": "spread",
        },
        "chosen_by": "plan",
        "fixed": ["ranks"],
        "reasons": ["cannon: the grid is square", EVIL],
        "seconds": {
            "input": {**SPREAD, "parse": SPREAD, "file": SPREAD, "distribute": SPREAD},
            "compute": {"min": 1.0, "mean": 1.5, "max": 2.0},
            "exchange": SPREAD,
            "output": {**SPREAD, "format": SPREAD, "file": SPREAD, "collect": SPREAD},
            "verify": SPREAD,
            "total": {"min": 3.5, "mean": 3.5, "max": 3.625},
            "wall": 4.25,
        },
        "samples": [
            {"compute": 1.5, "input": 0.5, "total": 3.5},
            {"compute": 1.75, "input": 0.5, "total": 3.625},
        ],
        "bytes": {
            "read": 65536,
            "useful": 65536,
            "written": 32768,
            "exchanged": 1 << 20,
            "exchanged_max_rank": 1 << 18,
            "copied_in_node": 0,
        },
        "messages": 24,
        "io_calls": 9,
        "flops": 524288.0,
        "rates": {
            "flops_per_second": 3e9,
            "read_bytes_per_second": 1e8,
            "written_bytes_per_second": 2e8,
            "exchanged_bytes_per_second": None,
            "whole_flops_per_second": 1e9,
        },
        "peak_flops": 4e9,
        "fraction_of_peak": 0.19,
        "peak_rss_bytes": {"per_rank": [1 << 20] * 4, "max_rank": 1 << 20, "node_sum": 4 << 20},
        "needed_bytes": 1 << 20,
        "ranks_working": 4,
        "placement": [
            {"rank": rank, "host": f"host{EVIL}", "pid": 7, "cpus": [rank], "node": 0} for rank in range(4)
        ],
        "predicted_seconds": None,
        "verification": {"method": "freivalds", "passed": True, "error": 1e-16, "tolerance": 1e-14},
        "result": {"exchanged_ideal_max_rank": 0, "note": EVIL},
        "warnings": [f"beware of {EVIL}"],
        "environment": {
            "host": f"host{EVIL}",
            "cpu": "A Processor 9000",
            "cores": 4,
            "cpus": 8,
            "numa_nodes": 1,
            "mpi_library": "MPICH Version: 5.0.2",
            "mpi_standard": "5.0",
            "blas": "OpenBLAS",
            "blas_kernel": "SkylakeX",
            "gemm_kernel": "own",
            "compiler": "GNU 12.2.0",
            "binding": "none",
            "launcher": "mpiexec -n 4",
            "storage": [{"path": "A.npy", "file_system": "ext4", "cache": "cached"}],
            "oversubscribed": False,
            "variables": {"OMP_NUM_THREADS": "1"},
            "versions": {"python": "3.11"},
            "time": "2026-01-02T03:04:05+00:00",
        },
        **more,
    }


class Job(Runner):
    """Answers with whole records, whose seconds follow from ranks and the way of reading."""

    def __call__(self, words: list[str], folder: str, timeout: float | None) -> Ended:
        ended = super().__call__(words, folder, timeout)
        if ended.exit_code:
            return ended
        read, count = flag(words, "--io", "positioned"), int(flag(words, "--ranks"))
        told = record()
        told["variant"].update(io=f"{read}:{read}", ranks=count)
        total = json.loads(ended.output)["seconds"]["total"]["max"]
        told["seconds"]["total"] = dict.fromkeys(("min", "mean", "max"), total)
        return Ended(0, json.dumps(told).encode(), "", ended.seconds)


def results(folder: Path, sizes: int = 3, launches: int = 2, factors: Any = (1.0, 1.25)) -> Path:
    """A results folder: 12 points for each size, of which those on 8 ranks are out of reach."""
    text = STUDY.format(sizes=", ".join(str(64 << place) for place in range(sizes)), launches=launches)
    fails = "random:128x128:float64:1"
    job = Job(lambda words: fails in words and flag(words, "--io") == "collective", factors)
    run(folder, text, job)
    return folder
