// The part in memory, repeated: what each round took, and books that know only of the last one.
#pragma once

#include <array>

#include "tilewise/base/outcome.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::svd {

/// Calls `round(last)` so many times, warm-up first; rounds other than the last leave no trace in the books. Returns the counted ones. @note Collective.
template <class Round> std::vector<Sample> run_rounds(Context& context, int warmup, int repeat, const Round& round) {
    std::vector<Sample> samples;
    Ledger& ledger = context.ledger;
    for (int index = -warmup; index < repeat; ++index) {
        const bool last = index + 1 == repeat;
        context.comm.barrier();
        const Counters counted = ledger.count();
        const std::array before{ledger.settled(Phase::compute), ledger.settled(Phase::exchange)};
        round(last);
        {
            const Timed timed(ledger, Phase::exchange, "");
            context.comm.barrier();
        }
        const std::array took{ledger.settled(Phase::compute) - before[0], ledger.settled(Phase::exchange) - before[1]};
        if (!last) {
            ledger.forget(Phase::compute, took[0]);
            ledger.forget(Phase::exchange, took[1]);
            ledger.count() = counted;
        }
        if (index >= 0) {
            // Ranks begin and end a round together, and some of them wait while one computes: what counts is the round's time, and the most that any of
            // them computed of it.
            const std::array sent{took[0], took[0] + took[1]};
            std::array<double, 2> most{};
            mpi::check(MPI_Allreduce(sent.data(), most.data(), 2, MPI_DOUBLE, MPI_MAX, context.comm.get()),
                       "MPI_Allreduce");
            samples.push_back({.compute = most[0], .exchange = most[1] - most[0], .both = most[1]});
        }
    }
    return samples;
}

}  // namespace tilewise::svd
