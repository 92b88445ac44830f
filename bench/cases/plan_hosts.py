"""The plan's choice on three virtual hosts with links of 1 Gbit/s: what is lost by it, and how far it is off.

Each host has its share of this machine's processors and no more, also while the others wait. What is known
of it is what `tilewise measure` finds there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from harness import ROOT, Row, Setting

from cases.plan import Case, measured, rows_of
from cases.simulated_ranks import HOSTS, PING, SIZES, on_hosts

RUNS = ROOT / "build/plan/hosts.jsonl"


def hosts(setting: Setting) -> list[Row]:
    """Errors and regret on the hosts, of products, transpositions, sweeps and decompositions."""
    around = {"XDG_CACHE_HOME": str(setting.work / "profile-hosts")}
    share = len(os.sched_getaffinity(0)) / HOSTS
    with on_hosts(setting, "plan-hosts", "1gbit", share) as side:
        there = side.where[:2]
        side.run("measure", "ping", "--levels", "core,node", *PING, *SIZES, *there, "--store", **around)
        side.run("measure", "compute", "--launches", 1, "--store", **around)
        side.run("measure", "memory", "--launches", 1, "--seconds", 0.05, "--store", **around)

        def tell(words: list[str], _: Case, **more: str) -> dict[str, Any]:
            told: dict[str, Any] = json.loads(side.run(*words, *there, **{**around, **more}))
            return told

        RUNS.parent.mkdir(parents=True, exist_ok=True)
        with RUNS.open("w") as kept:
            found = {case.name: measured(case, tell, setting.rounds, kept) for case in _cases(setting)}
    return list(rows_of(found, "hosts-", f"{HOSTS} hosts, "))


def _cases(setting: Setting) -> Iterator[Case]:
    for size in (512,) if setting.quick else (768, 1536, 3072):
        square, out = f"random:{size}x{size}", str(setting.work / f"hosts-{os.getpid()}.npy")
        yield Case(f"multiply {size}²", ["multiply", square, square], out)
        yield Case(f"transpose {size}²", ["transpose", square], out)
        yield Case(f"stencil {size}²", ["stencil", square, "--steps", "50"], out)
        if size < 3072:
            yield Case(f"svd {size}²", ["svd", square], out.removesuffix(".npy"))
