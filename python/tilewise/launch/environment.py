"""The environment ranks start with: nothing of an outer job, threads as planned, traps pointed out."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tilewise.launch import slurm
from tilewise.launch.worker import ALGORITHMS, ONE_NODE, YIELDING
from tilewise.machine import host
from tilewise.machine.facts import Facts

# What launchers set for the ranks of a job; a launcher of our own would take it for its own job's. Of Slurm
# only what a step sets: the allocation is ours to use. MCA parameters may be the user's, as `_USERS` are.
_OUTER = (
    "PMI_ PMIX_ HYDI_ MPI_LOCAL OMPI_COMM_WORLD_ OMPI_UNIVERSE_SIZE OMPI_FIRST_RANKS "
    "OMPI_NUM_APP_CTX OMPI_APP_CTX_ OMPI_ARGV OMPI_COMMAND OMPI_FILE_LOCATION OMPI_MCA_ess "
    "OMPI_MCA_initial_wdir OMPI_MCA_orte_ OMPI_MCA_pmix OMPI_MCA_shmem_RUNTIME_QUERY_hint "
    "PRTE_LAUNCHED PRTE_MCA_prte_ SLURM_PROCID SLURM_LOCALID SLURM_NODEID SLURM_GTIDS "
    "SLURM_LAUNCH_NODE_IPADDR SLURM_STEP_ SLURM_STEPID SLURM_STEPMGR SLURM_SRUN_ SLURM_TASK_PID "
    "SLURM_PMI SLURM_PTY_ SLURM_CPU_BIND SLURM_DISTRIBUTION"
)
_USERS = "PMIX_MCA_ PMI_FANOUT PMI_TIME SLURM_PMIX_FENCE SLURM_PMIX_DIRECT_ SLURM_PMIX_TIMEOUT"

# What ranks heed, wherever they are.
_HEEDED = ("OPENBLAS_", "OMP_", "GOTO_", "BLIS_", "MKL_", "UCX_", "FI_", "TILEWISE_", "LD_LIBRARY_PATH")

# OpenBLAS's names of processors, by the widest instructions that each lets it use.
_CORES = (
    "nehalem penryn dunnington core2 prescott katmai coppermine northwood banias atom athlon opteron "
    "opteron_sse3 barcelona bobcat nano",
    "sandybridge bulldozer piledriver steamroller excavator",
    "haswell zen",
    "skylakex cooperlake sapphirerapids",
)
_LEVEL_NAME = ("SSE", "AVX", "AVX2", "AVX-512")


def alone(base: Mapping[str, str]) -> dict[str, str]:
    """`base` without what makes a process a rank of somebody's job; the batch system's allocation stays."""
    outer, users = tuple(_OUTER.split()), tuple(_USERS.split())
    kept = {key: value for key, value in base.items() if not key.startswith(outer) or key.startswith(users)}
    slurm.of_the_job(kept, base)
    return kept


def for_ranks(
    base: Mapping[str, str], threads: int, oversubscribed: bool, own_launcher: bool
) -> dict[str, str]:
    """The environment for ranks of `threads` threads, made from `base`.

    `own_launcher`: the ranks are a job of our own, so that what an outer launcher set must go. Oversubscribed
    ranks yield instead of spinning, else each waits out the time slices of the others.
    """
    environment = alone(base) if own_launcher else dict(base)
    environment.pop("TILEWISE_MPI_THREADS", None)  # each job's own business, and not of whoever exported it
    # The worker's own threads call a BLAS of one thread each; left alone, BLAS would start one for each core.
    environment["OPENBLAS_NUM_THREADS"] = "1"
    environment["OMP_NUM_THREADS"] = str(threads)
    # Where an operation lets BLAS have threads after all, they are not to spin for 25 ms after each call.
    environment.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")
    if oversubscribed:
        for name, value in (YIELDING | ALGORITHMS if own_launcher else YIELDING).items():
            environment.setdefault(name, value)
    return environment


def for_one_node(environment: dict[str, str]) -> None:
    """Adds what spares ranks of the wheel's MPICH the search for networks that one node does not need."""
    if not any(key.startswith("UCX_") for key in environment):  # else somebody knows better
        environment.update(ONE_NODE)


def for_open_mpi(environment: dict[str, str]) -> None:
    """Adds what Open MPI asks of root, who in a container is everybody."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        for name in ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"):
            environment.setdefault(name, "1")
            environment.setdefault(f"{name}_CONFIRM", "1")


def for_other_hosts(environment: Mapping[str, str]) -> list[str]:
    """Names of the variables that ranks on other hosts need too."""
    return sorted(key for key in environment if key.startswith(_HEEDED))


def blas_warnings(environment: Mapping[str, str], facts: Facts) -> list[str]:
    """One warning for each variable that makes BLAS slower than this processor allows."""
    warnings = []
    forced = environment.get("OPENBLAS_CORETYPE", "")
    level = next((level for level, names in enumerate(_CORES) if forced.lower() in names.split()), None)
    able = _level(facts.flags)
    if level is not None and level < able:
        warnings.append(
            f"OPENBLAS_CORETYPE={forced} keeps BLAS to {_LEVEL_NAME[level]} "
            f"on a processor with {_LEVEL_NAME[able]}; "
            "for full speed: unset OPENBLAS_CORETYPE"
        )
    size = environment.get("OPENBLAS_L2_SIZE", "")
    real = host.cache_bytes(2) // 1024
    if size.isdigit() and real and int(size) < real:
        warnings.append(
            f"OPENBLAS_L2_SIZE={size} declares a smaller cache to BLAS than the real {real} KiB; "
            "for full speed: unset OPENBLAS_L2_SIZE"
        )
    return warnings


def _level(flags: frozenset[str]) -> int:
    return 3 if "avx512f" in flags else 2 if "avx2" in flags else 1 if "avx" in flags else 0
