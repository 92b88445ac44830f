// The command `svd`: from the job's fields to the decomposition, and from what it found to the record.
#pragma once

#include "tilewise/worker/job.hpp"
#include "tilewise/worker/outcome.hpp"

namespace tilewise::worker {

/// @note Collective.
Outcome run_svd(Context& context, const Job& job);

}  // namespace tilewise::worker
