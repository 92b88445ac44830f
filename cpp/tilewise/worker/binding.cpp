// Orders a node's cores by where they sit, and deals them out by rank.
#include <algorithm>
#include <fstream>
#include <sched.h>
#include <tuple>

#include "tilewise/base/work.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/worker/run.hpp"

namespace tilewise::worker {
namespace {

std::vector<int> allowed_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cpus;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &set)) {
                cpus.push_back(cpu);
            }
        }
    }
    return cpus;
}

int topology(int cpu, const char* file) {
    std::ifstream in("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + file);
    int value = 0;
    in >> value;  // of a list such as "3,67" the first; where there is none, 0
    return value;
}

/// One hardware thread of every core first, its siblings last; then by socket and core, or turn by turn over the
/// sockets.
std::vector<int> in_order(std::vector<int> cpus, const std::string& place) {
    struct Seat {
        bool sibling;
        int socket, core, cpu, turn;
    };
    std::vector<Seat> seats;
    for (const int cpu : cpus) {
        seats.push_back({topology(cpu, "thread_siblings_list") != cpu, topology(cpu, "physical_package_id"),
                         topology(cpu, "core_id"), cpu, 0});
    }
    std::sort(seats.begin(), seats.end(), [](const Seat& x, const Seat& y) {
        return std::tie(x.sibling, x.socket, x.core, x.cpu) < std::tie(y.sibling, y.socket, y.core, y.cpu);
    });
    if (place == "socket") {
        for (std::size_t i = 0; i < seats.size(); ++i) {
            seats[i].turn = static_cast<int>(std::count_if(
                seats.begin(), seats.begin() + static_cast<std::ptrdiff_t>(i),
                [&](const Seat& s) { return s.sibling == seats[i].sibling && s.socket == seats[i].socket; }));
        }
        std::sort(seats.begin(), seats.end(), [](const Seat& x, const Seat& y) {
            return std::tie(x.sibling, x.turn, x.socket, x.cpu) < std::tie(y.sibling, y.turn, y.socket, y.cpu);
        });
    }
    std::vector<int> ordered;
    for (const Seat& seat : seats) {
        ordered.push_back(seat.cpu);
    }
    return ordered;
}

/// Whether all ranks of the node may use exactly the same cores.
bool all_unbound(const mpi::Communicator& node, const std::vector<int>& cpus) {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    for (const int cpu : cpus) {
        CPU_SET(cpu, &mine);
    }
    cpu_set_t common = mine, any = mine;
    mpi::check(MPI_Allreduce(&mine, &common, sizeof mine, MPI_BYTE, MPI_BAND, node.get()), "MPI_Allreduce");
    mpi::check(MPI_Allreduce(&mine, &any, sizeof mine, MPI_BYTE, MPI_BOR, node.get()), "MPI_Allreduce");
    return CPU_EQUAL(&common, &any) != 0;
}

}  // namespace

Binding bind(const mpi::Communicator& comm, int threads, bool wanted, const std::string& place) {
    const mpi::Communicator node = comm.node();
    Binding binding{.cpus = allowed_cpus()};
    binding.node = mpi::of_root(node, comm.rank());
    binding.node_ranks = node.size();

    if (is_simulated) {  // on cores that are not ours
        binding.cpus.clear();
        return binding;
    }
    const bool unbound = all_unbound(node, binding.cpus);
    const auto needed = static_cast<std::size_t>(node.size()) * static_cast<std::size_t>(threads);
    binding.oversubscribed =
        unbound ? needed > binding.cpus.size() : static_cast<std::size_t>(threads) > binding.cpus.size();
    const bool any = mpi::any_of(comm, binding.oversubscribed);
    if (!wanted || !unbound || binding.oversubscribed || node.size() == 1) {
        binding.oversubscribed = any;
        return binding;
    }
    const std::vector<int> ordered = in_order(binding.cpus, place);
    const auto begin = static_cast<std::size_t>(node.rank()) * static_cast<std::size_t>(threads);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (std::size_t i = begin; i < begin + static_cast<std::size_t>(threads); ++i) {
        CPU_SET(ordered[i], &set);
    }
    if (sched_setaffinity(0, sizeof set, &set) == 0) {  // where it is not allowed, the system places the ranks
        binding.cpus = allowed_cpus();
    }
    binding.oversubscribed = any;
    return binding;
}

}  // namespace tilewise::worker
