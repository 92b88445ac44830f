// What memory and the arithmetic units can do in this minute, measured beside a job: what its rates are fractions of.
// Design: docs/design/measuring.md
#pragma once

#include "tilewise/base/dtype.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::measure {

/// Bytes a second that all ranks together read and write when each copies `bytes` from one memory to another with its
/// threads, all at the same time: the best of a few runs, past the caches or through them, whichever is faster; of one
/// each where they take more than the `allowed` seconds. Both begin at cache lines. Not counted in the ledger. @note
/// Collective.
double copy_rate(Context& context, const std::byte* from, std::byte* to, std::int64_t bytes, double allowed);

/// Operations a second of all threads of all ranks together: the sum of what each does in its best of some loops of
/// multiplications and additions in registers, fused where the instructions in use have that, all at the same time.
/// Complex and 16-bit types go by the type that their arithmetic is in; 0 for integers. Takes about a millisecond.
/// @note Collective.
double peak(Context& context, Dtype dtype);

}  // namespace tilewise::measure
