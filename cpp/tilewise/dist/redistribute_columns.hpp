// Columns that are spread over the ranks in any order, dealt out anew: sorted, and cut by columns or by rows.
//
//     before    rank 0 [ 3 0 ]  rank 1 [ 2 1 ]      places among the sorted columns
//
//     by columns          rank 0 [ 0 1 ]            by rows    rank 0 [ 0 1 2 3 ] upper rows
//                         rank 1 [ 2 3 ]                       rank 1 [ 0 1 2 3 ] lower rows
#pragma once

#include <functional>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/grid/grid.hpp"
#include "tilewise/kernel/factor/team.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::dist {

/// Which rank has each of the sorted columns; a rank has its own in their order, one beside the other.
using Owners = std::vector<int>;

/// Of columns that follow each other, those of rank 0 first.
Owners owners_of(const grid::Partition& columns);

/// What a rank is to get: rows × sorted columns.
using Wanted = std::function<grid::Block(int rank)>;

/// `mine` are this rank's columns. Returns the rank's part, column by column without gaps. Memory: twice what
/// the rank sends and receives.
/// @note Collective. A rank that throws leaves others waiting: call it where that aborts the job.
Array<double> redistribute_columns(Context& context, const kernel::Columns& mine, const Owners& owners,
                                   const Wanted& wanted);
inline Array<kernel::Complex> redistribute_columns(Context& context, const kernel::ColumnsOf<kernel::Complex>& mine,
                                                   const Owners& owners, const Wanted& wanted) {
    return Array<kernel::Complex>(
        redistribute_columns(context, kernel::as_reals(mine), owners, kernel::with_rows(wanted, 2)));
}

}  // namespace tilewise::dist
