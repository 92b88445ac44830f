// Asks the clock often enough to see its smallest step and its usual cost.
#include "tilewise/measure/clock.hpp"

#include <algorithm>
#include <limits>

#include "tilewise/measure/samples.hpp"

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

}  // namespace tilewise::measure
