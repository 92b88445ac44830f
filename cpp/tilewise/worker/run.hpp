// Runs one job on all ranks and emits its record.
#pragma once

#include <vector>

#include "tilewise/mpi/communicator.hpp"
#include "tilewise/worker/job.hpp"

namespace tilewise::worker {

/// Does `asked`; ranks `lost` have died before. Throws the agreed Error on every rank. @note Collective.
void run(const mpi::Communicator& comm, const Job& asked, const std::vector<int>& lost = {});

}  // namespace tilewise::worker
