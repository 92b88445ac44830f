// Adds up what is needed, and takes the least that any sharer found free; asks the C library for whole pages, and
// writes each byte once.
#include "tilewise/measure/buffers.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "tilewise/base/error.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {

namespace {

using mpi::check;

std::string whole_percent(double share) { return std::to_string(static_cast<int>(share * 100 + 0.5)) + " %"; }

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

std::string exceeds_budget(const mpi::Communicator& comm, const mpi::Communicator& sharers, const MemoryBudget& budget,
                           std::int64_t needed) {
    std::int64_t all = mpi::sum_of(sharers, needed), free = mpi::least_of(sharers, budget.free);
    const bool fits = static_cast<double>(all) <= budget.usable * static_cast<double>(free);
    const int first = mpi::least_of(comm, fits ? comm.size() : comm.rank());
    if (first == comm.size()) {
        return "";
    }
    check(MPI_Bcast(&all, 1, MPI_INT64_T, first, comm.get()), "MPI_Bcast");
    check(MPI_Bcast(&free, 1, MPI_INT64_T, first, comm.get()), "MPI_Bcast");
    return "the buffers of all ranks that share a " + budget.whose + " need " + std::to_string(all) + " bytes of " +
           budget.kind + " memory, and of the " + std::to_string(free) + " bytes free there at most " +
           whole_percent(budget.usable) + " are used";
}

std::string lacks_host_memory(const mpi::Communicator& comm, std::int64_t needed, const std::string& kind) {
    MemoryBudget budget{"node", kind, most_of_free(kind), 0};
    mpi::together(comm, [&] { budget.free = free_host_memory(); });
    return exceeds_budget(comm, comm.node(), budget, needed);
}

std::string lacks_memory(const mpi::Communicator& comm, const BlockMemory& memory, int device, std::int64_t bytes) {
    const std::string kind = memory.name();
    const bool on_device = kind == "device" || kind == "managed";
    MemoryBudget budget{on_device ? "device" : "node", kind, most_of_free(kind), 0};
    mpi::together(comm, [&] { budget.free = memory.free_bytes(); });
    return exceeds_budget(comm, comm.node().split(on_device ? device : 0, comm.rank()), budget, bytes);
}

PrefaultedBuffer::PrefaultedBuffer(std::size_t bytes, std::byte value) : bytes_(bytes) {
    const auto whole = static_cast<std::size_t>(rounded_to_pages(static_cast<std::int64_t>(bytes)));
    if (whole == 0) {
        return;
    }
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(static_cast<std::size_t>(page), whole)));
    if (!data_) {
        throw MemoryError("could not get " + std::to_string(whole) + " bytes of memory for messages");
    }
    std::memset(data_.get(), static_cast<int>(value), whole);
}

}  // namespace tilewise::measure
