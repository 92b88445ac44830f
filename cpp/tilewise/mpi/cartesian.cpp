// Asks MPI for a Cartesian communicator, and tells all ranks which number each of them has in it.
#include "tilewise/mpi/cartesian.hpp"

#include <array>
#include <string>

#include "tilewise/base/error.hpp"

namespace tilewise::mpi {

std::vector<int> cartesian_order(const Communicator& comm, grid::Grid grid, bool periodic) {
    if (grid.size() != comm.size()) {
        throw UsageError("the grid has " + std::to_string(grid.size()) + " places for " + std::to_string(comm.size()) +
                         " ranks");
    }
    const std::array<int, 2> extents{grid.rows, grid.columns}, periods{periodic ? 1 : 0, periodic ? 1 : 0};
    Comm cartesian;
    check(MPI_Cart_create(comm.get(), 2, extents.data(), periods.data(), 1, cartesian.out()), "MPI_Cart_create");
    int mine = 0;
    check(MPI_Comm_rank(cartesian.get(), &mine), "MPI_Comm_rank");
    std::vector<int> order(static_cast<std::size_t>(comm.size()));
    check(MPI_Allgather(&mine, 1, MPI_INT, order.data(), 1, MPI_INT, comm.get()), "MPI_Allgather");
    return order;
}

}  // namespace tilewise::mpi
