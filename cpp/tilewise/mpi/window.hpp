// Memory that other ranks can reach: by put and get, or directly within a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::mpi {

/// Memory of this rank that the others of `comm` may read; freed collectively with its owner.
struct Exposed {
    Window window;
    std::byte* data = nullptr;
};

/// check() for what makes a window: its error says what to use where the library cannot, as Open MPI 4 over TCP.
void check_one_sided(int code, const char* call);

/// Memory that MPI allocates for one-sided access. Let `comm` be everybody: Open MPI 4 gives windows on disjoint
/// communicators the same memory. @note Collective.
Exposed allocate_window(const Communicator& comm, std::size_t bytes);

/// Memory of this rank's that others get from. @note Collective.
Exposed create_window(const Communicator& comm, std::span<std::byte> memory);

/// Memory shared by the ranks of one node, which must be all of `comm`. Throws MemoryError on every rank where the
/// system's shared memory (/dev/shm) has no room: writing there would otherwise end in a bus error. @note Collective.
Exposed allocate_shared(const Communicator& comm, std::size_t bytes);

/// allocate_shared(), where all ranks are on one node; else every rank throws UsageError. @note Collective.
Exposed allocate_on_one_node(const Communicator& comm, std::size_t bytes);

/// Throws UsageError on every rank of `everybody` unless the ranks of each `group` are on one node; what to use there
/// instead is `advice`. The one place where exchanges ask. @note Collective over `everybody`.
void require_one_node(const Communicator& everybody, const Communicator& group, const char* advice);

/// Where the memory of `rank` lies in this process.
std::byte* shared_data(MPI_Win window, int rank);

/// Work that ranks take piece by piece, each when it is done with its last: who is slow takes less.
///
///     rank 0   [ next = 5 ]      rank 2: fetch and add ──▶ piece 5 is its own, next = 6
class Queue {
public:
    /// Begins with piece 0. @note Collective, as its end is.
    explicit Queue(const Communicator& comm);
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    ~Queue();

    /// The next piece that nobody has, without an end. Not collective; waits for no rank, but for rank 0 across nodes
    /// where the library makes no progress of its own.
    std::int64_t next();

private:
    int ranks_;
    std::int64_t here_ = 0;  ///< of one rank
    Exposed exposed_;
};

}  // namespace tilewise::mpi
