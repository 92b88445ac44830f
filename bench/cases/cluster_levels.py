"""Exchanges between all ranks by way of a leader a node, beside direct messages and the library's own.

On the virtual cluster of the tests: three hosts of 2 and of 4 ranks, links of 1 Gbit/s, with 5 ms or none.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

from harness import BIN, ROOT, NotRun, Row, Setting, clean_environment, compare, run, say
from tilewise.launch.worker import ALGORITHMS, YIELDING

HOSTS, RANKS = 3, (2, 4)  # of each host
DELAYS = {"near": 0.0, "far": 0.005}
BYTES = (64, 1024, 16384, 262144)
SOURCE = Path(__file__).parents[1] / "peers" / "node_level.cpp"
LEADERS = "leaders"


def levels(setting: Setting) -> list[Row]:
    """A row for each world, rank count, exchange and size: what leaders take over the better of the others.

    Below 1 a leader a node pays.
    """
    sys.path.append(str(ROOT / "tests" / "cluster"))
    from cluster import NoClusterError, cluster

    program = setting.work / "node_level"
    run([BIN / "mpicxx", "-O2", "-std=c++20", SOURCE, "-o", program])
    rows: list[Row] = []
    for world, delay in DELAYS.items():
        try:
            with cluster(HOSTS, delay=delay) as made:
                for ranks in RANKS[:1] if setting.quick else RANKS:
                    say(f"  {world}, {HOSTS}×{ranks} ranks")
                    rows += _rows(setting, made, program, world, ranks)
        except NoClusterError as reason:
            raise NotRun(f"no virtual cluster: {reason}") from None
    return rows


def _rows(setting: Setting, made: Any, program: Path, world: str, ranks: int) -> list[Row]:
    hosts = ",".join(f"{host.name}:{ranks}" for host in made.hosts)
    rounds = 5 if setting.quick else 15
    command = [BIN / "mpiexec", "-hosts", hosts, "-n", HOSTS * ranks, program, rounds]
    told = clean_environment(
        HYDRA_LAUNCHER="ssh",
        HYDRA_LAUNCHER_EXEC=str(made.launcher),
        UCX_TLS="tcp,self",  # what shares this machine's memory is no network
        **YIELDING,
        **ALGORITHMS,
    )
    sizes = BYTES[:2] if setting.quick else BYTES
    done = made.run([*command, *sizes], setting.work, told, timeout=500)
    if done.returncode != 0:
        raise NotRun(f"node_level ended with {done.returncode}: {done.stderr.strip()[-200:]}")
    lines = json.loads(done.stdout)["lines"]
    timings = {(line["exchange"], line["bytes"], line["way"]): line["seconds"] for line in lines}
    exchanges = sorted({line["exchange"] for line in lines})
    return [_row(timings, world, ranks, exchange, size) for exchange in exchanges for size in sizes]


def _row(
    timings: dict[tuple[str, int, str], list[float]], world: str, ranks: int, exchange: str, size: int
) -> Row:
    ways = {
        way: seconds for (name, bytes_, way), seconds in timings.items() if (name, bytes_) == (exchange, size)
    }
    medians = {way: statistics.median(seconds) for way, seconds in ways.items()}
    best = min((way for way in ways if way != LEADERS), key=lambda way: medians[way])
    many = ", oversubscribed" if HOSTS * ranks > len(os.sched_getaffinity(0)) else ""
    row = Row(
        f"levels-{world}-{ranks}-{exchange}-{size}",
        f"{world}, {HOSTS}×{ranks} ranks{many}, {exchange} of {size} B: leaders over {best}",
        "",
        0,
    )
    row.samples = ways
    row.note = "; ".join(
        f"{way} {1e3 * medians[way]:.3g} ms, at least {1e3 * min(ways[way]):.3g}" for way in ways
    )
    return compare(row, ways[LEADERS], ways[best])
