// The last step of a symmetric product on several ranks: each gives its partners the mirror image of what it computed.
#pragma once

#include <cstddef>

#include "tilewise/base/dtype.hpp"
#include "tilewise/grid/symmetric.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::multiply {

/// What a rank sends at a time, and receives.
inline constexpr std::int64_t swap_piece_bytes = std::int64_t{4} << 20;

///     rank 0 [ a | a . ]   [ a | a b' ]      what is computed goes as it is, and is turned round where it arrives
///     rank 1 [ . b | b ]   [ a' b | b ]
///
/// `c` is the rank's block `block` of C, of which `part.swaps` say what is computed and what is missing. The ranks of
/// the swaps are those of `context.comm`. @note Collective over it.
void swap_halves(Context& context, const grid::SymmetricPart& part, const grid::Block& block, Dtype dtype,
                 std::byte* c);

}  // namespace tilewise::multiply
