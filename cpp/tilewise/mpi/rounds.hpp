// The part of a job that is in memory, repeated: what each round took, and books that know of one round only.
#pragma once

#include <functional>
#include <vector>

#include "tilewise/base/outcome.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::mpi {

/// Calls `prepare(first)` and then `round(last)`, `warmup` times and `repeat` times more; a barrier lies between the two. Of all rounds the books keep the
/// counts of the last one and the seconds of the counted one that took the median time; getting ready for another round leaves nothing there. Returns the
/// counted rounds. @note Collective.
std::vector<Sample> run_rounds(Context& context, int warmup, int repeat, const std::function<void(bool last)>& round,
                               const std::function<void(bool first)>& prepare = {});

}  // namespace tilewise::mpi
