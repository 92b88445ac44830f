// What precedes the sweeps: each rank has some columns of W, and gets those of X and V that it begins with.
//
//     tall W, several ranks    each rank    its rows of W = Qr·R
//                              all ranks    [R0; R1; …] = Q'·R by a tree; rank 0 deals R out
//     else                     all ranks    columns of W, from rows where the file has these
//
//     else                     A = W or R:  A·P = Q1·L·Q2, X = L, V = I,  or  X = A·V of AᵀA's eigenvectors V
//                              (see kernel/factor/svd_start.hpp)
//
// With `none`, X = W of any shape and V = I: columns only go where they are swept.
#pragma once

#include <memory>
#include <string>

#include "tilewise/dist/rank_team.hpp"
#include "tilewise/dist/tall_qr.hpp"
#include "tilewise/kernel/factor/svd_start.hpp"
#include "tilewise/svd/source.hpp"
#include "tilewise/svd/svd.hpp"

namespace tilewise::svd {

template <class T> struct Start {
    kernel::SweepStartOf<T> sweeps;  ///< where they begin
    StartKind used = StartKind::none;
    std::unique_ptr<dist::TallQr<T>> rows_of_q;  ///< of a tall W whose vectors are wanted; else empty
};

/// Rows of W, in percent of its columns, from which it counts as tall.
inline constexpr std::int64_t tall_percent = 150;

/// Whether W's rows are factored by all ranks before anything else: it is so much taller than wide that this
/// saves more than it costs.
bool by_rows_first(const Work& work, int ranks, StartKind kind);

/// `wanted`: the columns that a rank begins with (after `none` as after `eigen`). Memory, in numbers: that of TallQr
/// for a tall W; else its columns of W. Beside that, on a rank: with eigenvectors its columns of X and V, and on rank 0
/// 3·n² for AᵀA and LAPACK, or, with `share_eigen`, on every rank its columns of AᵀA and twice those of V; with a QR
/// its columns of both factors, of X, and of what is sent and received meanwhile; with `none` its columns of X, and of
/// what is sent and received. @note Collective; throws the same Error on every rank, or aborts the job where ranks
/// already wait.
template <class T> Start<T> start(Context& context, const dist::RankTeam& team, Source<T>& source, const Work& work,
                                  StartKind kind, bool share_eigen, bool want_v, const kernel::ColumnsOfRank& wanted,
                                  bool again);

#define TILEWISE_START(form, T)                                                                                   \
    form template Start<T> start(Context&, const dist::RankTeam&, Source<T>&, const Work&, StartKind, bool, bool, \
                                 const kernel::ColumnsOfRank&, bool);
TILEWISE_START(extern, double)
TILEWISE_START(extern, kernel::Complex)

}  // namespace tilewise::svd
