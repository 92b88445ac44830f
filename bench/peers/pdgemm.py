"""Builds ScaLAPACK's pdgemm driver, finds the settings that suit it best, and runs it."""

from __future__ import annotations

import json
import shutil
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import ROOT, NotRun, run, say

PACKAGES = "apt install libscalapack-openmpi-dev libopenblas0-pthread openmpi-bin libopenmpi-dev"
SOURCE = Path(__file__).with_name("pdgemm.cpp")
LIBRARIES = (Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib/aarch64-linux-gnu"))
BLOCKS = (64, 128, 256, 512)
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "true",
    "OMPI_MCA_mpi_yield_when_idle": "true",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class Settings:
    """One way of running pdgemm. `core` forces an OpenBLAS kernel; empty leaves the library's own choice."""

    program: Path
    core: str
    rows: int
    columns: int
    block: int

    def describe(self) -> str:
        blas = f"{self.program.name.removeprefix('pdgemm-')} BLAS{f' as {self.core}' if self.core else ''}"
        return f"{blas}, grid {self.rows}x{self.columns}, blocks of {self.block}"


def build() -> dict[str, Path]:
    """The driver linked twice: with Debian's OpenBLAS, and with the very OpenBLAS that tilewise uses."""
    folder = ROOT / "build/bench"
    folder.mkdir(parents=True, exist_ok=True)
    libraries = next((path for path in LIBRARIES if (path / "libscalapack-openmpi.so").exists()), None)
    if libraries is None or not shutil.which("mpicxx.openmpi"):
        raise NotRun(f"ScaLAPACK is not installed: {PACKAGES}")
    compile_it = ["mpicxx.openmpi", "-O2", "-std=c++20", "-DOMPI_SKIP_MPICXX", SOURCE, "-lscalapack-openmpi"]
    programs = {}
    if (debian := libraries / "openblas-pthread/libopenblas.so.0").exists():
        programs["debian"] = folder / "pdgemm-debian"
        at_run_time = [f"-Wl,-rpath,{debian.parent}", "-Wl,--disable-new-dtags"]
        run([*compile_it, debian, *at_run_time, "-o", programs["debian"]])
    try:
        import scipy_openblas32  # type: ignore[import-untyped]
    except ImportError:
        pass
    else:
        wheel = Path(scipy_openblas32.get_lib_dir())
        programs["wheel"] = folder / "pdgemm-wheel"
        link = [wheel / "libscipy_openblas.so", f"-Wl,-rpath,{wheel}", "-Wl,--disable-new-dtags"]
        run([*compile_it, "-DPDGEMM_WHEEL_BLAS", *link, "-o", programs["wheel"]])
    if not programs:
        raise NotRun(f"no OpenBLAS to link ScaLAPACK with: {PACKAGES}")
    return programs


def measure(settings: Settings, n: int, warmup: int, runs: int) -> dict[str, Any]:
    """One launch; the record has `seconds` of every run and the BLAS `kernel` that was used."""
    ranks = settings.rows * settings.columns
    place = ["--bind-to", "core"] if ranks <= 2 else ["--bind-to", "none"]
    command = ["mpiexec.openmpi", "-n", ranks, *place, settings.program, n, settings.rows, settings.columns]
    forced = {"OPENBLAS_CORETYPE": settings.core} if settings.core else {}
    answer = run([*command, settings.block, warmup, runs], **OPEN_MPI, **forced)
    measured: dict[str, Any] = json.loads(answer)
    return measured


def tune(ranks: int, n: int) -> Settings:
    """The fastest of both BLAS libraries, all grids and all block sizes, found one axis after the other."""
    programs = build()
    grids = [(p, ranks // p) for p in range(1, ranks + 1) if ranks % p == 0]
    squarest = min(grids, key=lambda grid: abs(grid[0] - grid[1]))

    def seconds(settings: Settings) -> float:
        median = float(statistics.median(measure(settings, n, 1, 3)["seconds"]))
        say(f"    pdgemm on {ranks} ranks: {settings.describe()}: {2e-9 * n**3 / median:.1f} GFLOP/s")
        return median

    kernels = [Settings(programs["wheel"], "", *squarest, 256)] if "wheel" in programs else []
    if "debian" in programs:
        kernels += [
            Settings(programs["debian"], core, *squarest, 256) for core in ("", "SkylakeX", "Haswell")
        ]
    usable = {settings: found for settings in kernels if (found := _try(seconds, settings)) is not None}
    if not usable:
        raise NotRun("pdgemm runs with none of the BLAS libraries found here")
    best = min(usable, key=lambda settings: usable[settings])
    blocks = {Settings(best.program, best.core, *squarest, block) for block in BLOCKS}
    best = min(blocks, key=seconds)
    return min((Settings(best.program, best.core, *grid, best.block) for grid in grids), key=seconds)


def _try(seconds: Any, settings: Settings) -> float | None:
    try:
        return float(seconds(settings))
    except NotRun:
        return None
