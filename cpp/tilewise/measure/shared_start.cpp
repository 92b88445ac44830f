// Helpers are those that jobs have, which begin on other processors than the caller's; all spin until it says "go".
#include "tilewise/measure/shared_start.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tilewise/base/threads.hpp"
#include "tilewise/measure/clock.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/mpi/sum.hpp"

namespace tilewise::measure {
namespace {

/// Spins, and lets others run where that takes long: there may be more threads than cores.
template <class Condition> void spin_until(const Condition& condition) {
    constexpr int patience = 4000;
    for (int turn = 0; !condition(); ++turn) {
        if (turn > patience) {
            std::this_thread::yield();
        }
    }
}

}  // namespace

double run_together(int threads, const std::function<void(int)>& work, const std::function<void()>& ready) {
    std::vector<double> ends(static_cast<std::size_t>(std::max(threads, 1)));
    std::atomic<int> waiting = 0;
    std::atomic<bool> go = false;
    bool failed = false;
    double begin = 0;
    const auto start = [&] {
        spin_until([&] { return waiting == std::ssize(ends) - 1; });
        try {
            if (ready) {
                ready();
            }
        } catch (...) {
            failed = true;
            go = true;
            throw;
        }
        begin = now();
        go = true;
    };
    parallel(static_cast<int>(ends.size()), [&](int thread) {
        if (thread == 0) {
            start();
        } else {
            ++waiting;
            spin_until([&] { return go.load(); });
        }
        if (!failed) {
            work(thread);
        }
        ends[static_cast<std::size_t>(thread)] = now();
    });
    return *std::max_element(ends.begin(), ends.end()) - begin;
}

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
    return mpi::of_root(comm, std::clamp(times_barrier * median(costs), least, most));
}

}  // namespace tilewise::measure
