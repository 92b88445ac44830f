// Helpers are those that jobs have, which begin on other processors than the caller's; here all spin until it says "go".
#include "tilewise/measure/run_together.hpp"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tilewise/base/threads.hpp"
#include "tilewise/measure/clock.hpp"

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

}  // namespace tilewise::measure
