// The last step of a symmetric product on several ranks: each gives its partners the mirror image of what it computed.
#pragma once

#include <cstddef>

#include "tilewise/base/dtype.hpp"
#include "tilewise/grid/layout.hpp"
#include "tilewise/grid/symmetric.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/mpi/window.hpp"

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

/// The same where ranks reach each other's blocks of C: each writes the mirror image of what it computed to where its
/// partner lacks it, once and without waiting.
class HandOver {
public:
    /// `blocks` are those of all ranks of `context.comm`. Nobody else writes to what is missing of them.
    HandOver(Context& context, const mpi::Exposed& blocks);
    HandOver(const HandOver&) = delete;
    HandOver& operator=(const HandOver&) = delete;
    ~HandOver();

    void operator()(const grid::SymmetricPart& part, const grid::Layout& layout, Dtype dtype);
    /// Until this rank's block is whole. @note Collective.
    void wait();

private:
    Context& context_;
    MPI_Win window_;
};

}  // namespace tilewise::multiply
