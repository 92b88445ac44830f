// Adds up what is needed, and takes the least that any sharer found free.
#include "tilewise/measure/memory_budget.hpp"

#include "tilewise/base/memory.hpp"
#include "tilewise/measure/agreed.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

using mpi::check;

std::string percent(double share) { return std::to_string(static_cast<int>(share * 100 + 0.5)) + " %"; }

}  // namespace

std::string exceeds_budget(const mpi::Communicator& comm, const mpi::Communicator& sharers, const MemoryBudget& budget,
                           std::int64_t needed) {
    std::int64_t all = needed, free = budget.free;
    check(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT64_T, MPI_SUM, sharers.get()), "MPI_Allreduce");
    check(MPI_Allreduce(MPI_IN_PLACE, &free, 1, MPI_INT64_T, MPI_MIN, sharers.get()), "MPI_Allreduce");
    const bool fits = static_cast<double>(all) <= budget.usable * static_cast<double>(free);
    int first = fits ? comm.size() : comm.rank();
    check(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, comm.get()), "MPI_Allreduce");
    if (first == comm.size()) {
        return "";
    }
    check(MPI_Bcast(&all, 1, MPI_INT64_T, first, comm.get()), "MPI_Bcast");
    check(MPI_Bcast(&free, 1, MPI_INT64_T, first, comm.get()), "MPI_Bcast");
    return "the buffers of all ranks that share a " + budget.whose + " need " + std::to_string(all) + " bytes of " +
           budget.kind + " memory, and of the " + std::to_string(free) + " bytes free there at most " +
           percent(budget.usable) + " are used";
}

std::string lacks_host_memory(const mpi::Communicator& comm, std::int64_t needed) {
    MemoryBudget budget{"node", "malloc", 0.8, 0};
    mpi::together(comm, [&] { budget.free = free_host_memory(); });
    return exceeds_budget(comm, comm.node(), budget, needed);
}

}  // namespace tilewise::measure
