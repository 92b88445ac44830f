"""Every kernel on every instruction set that this processor has: a share of its bound, and beside a peer."""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

import numpy as np
from harness import BIN, ROOT, NotRun, Row, Setting, run, say

BOUND, PEER = 0.7, 0.9  # met is what reaches the first of its bound, or the second of its peer
# OpenBLAS's kernels for processors that have the same instructions; its own choice for the best set.
CORES = {"avx2": "Haswell", "baseline": "Nehalem"}


def sets(setting: Setting) -> list[Row]:
    """The worst first; a set that is slower than its registers explain beside the next wider one says so."""
    program = _built()
    names = run([program]).split()
    setting.facts["sets"] = names
    measured: dict[str, dict[str, Any]] = {}
    for name in names:
        say(f"    {name}")
        core = {"OPENBLAS_CORETYPE": CORES[name]} if name in CORES and name != names[0] else {}
        lines = run(
            [program, setting.rounds], TILEWISE_KERNELS=name, OPENBLAS_NUM_THREADS="1", **core
        ).splitlines()
        measured[name] = {each["kernel"]: each for each in map(json.loads, lines)}
    _add_numpy(measured)
    rows = [_row(name, each) for name in names for each in measured[name].values()]
    return sorted(rows, key=lambda row: row.ratio or 0)


def _row(name: str, each: dict[str, Any]) -> Row:
    """How much of what is asked for was reached: 1 or more is enough."""
    ours = statistics.median(each["rates"])
    shares = [
        (
            ours / statistics.median(each[many]) / asked,
            f"{ours / statistics.median(each[many]):.2f} of {each[one]}",
        )
        for one, many, asked in (("bound", "bounds", BOUND), ("peer", "peers", PEER))
        if many in each
    ]
    row = Row(f"{name}-{each['kernel']}", f"{name}, {each['kernel']}", "at least", 1.0)
    row.ratio = max(share for share, _ in shares) if shares else None
    said = ", ".join(text for _, text in shares)
    row.note = f"{ours / 1e9:.3g}·10⁹ {each['unit']} a second, {said}"
    row.samples = {side: each[side] for side in ("rates", "bounds", "peers") if side in each}
    return row


def _built() -> str:
    folder = ROOT / "build/bench-memory"
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DTILEWISE_BENCH=ON", f"-DPython_EXECUTABLE={BIN / 'python'}"]
    run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *options])
    run(["cmake", "--build", folder, "--target", "tilewise-kernel-sets"])
    return str(folder / "bench/tilewise-kernel-sets")


def _add_numpy(measured: dict[str, dict[str, Any]]) -> None:
    """numpy's generator is the peer of random numbers, whatever the set."""
    draw = np.random.default_rng(1)
    for kind, make in (("random", draw.random), ("normal", draw.standard_normal)):
        for dtype in ("float64", "float32"):
            kernel, rates = f"{kind} numbers, {dtype}", []
            for _ in range(5):
                begin = time.perf_counter()
                made = make(1 << 21, dtype=dtype)
                rates.append(made.nbytes / (time.perf_counter() - begin))
            for kernels in measured.values():
                if kernel not in kernels:
                    raise NotRun(f"{kernel} was not measured")
                kernels[kernel].update(peer="numpy's generator", peers=rates)
