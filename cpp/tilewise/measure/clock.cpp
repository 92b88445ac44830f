// Asks the clock often enough to see its smallest step and its usual cost. Helpers are those that jobs have, which
// begin on other processors than the caller's; all spin until it says "go".
#include "tilewise/measure/clock.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "tilewise/base/threads.hpp"
#include "tilewise/measure/samples.hpp"
#include "tilewise/mpi/sum.hpp"

namespace tilewise::measure {

Clock look_at_clock() {
    constexpr int readings = 2000, rounds = 21;
    Clock clock{1.0, 0};
    std::vector<double> costs;
    for (int round = 0; round < rounds; ++round) {
        double last = now();
        const double begin = last;
        for (int i = 0; i < readings / rounds; ++i) {
            const double next = now();
            if (next > last) {
                clock.resolution = std::min(clock.resolution, next - last);
            }
            last = next;
        }
        costs.push_back((last - begin) / (readings / rounds));
    }
    clock.overhead = median(costs);
    return clock;
}

double yardstick() {
    constexpr int links = 500'000, tries = 3;
    volatile double start = 1.0000001;
    const double factor = start;
    double least = std::numeric_limits<double>::infinity();
    for (int attempt = 0; attempt < tries; ++attempt) {
        const double begin = now();
        double chain = factor;
        for (int i = 0; i < links; ++i) {
            chain *= factor;
            if (chain > 1e300) {
                chain = factor;
            }
        }
        start = chain;
        least = std::min(least, now() - begin);
    }
    return least;
}

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
