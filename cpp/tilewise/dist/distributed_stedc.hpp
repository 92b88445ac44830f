// Eigenvectors of a symmetric tridiagonal matrix by divide and conquer, by all ranks: each has columns of the vectors
// of every level, and multiplies out those of the next.
//
//      leaves      each on one rank                 [ # # # #             ]
//                                                   [ # # # #             ]   a column has so many rows as the largest
//      a level     z: two rows of each pair, ──▶    [ 0 0 1 1 | 2 2 3 3   ]   part of the level, here on ranks 0 … 3
//                  gathered; roots and weights,
//                  each rank its share of them, gathered
//                  vectors of pairs in terms of halves, each rank its columns S
//                  Q·S, panels of Q gathered        [ Q₁    ] · [ S S S S ]    the next level's columns
//                                                   [    Q₂ ]   [ S S S S ]
//
// All ranks know all eigenvalues. F. Tisseur, J. Dongarra, "A parallel divide and conquer algorithm for the symmetric
// eigenvalue problem on distributed memory architectures", 1999.
#pragma once

#include <functional>
#include <vector>

#include "tilewise/dist/column_comm.hpp"

namespace tilewise::dist {

/// Rows that LAPACK decomposes on one rank, at most.
inline constexpr std::int64_t shared_leaf = 256;

/// Columns `wanted` of all vectors, those of the smallest values first, n rows each without gaps; ranks' ranges may lie
/// in any sequence. Every rank has the same diagonal (n), and the same numbers beside it (n, the last one is nothing).
/// Memory of a rank, in numbers: three times its columns, and a panel of `gram_panel_columns` of them.
Array<double> distributed_stedc(std::vector<double> diagonal, std::vector<double> beside,
                                const std::function<grid::Range(int rank)>& wanted, const ColumnComm& comm, int threads,
                                std::int64_t leaf = shared_leaf);

}  // namespace tilewise::dist
