"""Everything around a job or a measurement that its numbers depend on."""

from __future__ import annotations

import datetime
import os
import platform
import shlex
from collections.abc import Mapping, Sequence

import tilewise
from tilewise.files.region import Region
from tilewise.files.target import Target
from tilewise.launch import elsewhere
from tilewise.launch.events import Done
from tilewise.launch.launcher import Start
from tilewise.launch.record import Environment, Simulated, Storage
from tilewise.machine.facts import Facts
from tilewise.machine.storage import cache_state, file_system

_TELLING = ("OPENBLAS_", "OMP_", "GOTO_", "BLIS_", "MKL_", "MPIR_CVAR_", "MPICH_", "OMPI_MCA_", "FI_", "UCX_")


def environment_of(
    done: Done,
    facts: Facts,
    start: Start,
    *,
    bind: bool,
    storage: list[Storage],
    oversubscribed: bool,
    simulated: Simulated | None = None,
) -> Environment:
    """Of a run of `start` that ended with `done`; `bind`: ranks were told to keep to their cores."""
    told = dict(done.environment)
    versions = {"python": platform.python_version(), "tilewise": tilewise.__version__}
    if "worker_version" in told:
        versions["worker"] = told["worker_version"]
    versions["kernel"] = platform.release()
    bound = [rank.cpus for rank in done.ranks]
    return Environment(
        host=facts.host,
        cpu=facts.cpu,
        cores=facts.cores,
        cpus=facts.cpus,
        numa_nodes=facts.numa,
        mpi_library=told.get("mpi_library", "unknown"),
        mpi_standard=told.get("mpi_standard", "unknown"),
        blas=told.get("blas", "unknown"),
        blas_kernel=told.get("blas_kernel", "unknown"),
        gemm_kernel=told.get("gemm_kernel", ""),
        compiler=told.get("compiler", "unknown"),
        binding="each rank to its own cores" if bind and any(bound) else "none",
        launcher=shlex.join(elsewhere.shown(start.command)),
        storage=storage,
        oversubscribed=done.oversubscribed or oversubscribed,
        variables=_telling(start.environment),
        versions=versions,
        time=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        virtual="hypervisor" in facts.flags if facts.flags else None,
        simulated=simulated,
    )


def _telling(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that change how fast MPI or BLAS run."""
    return {key: value for key, value in sorted(environment.items()) if key.startswith(_TELLING)}


def storage_of(inputs: Sequence[Region], target: Target | None) -> list[Storage]:
    """Where files lie, looked at before the job warms the cache."""
    inputs_lie = [
        Storage(region.path, file_system(region.path), cache_state(region.path))
        for region in inputs
        if region.path
    ]
    if target is None:
        return inputs_lie
    return [*inputs_lie, Storage(target.path, file_system(os.path.dirname(target.path)), "new")]
