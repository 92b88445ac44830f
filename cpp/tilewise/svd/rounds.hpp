// The part in memory, repeated, with all ranks at the end of a round before the next thing begins.
#pragma once

#include "tilewise/mpi/rounds.hpp"

namespace tilewise::svd {

/// mpi::run_rounds, where waiting for the last rank belongs to the round. @note Collective.
template <class Round> std::vector<Sample> run_rounds(Context& context, int warmup, int repeat, const Round& round) {
    return mpi::run_rounds(context, warmup, repeat, [&](bool last) {
        round(last);
        const Timed timed(context.ledger, Phase::exchange, "");
        context.comm.barrier();
    });
}

}  // namespace tilewise::svd
