// Notes the ledger before and after each round, and puts the median round's seconds in the place of the last one's.
#include "tilewise/mpi/repeat.hpp"

#include <algorithm>
#include <array>

namespace tilewise::mpi {
namespace {

/// Phases that a round may be in; what the last one writes and proves is no part of it.
constexpr std::array in_memory{Phase::input, Phase::compute, Phase::exchange};
using Took = std::array<double, in_memory.size()>;

Took between(const Ledger::Books& begun, const Ledger::Books& ended) {
    Took took{};
    for (std::size_t i = 0; i < took.size(); ++i) {
        const auto phase = static_cast<std::size_t>(in_memory[i]);
        took[i] = ended.phases[phase] - begun.phases[phase];
    }
    return took;
}

/// Of each round the largest times over the ranks. A round that reads computes with what it reads, so that counts as
/// computing.
std::vector<Sample> largest(Context& context, const std::vector<Took>& rounds) {
    std::vector<double> most;
    for (const auto& [input, compute, exchange] : rounds) {
        most.insert(most.end(), {input + compute, exchange, input + compute + exchange});
    }
    check(MPI_Allreduce(MPI_IN_PLACE, most.data(), static_cast<int>(most.size()), MPI_DOUBLE, MPI_MAX,
                        context.comm.get()),
          "MPI_Allreduce");
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < most.size(); i += 3) {
        samples.push_back({.compute = most[i], .exchange = most[i + 1], .both = most[i + 2]});
    }
    return samples;
}

}  // namespace

std::size_t median(const std::vector<Sample>& samples) {
    std::vector<std::size_t> order(samples.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
    }
    const auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
    std::nth_element(order.begin(), middle, order.end(),
                     [&](std::size_t x, std::size_t y) { return samples[x].both < samples[y].both; });
    return *middle;
}

std::vector<Sample> repeat(Context& context, int warmup, int count, const std::function<void(bool last)>& round,
                           const std::function<void(bool first)>& prepare) {
    Ledger& ledger = context.ledger;
    std::vector<Took> mine;
    for (int index = -warmup; index < count; ++index) {
        const bool first = index == -warmup, last = index + 1 == count;
        const Ledger::Books before = ledger.books();
        if (prepare) {
            prepare(first);
        }
        context.comm.barrier();
        if (!first) {
            ledger.go_back(before);
        }
        const Ledger::Books begun = ledger.books();
        round(last);
        if (index >= 0) {
            mine.push_back(between(begun, ledger.books()));
        }
        if (!last) {
            ledger.go_back(begun);
        }
    }
    const std::vector<Sample> samples = largest(context, mine);
    const Took& shown = mine[median(samples)];
    for (std::size_t i = 0; i < shown.size(); ++i) {
        ledger.forget(in_memory[i], mine.back()[i] - shown[i]);
    }
    return samples;
}

}  // namespace tilewise::mpi
