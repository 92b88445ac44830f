// What precedes the sweeps: rank 0 begins with all cores of its node, and deals out what it has.
//
//     tall W, several ranks     each rank     its rows of W = Qr·R     all ranks together     [R0; R1; …] = Q'·R by a tree, R on rank 0
//     else                      rank 0        gathers W
//
//     rank 0     A = W or R:  A·P = Q1·L·Q2, X = L, V = I,  or  X = A·V of AᵀA's eigenvectors V        (see kernel/svd_start.hpp)
//     all        get their first blocks' columns of X and V, and all of the reflectors where there are any and vectors are wanted
#pragma once

#include <memory>
#include <string>

#include "tilewise/kernel/svd_start.hpp"
#include "tilewise/svd/leader.hpp"
#include "tilewise/svd/randomized_qr.hpp"
#include "tilewise/svd/source.hpp"

namespace tilewise::svd {

struct Start {
    Buffer x, v;  ///< this rank's columns, one beside the other
    std::int64_t x_rows = 0, v_rows = 0;
    kernel::Factors factors;  ///< the same on all ranks
    bool eigen = false;
    std::string steps, fallback;                ///< rank 0's count
    std::unique_ptr<TallQr<double>> rows_of_q;  ///< of a tall W whose vectors are wanted; else empty
};

/// Whether W's rows are factored by all ranks before anything else: it is so much taller than wide that this saves more than it costs.
bool by_rows_first(const Work& work, int ranks);

/// `mine(rank, eigen)`: the columns that a rank begins with, after the one or the other start. Memory, in numbers: that of TallQr for a
/// tall W; on rank 0 m·n for what is gathered (tall: n²), as much for X, and up to 4·n² for V, Q2 and what LAPACK needs; on every rank its m/ranks·n of a tall W, its columns of X and V, and (m + n)·n for reflectors where there are any and `want_v`.
/// @note Collective; throws the same Error on every rank, or aborts the job where ranks already wait.
Start start(Context& context, const Leader& leader, Source& source, const Work& work, bool eigen, bool want_v,
            const std::function<grid::Range(int rank, bool eigen)>& mine, bool again);

}  // namespace tilewise::svd
