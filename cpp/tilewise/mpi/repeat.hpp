// The one repeater: runs the part of a job that is in memory again and again, and keeps the books of one round.
#pragma once

#include <functional>
#include <vector>

#include "tilewise/base/outcome.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::mpi {

/// Calls `prepare(first)`, waits for all ranks, and calls `round(last)`: `warmup` times, and then `count` times. The
/// first `warmup` rounds are not counted. The ledger keeps the counters of one round, and the seconds of the counted
/// round that took the median time. Of `prepare` it keeps the first call. Returns the counted rounds. @note Collective.
std::vector<Sample> repeat(Context& context, int warmup, int count, const std::function<void(bool last)>& round,
                           const std::function<void(bool first)>& prepare = {});

/// Which of the rounds took the median time; of an even number the lower one.
std::size_t median(const std::vector<Sample>& samples);

}  // namespace tilewise::mpi
