"""What lets ranks that take turns on a core give it away while they wait; constants only.

MPICH's shared-memory collectives spin without yielding, and its default yield returns at once: with 4 ranks
on 2 cores a barrier takes 10 ms instead of 0.4.
"""

from __future__ import annotations

# Each rank may have these or not.
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
