// The last step of `replicated`: adds the layers' partial results, so that each rank owns its share of the sum's rows.
#pragma once

#include <cstddef>

#include "tilewise/base/dtype.hpp"
#include "tilewise/grid/layout.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::multiply {

/// What a rank sends or receives at a time of the partial results.
inline constexpr std::int64_t layer_piece_bytes = std::int64_t{16} << 20;

///     stack of 2 ranks, before   [ C' C' ]   [ C" C" ]      after   [ C  .. ]   [ ..  C ]
///
/// `c` is the rank's whole block of partial sums; afterwards the rows `layout.c_owned(rank)` of it are the result, the
/// others are undefined. Does nothing for one layer. @note Collective over `context.comm`.
void add_layers(Context& context, const grid::Layout& layout, Dtype dtype, std::byte* c);

}  // namespace tilewise::multiply
