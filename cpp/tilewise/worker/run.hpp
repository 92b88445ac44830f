// Runs one job on all ranks and emits its record; commands that take more than some lines have files of their own.
#pragma once

#include <vector>

#include "tilewise/mpi/communicator.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/worker/job.hpp"
#include "tilewise/worker/outcome.hpp"

namespace tilewise::worker {

/// Does `asked`; ranks `lost` have died before. Throws the agreed Error on every rank. @note Collective.
void run(const mpi::Communicator& comm, const Job& asked, const std::vector<int>& lost = {});

/// The points of a measurement, one after the other, in the order in which the job has them. `result` has what
/// docs/reference/seam.md lists for measurements. @note Collective.
Outcome run_measure(Context& context, const Job& job);

/// The command `stencil`: out of a job into the operation, and what it has to say into the record. Throws the agreed
/// Error on every rank. @note Collective.
Outcome run_stencil(Context& context, const Job& job);

/// The command `svd`: from the job's fields to the decomposition, and from what it found to the record. @note
/// Collective.
Outcome run_svd(Context& context, const Job& job);

}  // namespace tilewise::worker
