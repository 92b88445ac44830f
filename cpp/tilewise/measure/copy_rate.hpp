// How fast memory moves when nothing is computed: the roofline of one sweep a pass.
#pragma once

#include "tilewise/mpi/context.hpp"

namespace tilewise::measure {

/// Bytes a second that all ranks together read and write when each copies `bytes` from one memory to another with its
/// threads, all at the same time: the best of a few runs, past the caches or through them, whichever is faster; of one
/// each where they take more than the `allowed` seconds. Both begin at cache lines. Not counted in the ledger. @note
/// Collective.
double copy_rate(Context& context, const std::byte* from, std::byte* to, std::int64_t bytes, double allowed);

}  // namespace tilewise::measure
