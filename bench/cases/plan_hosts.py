"""The plan's choice on three virtual hosts with links of 1 Gbit/s: what is lost by it, and how far it is off.

The hosts share the cores of this machine, so that each has a third of what was measured of it; what is known
of the network is what `tilewise measure ping` finds there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from harness import ROOT, NotRun, Row, Setting
from tilewise.machine.profile import Profile

from cases.plan import Case, measured, rows_of
from cases.simulated_ranks import HOSTS, PING, SIZES, on_hosts

RUNS = ROOT / "build/plan/hosts.jsonl"
_OF_CORES = ("gemm/", "lapack", "plain", "sweep", "copy", "turn", "fault", "read", "write")


def hosts(setting: Setting) -> list[Row]:
    """Errors and regret on the hosts, of products, transpositions and sweeps."""
    around = {"XDG_CACHE_HOME": str(setting.work / "profile-hosts")}
    with on_hosts(setting, "plan-hosts", "1gbit") as side:
        there = side.where[:2]
        side.run("measure", "ping", "--levels", "core,node", *PING, *SIZES, *there, "--store", **around)
        side.run("measure", "compute", "--launches", 1, "--store", **around)
        side.run("measure", "memory", "--launches", 1, "--seconds", 0.05, "--store", **around)
        _share(Path(around["XDG_CACHE_HOME"]) / "tilewise" / "profile.json")

        def tell(words: list[str], _: Case) -> dict[str, Any]:
            told: dict[str, Any] = json.loads(side.run(*words, *there, **around))
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


def _share(path: Path) -> None:
    """Gives each host its share of the cores, and of what they do together."""
    profile = msgspec.json.decode(path.read_bytes(), type=Profile)
    if not profile.terms:
        raise NotRun("nothing was measured of the hosts")
    for terms in profile.terms.values():
        for name in [name for name in terms if name.startswith(_OF_CORES)]:
            terms[name] = terms[name].times(HOSTS, "measured, shared", terms[name].error)
    path.write_bytes(msgspec.json.encode(profile))
