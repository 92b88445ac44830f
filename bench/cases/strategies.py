"""Every way of reading and writing on every layout, beside plain contiguous calls, on both MPI libraries."""

from __future__ import annotations

import json
import os
import shutil
import statistics
from pathlib import Path
from typing import Any

from harness import BIN, ROOT, NotRun, Row, Setting, compare, run, say

# Layout: its name, grid, block (0: one block a rank).
LAYOUTS = (("1x2", "1x2", 0), ("2x2", "2x2", 0), ("cyclic 64", "2x2", 64), ("cyclic 256", "2x2", 256))
MODES = ("read", "overwrite", "fresh")
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Ranks that take turns on a core, as tilewise itself starts them.
YIELDING = {
    **ROOT_MAY,
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "MPIR_CVAR_BARRIER_POSIX_INTRA_ALGORITHM": "mpir",
    "MPIR_CVAR_REDUCE_POSIX_INTRA_ALGORITHM": "mpir",
    "MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM": "mpir",
    "MPIR_CVAR_BCAST_POSIX_INTRA_ALGORITHM": "mpir",
    "OMPI_MCA_rmaps_base_oversubscribe": "true",
    "OMPI_MCA_mpi_yield_when_idle": "true",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}
Samples = dict[str, dict[str, Any]]


def build(name: str) -> tuple[Path, Path]:
    """The benchmark program on one MPI library, and that library's launcher."""
    options, launcher = ["-DTILEWISE_BENCH=ON", f"-DPython_EXECUTABLE={BIN / 'python'}"], BIN / "mpiexec"
    if name == "openmpi":
        compiler, mpiexec = shutil.which("mpicxx.openmpi"), shutil.which("mpiexec.openmpi")
        if compiler is None or mpiexec is None:
            raise NotRun("Open MPI is not installed: apt install openmpi-bin libopenmpi-dev")
        options, launcher = [*options, f"-DTILEWISE_MPI_COMPILER={compiler}"], Path(mpiexec)
    folder = ROOT / f"build/bench-{name}"
    run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options])
    run(["cmake", "--build", folder, "--target", "tilewise-io-strategies"])
    return folder / "bench/tilewise-io-strategies", launcher


def numbered(setting: Setting, n: int) -> Path:
    """4096 bytes, then n × n float64 that count up, in the page cache."""
    path = setting.work / "numbered"
    if not path.exists():
        raw = setting.work / "ramp.raw"
        run([BIN / "tilewise", "generate", "--kind", "ramp", "-o", raw, "--shape", f"{n}x{n}", "-q"])
        with open(path, "wb") as out, open(raw, "rb") as numbers:
            out.write(b"\0" * 4096)
            shutil.copyfileobj(numbers, out, 1 << 24)
        raw.unlink()
    return path


def measure(setting: Setting, mpi: str, hints: str) -> list[tuple[str, str, Samples]]:
    """(layout, mode, samples) of one library; `hints` are the default ones or the library's own."""
    program, launcher = build(mpi)
    n = 2048 if setting.quick else 8192
    path = numbered(setting, n)
    given = [
        "romio_cb_read=disable",
        "romio_cb_write=disable",
        "romio_ds_read=disable",
        "romio_ds_write=disable",
    ]
    results = []
    for layout, grid, block in LAYOUTS:
        ranks = 2 if grid == "1x2" else 4
        for mode in MODES if hints == "ours" else ("read",):
            say(f"    {mpi}, {layout}, {mode}, {hints} hints")
            words = [launcher, "-n", ranks, program, path, n, grid, block, mode, 2 * setting.rounds + 1]
            yielding = YIELDING if ranks > len(os.sched_getaffinity(0)) else ROOT_MAY
            samples: Samples = json.loads(run([*words, *(given if hints == "ours" else [])], **yielding))
            wrong = [name for name, side in samples.items() if not side["right"]]
            if wrong:
                raise SystemExit(f"{', '.join(wrong)} read wrong numbers on {layout}")
            results.append((layout, mode, samples))
    return results


def strategies(setting: Setting) -> list[Row]:
    """One row for each strategy, layout, mode and library; and what must be shown of them."""
    rows: list[Row] = []
    for mpi in ("mpich", "openmpi"):
        try:
            ours = measure(setting, mpi, "ours")
            plain = {layout: samples for layout, _, samples in measure(setting, mpi, "the library's own")}
        except NotRun as reason:
            rows.append(Row(f"strategies-{mpi}", f"every strategy on {mpi}", "", 0, note=str(reason)))
            continue
        for layout, mode, samples in ours:
            limit = samples["limit"]["seconds"]
            shown = [
                _row(mpi, layout, mode, name, side, limit)
                for name, side in samples.items()
                if name != "limit"
            ]
            rows += [*shown, *_promises(mpi, layout, mode, samples, plain[layout])]
    return rows


def _row(mpi: str, layout: str, mode: str, name: str, side: dict[str, Any], limit: list[float]) -> Row:
    moved = side["read"] if mode == "read" else side["written"]
    row = Row(
        f"{mpi}-{layout}-{mode}-{name}", f"{mpi}, {layout}, {mode}, {name}, over contiguous calls", "", 0
    )
    row.samples = {name: side["seconds"], "limit": limit}
    row.note = (
        f"{statistics.median(side['seconds']) * 1e3:.0f} ms, {moved >> 20} MiB in {side['calls']} calls"
    )
    return compare(row, side["seconds"], limit)


def _promises(mpi: str, layout: str, mode: str, samples: Samples, plain: Samples) -> list[Row]:
    """What the table must show: the best strategy against the limit and against what is usually done."""
    sides = {name: side["seconds"] for name, side in samples.items() if name != "limit"}
    best = min(sides, key=lambda name: statistics.median(sides[name]))
    cyclic, narrow = layout.startswith("cyclic"), layout == "cyclic 64"
    rows = []

    def promise(what: str, bound: str, target: float, above: list[float], below: list[float]) -> None:
        row = Row(f"{mpi}-{layout}-{mode}-{what}", f"{mpi}, {layout}, {mode}: {what} ({best})", bound, target)
        row.samples = {"above": above, "below": below}
        rows.append(compare(row, above, below))

    if mode == "read":
        if narrow or not cyclic:
            promise(
                "best over the limit",
                "at most",
                1.8 if narrow else 1.15,
                sides[best],
                samples["limit"]["seconds"],
            )
        if narrow or layout == "2x2":
            usual = plain["collective"]["seconds"]
            promise("default collective over best", "at least", 10 if narrow else 3, usual, sides[best])
    elif not cyclic:
        bound = "at most" if mode == "fresh" else ""
        promise("best over the limit", bound, 1.2, sides[best], samples["limit"]["seconds"])
    elif narrow:
        promise("positioned over best", "at least", 5, sides["positioned"], sides[best])
    return rows
