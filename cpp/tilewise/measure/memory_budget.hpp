// Whether what ranks that share a memory are about to take of it is there, before any of them takes it: the system
// hands out more than it has, and ends whoever comes to use it.
#pragma once

#include <cstdint>
#include <string>

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::measure {

/// A memory, as one of the ranks that share it sees it.
struct MemoryBudget {
    std::string whose;  ///< "node" or "device"
    std::string kind;   ///< of memory: malloc, pinned, device or managed
    double usable;      ///< the part of what is free that may be taken
    std::int64_t free;  ///< bytes
};

/// Why `needed` bytes on this rank, together with what the others of `sharers` need, do not fit; empty if they do. The
/// same on every rank of `comm`, of which the sharers are a part. @note Collective.
std::string exceeds_budget(const mpi::Communicator& comm, const mpi::Communicator& sharers, const MemoryBudget& budget,
                           std::int64_t needed);

/// The same of this node's memory, of which four fifths may be taken. Throws IoError alike on every rank. @note
/// Collective.
std::string lacks_host_memory(const mpi::Communicator& comm, std::int64_t needed);

}  // namespace tilewise::measure
