// Runs one job on all ranks and emits its record.
#pragma once

#include "tilewise/mpi/communicator.hpp"
#include "tilewise/worker/job.hpp"

namespace tilewise::worker {

/// Does `asked`. Throws the agreed Error on every rank. @note Collective.
void run(const mpi::Communicator& comm, const Job& asked);

}  // namespace tilewise::worker
