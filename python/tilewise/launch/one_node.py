"""What spares ranks that are all on one node the search for networks; constants only.

MPICH's ranks on one node talk through shared memory of its own. Below that it starts UCX, for other nodes:

                                          one rank, start to end    two ranks
    as UCX does by itself                         69 ms               123 ms
    without hooks in the C library                28                   77
    and without looking for networks              18                   56

The hooks tell network cards of memory that is given back. Each of eight functions is patched, with a wait of
5 ms for threads that may be in it, before `main` begins.
"""

from __future__ import annotations

ONE_NODE = {
    "UCX_MEM_MMAP_HOOK_MODE": "none",
    "UCX_TLS": "self,posix",  # MPI_Init wants a way between any two ranks, though none will take it
    "UCX_VFS_ENABLE": "n",  # no thread that serves a file system for debugging
}
