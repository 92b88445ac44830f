// The command `stencil`: out of a job into the operation, and what it has to say into the record.
#pragma once

#include "tilewise/mpi/context.hpp"
#include "tilewise/worker/job.hpp"
#include "tilewise/worker/outcome.hpp"

namespace tilewise::worker {

/// Throws the agreed Error on every rank. @note Collective.
Outcome run_stencil(Context& context, const Job& job);

}  // namespace tilewise::worker
