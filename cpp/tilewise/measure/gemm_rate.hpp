// How fast this machine multiplies when nothing else is in the way: what "fraction of peak" refers to.
#pragma once

#include "tilewise/base/dtype.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::measure {

/// The matrices that one thread multiplies, at most; of several threads, as much times their number to the power 2/3.
inline constexpr std::int64_t gemm_rate_bytes = std::int64_t{120} << 20;

/// Operations a second of all ranks together, each multiplying blocks of its own with its threads at the same time: the
/// best of half a second of products, three at least, of a size that is enough for full speed. 0 for types
/// without a tuned kernel. @note Collective.
double gemm_rate(Context& context, Dtype dtype);

}  // namespace tilewise::measure
