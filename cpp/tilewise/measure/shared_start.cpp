// Tries what a barrier costs, once for a point.
#include "tilewise/measure/shared_start.hpp"

#include <algorithm>
#include <vector>

#include "tilewise/measure/agreed.hpp"
#include "tilewise/measure/clock.hpp"
#include "tilewise/measure/statistics.hpp"

namespace tilewise::measure {

double meet_all(const mpi::Communicator& comm) {
    if (comm.size() == 1) {
        return 0;
    }
    const double begin = now();
    comm.barrier();
    return now() - begin;
}

double sample_seconds(const mpi::Communicator& comm) {
    constexpr double least = 300e-6, most = 20e-3;  // a team of threads starts within some 2 µs
    constexpr int tries = 7, times_barrier = 100;
    std::vector<double> costs;
    for (int i = 0; i < tries; ++i) {
        costs.push_back(meet_all(comm));
    }
    return agreed(comm, std::clamp(times_barrier * median(costs), least, most));
}

}  // namespace tilewise::measure
