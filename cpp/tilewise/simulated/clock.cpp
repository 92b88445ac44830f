// The simulator's clock, in place of base/clock.cpp: seconds on the simulated cluster, of the rank that asks.
// Design: docs/design/simulation.md
#include "tilewise/base/clock.hpp"

#include <mpi.h>

namespace tilewise {

double clock_seconds() { return MPI_Wtime(); }

}  // namespace tilewise
