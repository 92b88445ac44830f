"""Slurm: the variables that an `srun` of ours reads, the MPI type for ranks, and questions to it.

A variable that `salloc`, `sbatch` or an outer step has set is an option to an inner `srun`: most of them mean
that outer thing. MPI types, by who starts what:

    started by srun       MPI type                 why
    MPICH's proxies       none                     ranks would take srun's PMI for that of their proxy
    Open MPI's daemons    none                     the same
    ranks on MPICH        pmi2                     all that the wheel understands beside its own launcher's
    ranks on Open MPI     pmix (pmix_v5, …)        all that it understands where it was built without PMI-2
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Mapping

from tilewise.launch.join import in_step

SPOKEN = {"mpich": ("pmi2",), "openmpi": ("pmix", "pmix_v5", "pmix_v4", "pmix_v3", "pmix_v2")}
_ANSWER = 20.0  # seconds that Slurm may take to answer a question

# Options of the step that we are in, or of the job's script, which are not for an inner srun: how many and
# where, memory (the whole job's is there for every step of ours), devices, streams.
_OPTIONS = (
    "SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_TRES_PER_TASK SLURM_NTASKS_PER_ "
    "SLURM_THREADS_PER_CORE SLURM_CORE_SPEC SLURM_THREAD_SPEC SLURM_HINT SLURM_EXACT "
    "SLURM_EXCLUSIVE SLURM_WHOLE SLURM_DIST_PLANESIZE SLURM_SPREAD_JOB SLURM_USE_MIN_NODES "
    "SLURM_MEM_BIND SLURM_MEM_PER_ SLURM_GPU_BIND SLURM_GPUS_PER_TASK SLURM_LABELIO "
    "SLURM_STDINMODE SLURM_STDOUTMODE SLURM_STDERRMODE SLURM_REMOTE_CWD SLURM_WORKING_DIR "
    "SLURM_EXPORT_ENV SRUN_EXPORT_ENV SLURM_WAIT"
)


def in_allocation(environment: Mapping[str, str]) -> bool:
    """Return whether Slurm has given us nodes."""
    return "SLURM_JOB_ID" in environment


def of_the_job(environment: dict[str, str], outer: Mapping[str, str]) -> None:
    """Makes `environment`, where `outer` is that of a step, one of the whole job: all its nodes are ours."""
    if not in_step(outer):
        return
    environment["SLURM_OVERLAP"] = "1"  # else an inner srun waits forever for what our step holds
    environment.pop("SLURM_MPI_TYPE", None)  # the step's own
    for key in ("SLURM_NTASKS", "SLURM_NPROCS"):
        environment.pop(key, None)
    for key, whole in (
        ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
        ("SLURM_NODELIST", "SLURM_JOB_NODELIST"),
        ("SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"),
    ):
        if whole in environment:
            environment[key] = environment[whole]


def for_proxies(environment: dict[str, str], outer: Mapping[str, str]) -> None:
    """Add what an `srun` reads by which an MPI library's launcher starts a proxy on each node.

    `outer` is the environment that we were started in. Options on a command line prevail over all of this.
    """
    if in_allocation(outer):
        _forget_options(environment)
        environment["SLURM_OVERLAP"] = "1"  # proxies take all processors, which only their ranks use
        environment["SLURM_MPI_TYPE"] = "none"
        environment["SLURM_CPU_BIND"] = "none"  # ranks bind themselves; a proxy's core would be all of theirs


def for_steps(environment: dict[str, str], family: str) -> None:
    """Add what an `srun` reads that starts ranks of the MPI library `family`."""
    _forget_options(environment)
    environment["SLURM_KILL_BAD_EXIT"] = "1"
    if family in SPOKEN:
        environment.setdefault("SLURM_MPI_TYPE", SPOKEN[family][0])
    if family == "openmpi":
        # Slurm 22.05 mixes two kinds of fence. On busy nodes one start in 30 then crashed (Open MPI 4.1):
        # a rank left MPI_Init, and its first message found another not ready for any.
        environment.setdefault("SLURM_PMIX_FENCE", "tree")


def _forget_options(environment: dict[str, str]) -> None:
    for key in [key for key in environment if key.startswith(tuple(_OPTIONS.split()))]:
        del environment[key]
    environment["SLURM_EXPORT_ENV"] = "ALL"  # else `sbatch --export=NONE` would hold for ranks, too


def mpi_type(srun: str, family: str, environment: Mapping[str, str]) -> str | None:
    """The MPI type for ranks of that family; empty: not ours to say; None: Slurm has none that fits."""
    if family not in SPOKEN or (environment.get("SLURM_MPI_TYPE") and not in_step(environment)):
        return ""
    offered = mpi_types(srun)
    return next((name for name in SPOKEN[family] if name in offered), None if offered else "")


def mpi_types(srun: str) -> list[str]:
    """The MPI types that this Slurm offers; empty where it does not say."""
    types: list[str] = []
    for line in _answer((srun, "--mpi=list")).partition("are...")[2].splitlines():
        words = line.replace("srun:", "").rpartition("available:")[2].replace(",", " ").split()
        types += words if len(words) == 1 or "available:" in line else []
    return types


def down_nodes(environment: Mapping[str, str]) -> list[str]:
    """The nodes of our allocation that Slurm has given up; asked when a job has failed."""
    nodes = environment.get("SLURM_JOB_NODELIST") if in_allocation(environment) else None
    answer = _answer(("scontrol", "-o", "show", "node", nodes)) if nodes else ""
    return re.findall(r"^NodeName=([\w.-]+) .*? State=\S*(?:DOWN|FAIL)", answer, re.MULTILINE)


def lost_a_node(environment: Mapping[str, str]) -> bool:
    """Return whether Slurm has ended our allocation because a node of it failed, which may be back by now."""
    job = environment.get("SLURM_JOB_ID", "")
    return bool(job) and "JobState=NODE_FAIL" in _answer(("scontrol", "-o", "show", "job", job))


def mpi_default() -> str:
    """The MPI type of steps that name none, or an empty string where Slurm does not say."""
    match = re.search(r"^MpiDefault\s*=\s*(\S+)", _answer(("scontrol", "show", "config")), re.MULTILINE)
    return match[1] if match else ""


@functools.cache
def _answer(words: tuple[str, ...]) -> str:
    """Return the output of one of Slurm's commands, on whichever stream."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_ANSWER,
            check=False,
            env={key: value for key, value in os.environ.items() if not key.startswith("SLURM_MPI_TYPE")},
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
