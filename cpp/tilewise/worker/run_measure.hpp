// The points of a measurement, one after the other, in the order in which the job has them.
#pragma once

#include "tilewise/mpi/context.hpp"
#include "tilewise/worker/job.hpp"
#include "tilewise/worker/outcome.hpp"

namespace tilewise::worker {

/// `result` has what docs/reference/seam.md lists for measurements. @note Collective.
Outcome run_measure(Context& context, const Job& job);

}  // namespace tilewise::worker
