// Which place of a grid MPI gives to each rank where it may number them anew.
#pragma once

#include <vector>

#include "tilewise/grid/grid.hpp"
#include "tilewise/mpi/communicator.hpp"

namespace tilewise::mpi {

/// The place, counted row by row, that MPI_Cart_create with `reorder` gives to each rank, by rank: 0, 1, 2 … where it
/// leaves them as they are. Throws UsageError where the grid has more or fewer places than there are
/// ranks, and MpiError. @note Collective.
std::vector<int> cartesian_order(const Communicator& comm, grid::Grid grid, bool periodic);

}  // namespace tilewise::mpi
