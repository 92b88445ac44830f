// Memory that other ranks can reach: by put and get, or directly within a node.
#pragma once

#include <cstddef>

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::mpi {

/// Memory of this rank that the others of `comm` may read; freed collectively with its owner.
struct Exposed {
    Window window;
    std::byte* data = nullptr;
};

/// check() for what makes a window: its error says what to use where the library cannot, as Open MPI 4 over TCP.
void check_one_sided(int code, const char* call);

/// Memory that MPI allocates for one-sided access. Let `comm` be everybody: Open MPI 4 gives windows on disjoint communicators the same
/// memory. @note Collective.
Exposed allocate_window(const Communicator& comm, std::size_t bytes);

/// Memory shared by the ranks of one node, which must be all of `comm`. Throws MemoryError on every rank where the
/// system's shared memory (/dev/shm) has no room: writing there would otherwise end in a bus error. @note Collective.
Exposed allocate_shared(const Communicator& comm, std::size_t bytes);

/// Where the memory of `rank` lies in this process.
std::byte* shared_data(const Exposed& exposed, int rank);

}  // namespace tilewise::mpi
