// A job that loses ranks, and that the others finish.
#pragma once

#include "tilewise/mpi/communicator.hpp"
#include "tilewise/worker/job.hpp"

namespace tilewise::worker {

/// As run(), and where a rank dies the others begin the job anew among themselves: its journal says what is done. Each
/// death is told by an event. Throws the agreed Error on every rank. @note Collective.
void run_surviving(const mpi::Communicator& comm, Job job);

/// Whether this rank has gone on without another. MPI_Finalize would then wait for the dead.
bool has_lost_ranks();

}  // namespace tilewise::worker
