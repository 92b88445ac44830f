// Adds up what ranks that share a memory need, and compares it with what is free of it.
#include "tilewise/measure/file_afford.hpp"

#include <algorithm>

#include "tilewise/measure/memory_budget.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

using mpi::check;

/// What part of the free memory may be used: managed memory beyond what a device has makes its pages wander, and locked
/// host memory is lost to everybody else.
double most_of_free(const std::string& kind) {
    if (kind == "managed" || kind == "pinned") {
        return 0.5;
    }
    return kind == "device" ? 0.9 : 0.8;
}

}  // namespace

int device_of(const mpi::Communicator& comm, int there, int wanted) {
    const int rank_in_node = comm.node().rank();
    const int usable = wanted > 0 ? std::min(wanted, there) : there;
    return usable > 0 ? rank_in_node % usable : 0;
}

std::string lacks_memory(const mpi::Communicator& comm, const BlockMemory& memory, int device, std::int64_t bytes) {
    const std::string kind = memory.name();
    const bool on_device = kind == "device" || kind == "managed";
    MemoryBudget budget{on_device ? "device" : "node", kind, most_of_free(kind), 0};
    mpi::together(comm, [&] { budget.free = memory.free_bytes(); });
    return exceeds_budget(comm, comm.node().split(on_device ? device : 0, comm.rank()), budget, bytes);
}

std::string lacks_stage(const mpi::Communicator& comm, std::int64_t bytes) {
    MemoryBudget budget{"node", "pinned", most_of_free("pinned"), 0};
    mpi::together(comm, [&] { budget.free = free_host_memory(); });
    return exceeds_budget(comm, comm.node(), budget, bytes);
}

std::string lacks_disk(const mpi::Communicator& comm, const FileHooks& hooks, const FilePlace& place) {
    constexpr double reserve = 1.05;
    std::int64_t free = 0;
    mpi::together(comm, [&] {
        if (comm.rank() == 0) {
            free = hooks.free_on_disk(place.path, comm.size() * place.memory_bytes());
        }
    });
    check(MPI_Bcast(&free, 1, MPI_INT64_T, 0, comm.get()), "MPI_Bcast");
    const auto needed = static_cast<std::int64_t>(static_cast<double>(place.total_bytes()) * reserve);
    if (needed <= free) {
        return "";
    }
    return "the disk of " + place.path + " has " + std::to_string(free) + " bytes free, and " + std::to_string(needed) +
           " are needed, 5 % more than the samples have";
}

}  // namespace tilewise::measure
