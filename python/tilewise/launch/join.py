"""Joins ranks that somebody else's mpiexec or srun started: who we are among them, and what the others do.

Imports nothing but what Python has loaded anyway: on thousands of ranks this is all that runs before the
worker takes over.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

_LAST_WORDS = 2.0  # seconds in which rank 0 may say what is wrong, before our end makes the launcher kill it
_SLURM_OWN_STEPS = 4294967280  # from here on step numbers mean batch script, interactive shell and the like


class Join(NamedTuple):
    """Our place in a job that exists.

    `kind` is whose variables told (`pmi`, `openmpi`, `pmix`, `slurm`), `local` counts the ranks on our node
    (0: not told).
    """

    rank: int
    size: int
    kind: str
    local: int = 0

    @property
    def nodes(self) -> int:
        """How many nodes the ranks are on, as far as the launcher tells; else 1."""
        return -(-self.size // self.local) if self.local > 0 else 1


def detect(environment: Mapping[str, str]) -> Join | None:
    """Our place among 2 or more ranks that exist, or None when we were started alone."""
    slurm_size = environment.get("SLURM_STEP_NUM_TASKS") or environment.get("SLURM_NTASKS")
    step = environment.get("SLURM_STEP_ID", "")
    in_step = step.isdigit() and int(step) < _SLURM_OWN_STEPS
    for kind, rank, size in (
        ("pmi", environment.get("PMI_RANK"), environment.get("PMI_SIZE")),
        ("openmpi", environment.get("OMPI_COMM_WORLD_RANK"), environment.get("OMPI_COMM_WORLD_SIZE")),
        ("pmix", environment.get("PMIX_RANK"), slurm_size if in_step else None),
        ("slurm", environment.get("SLURM_PROCID") if in_step else None, slurm_size),
    ):
        if rank and size and rank.isdigit() and size.isdigit():
            return Join(int(rank), int(size), kind, _local(environment, int(size))) if int(size) > 1 else None
    return None


def _local(environment: Mapping[str, str], size: int) -> int:
    """Ranks on our node, from whoever tells."""
    for key in ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"):
        if environment.get(key, "").isdigit():
            return int(environment[key])
    nodes = environment.get("SLURM_STEP_NUM_NODES", "")
    return -(-size // int(nodes)) if nodes.isdigit() and int(nodes) > 0 else 0


def foreign(join: Join, mpi: str) -> bool:
    """Whether the ranks were started by a launcher that the worker's MPI library cannot understand."""
    return mpi == "wheel" and join.kind == "openmpi"


def follow(join: Join, is_job: bool) -> int:
    """What every rank but the first does: becomes the worker of a job, else leaves. Returns an exit code.

    Says nothing in either case: rank 0 does the talking.
    """
    if not is_job:
        return 0
    from tilewise.launch import worker

    path = worker.find()
    if path is None and join.nodes > 1:  # rank 0 may have found what is missing on our node
        time.sleep(_LAST_WORDS)
        return 2
    if path is None or foreign(join, worker.build_facts(path).get("mpi", "wheel")):
        return 0  # rank 0 sees it too; an exit code of ours might make the launcher kill it before it says so
    from tilewise.launch.yielding import YIELDING

    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as rank 0's worker has it
    if join.local > (os.cpu_count() or 1):
        for name, value in YIELDING.items():
            os.environ.setdefault(name, value)
    sys.stdout.flush()
    try:
        os.execv(path, [path, "--expect", str(join.size), "--joined"])
    except OSError:
        return 2
