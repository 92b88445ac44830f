"""The worker program: where it lies, what its build says, and the variables that tune its MPI library.

Imports nothing heavy, as ranks of somebody else's launcher pass through here on their way to the worker.
"""

from __future__ import annotations

import json
import os

from tilewise.base import programs

NAME = "tilewise-worker"
FACTS = "build.json"
_STARTER = "tilewise-start"
RUN = "TILEWISE_RUN"  # the variable by which ranks on this host find the front, and we all that was started
FRONT = "TILEWISE_FRONT"  # the variable by which ranks on other hosts find it
PHASE, NO_PHASE = "TILEWISE_PHASE", "-"  # the variable in which a rank shows its phase, and its first value

# What lets ranks that take turns on a core give it away while they wait. MPICH's shared-memory collectives
# spin without yielding, and its default yield returns at once: with 4 ranks on 2 cores a barrier takes 10 ms
# instead of 0.4. Each rank may have these or not:
YIELDING = {
    "MPIR_CVAR_POLLS_BEFORE_YIELD": "1",
    "MPIR_CVAR_ENABLE_HEAVY_YIELD": "1",
    "OMPI_MCA_mpi_yield_when_idle": "true",
}

# These choose how ranks talk: all must have the same, or they wait for each other forever. So they are only
# for a job that we start ourselves, not for ranks that exist already.
ALGORITHMS = {
    "MPIR_CVAR_BARRIER_POSIX_INTRA_ALGORITHM": "mpir",
    "MPIR_CVAR_BCAST_POSIX_INTRA_ALGORITHM": "mpir",
    "MPIR_CVAR_REDUCE_POSIX_INTRA_ALGORITHM": "mpir",
    "MPIR_CVAR_ALLREDUCE_POSIX_INTRA_ALGORITHM": "mpir",
}
# What spares ranks that are all on one node the search for networks. MPICH's ranks on one node talk through
# shared memory of its own. Below that it starts UCX, for other nodes:
#
#                                           one rank, start to end    two ranks
#     as UCX does by itself                         69 ms               123 ms
#     without hooks in the C library                28                   77
#     and without looking for networks              18                   56
#
# The hooks tell network cards of memory that is given back. Each of eight functions is patched, with a wait
# of 5 ms for threads that may be in it, before `main` begins.
ONE_NODE = {
    "UCX_MEM_MMAP_HOOK_MODE": "none",
    "UCX_TLS": "self,posix",  # MPI_Init wants a way between any two ranks, though none will take it
    "UCX_VFS_ENABLE": "n",  # no thread that serves a file system for debugging
}


def candidates() -> list[str]:
    """Every place a worker may lie, best first: TILEWISE_WORKER, the package, the environment."""
    named = os.environ.get("TILEWISE_WORKER")
    return [os.path.abspath(named)] if named else places()


def find() -> str | None:
    """The worker's path, or None when there is none that can be started."""
    return programs.first(candidates())


def without_mpi() -> dict[str, str]:
    """The environment for a worker that does not start MPI, which takes 40 ms less: UCX prepares nothing."""
    return {**os.environ, **{name: ONE_NODE[name] for name in ("UCX_MEM_MMAP_HOOK_MODE", "UCX_VFS_ENABLE")}}


def trouble(path: str | None) -> str:
    """Return why the worker at `path` cannot start on this host, in words; empty where it can."""
    host = os.uname().nodename
    if path is None:
        return f"the worker is missing on {host}, expected at {candidates()[0]}"
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    try:
        child = os.posix_spawn(path, [path, "--version"], without_mpi(), file_actions=quiet)
    except OSError as error:
        return f"the worker does not start on {host}: {path}: {error.strerror}"
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return f"the worker does not start on {host}: {path} ended with exit code {code}" if code else ""


def tied(command: list[str]) -> list[str]:
    """`command` for a child that is asked to end when this process dies, and that this process's terminal
    does not interrupt. Where the installation lacks the program for that, `command` itself.
    """
    starter = programs.first(programs.places(_STARTER))
    return [starter, str(os.getpid()), *command] if starter is not None else command


def places() -> list[str]:
    """Every place where the installed package's worker may lie, best first."""
    return programs.places(NAME)


def build_facts(worker: str) -> dict[str, str]:
    """The words that `build.json` beside the worker says; empty where it is missing or unreadable."""
    try:
        with open(os.path.join(os.path.dirname(worker), FACTS), encoding="utf-8") as file:
            facts = json.load(file)
    except (OSError, ValueError):
        return {}
    if not isinstance(facts, dict):
        return {}
    return {key: value for key, value in facts.items() if isinstance(value, str)}
