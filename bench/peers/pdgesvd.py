"""Builds ScaLAPACK's pdgesvd driver, finds the settings that suit it best, and runs it."""

from __future__ import annotations

import json
import platform
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import ROOT, NotRun, run, say

from peers.pdgemm import LIBRARIES, OPEN_MPI, PACKAGES, Settings

SOURCE = Path(__file__).with_name("pdgesvd.cpp")
BLOCKS = (16, 32, 64, 128)
# Jumps from the name that ScaLAPACK calls to the same function under the name that the wheel gives it.
_JUMP = ".globl {0}\n.type {0}, @function\n{0}: jmp *scipy_{0}@GOTPCREL(%rip)\n"


def build() -> dict[str, Path]:
    """The driver linked twice: with Debian's BLAS and LAPACK, and with the very ones that tilewise uses."""
    folder = ROOT / "build/bench"
    folder.mkdir(parents=True, exist_ok=True)
    libraries = next((path for path in LIBRARIES if (path / "libscalapack-openmpi.so").exists()), None)
    if libraries is None:
        raise NotRun(f"ScaLAPACK is not installed: {PACKAGES}")
    compile_it = ["mpicxx.openmpi", "-O2", "-std=c++20", "-DOMPI_SKIP_MPICXX", SOURCE]
    scalapack = libraries / "libscalapack-openmpi.so"
    programs = {}
    if (debian := libraries / "openblas-pthread/libopenblas.so.0").exists():
        programs["debian"] = folder / "pdgesvd-debian"
        at_run_time = [f"-Wl,-rpath,{debian.parent}", "-Wl,--disable-new-dtags"]
        run([*compile_it, scalapack, debian, *at_run_time, "-o", programs["debian"]])
    if (wheel := _wheel()) is not None:
        programs["wheel"] = folder / "pdgesvd-wheel"
        jumps = folder / "pdgesvd-jumps.s"
        has = _names(wheel, "--defined-only")
        names = sorted(name for name in _names(scalapack, "--undefined-only") if f"scipy_{name}" in has)
        stack = '.section .note.GNU-stack,"",@progbits\n'
        jumps.write_text("".join(map(_JUMP.format, names)) + stack)
        at_run_time = [f"-Wl,-rpath,{wheel.parent}", "-Wl,--disable-new-dtags"]
        run([*compile_it, jumps, scalapack, wheel, *at_run_time, "-o", programs["wheel"]])
    if not programs:
        raise NotRun(f"no OpenBLAS to link ScaLAPACK with: {PACKAGES}")
    return programs


def measure(settings: Settings, matrix: Path, warmup: int, runs: int) -> dict[str, Any]:
    """One launch; the answer has `seconds` of every run, and `sigma`."""
    ranks = settings.rows * settings.columns
    place = ["--bind-to", "core"] if ranks <= 2 else ["--bind-to", "none"]
    grid = [settings.rows, settings.columns]
    command = ["mpiexec.openmpi", "-n", ranks, *place, settings.program, matrix, *grid, settings.block]
    forced = {"OPENBLAS_CORETYPE": settings.core} if settings.core else {}
    measured: dict[str, Any] = json.loads(run([*command, warmup, runs], **OPEN_MPI, **forced))
    return measured


def tune(ranks: int, matrix: Path) -> Settings:
    """The fastest of both libraries, all grids and all block sizes, found one axis after the other."""
    programs = build()
    grids = [(p, ranks // p) for p in range(1, ranks + 1) if ranks % p == 0]

    def seconds(settings: Settings) -> float:
        try:
            median = float(statistics.median(measure(settings, matrix, 0, 1)["seconds"]))
        except NotRun as reason:
            say(f"    pdgesvd on {ranks} ranks: {describe(settings)}: {reason}")
            return float("inf")
        say(f"    pdgesvd on {ranks} ranks: {describe(settings)}: {median:.3f} s")
        return median

    kernels = [Settings(program, "", *grids[0], 64) for program in programs.values()]
    if "debian" in programs:
        kernels += [Settings(programs["debian"], core, *grids[0], 64) for core in ("SkylakeX", "Haswell")]
    best = min(kernels, key=seconds)
    best = min((replace(best, rows=p, columns=q) for p, q in grids), key=seconds)
    best = min((replace(best, block=block) for block in BLOCKS), key=seconds)
    if seconds(best) == float("inf"):
        raise NotRun("pdgesvd runs with none of the libraries found here")
    return best


def describe(settings: Settings) -> str:
    return settings.describe().replace("pdgesvd-", "")


def _wheel() -> Path | None:
    try:
        import scipy_openblas32  # type: ignore[import-untyped]
    except ImportError:
        return None
    library = Path(scipy_openblas32.get_lib_dir()) / "libscipy_openblas.so"
    return library if platform.machine() == "x86_64" else None  # the jumps are written for it


def _names(library: Path, which: str) -> set[str]:
    lines = run(["nm", "-D", which, library]).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}
