// Does one operation for every slice of a stack: all ranks slice after slice, or each rank slices of its own.
#pragma once

#include <cstdint>

#include "tilewise/mpi/context.hpp"
#include "tilewise/worker/job.hpp"
#include "tilewise/worker/outcome.hpp"

namespace tilewise::worker {

using Operation = Outcome (*)(Context& context, const Job& job);

/// The job for the slice of that number, counted as numpy counts: the last axis of the stack runs fastest.
Job slice_of(const Job& stack, std::int64_t number);

/// Runs `operation` for every slice of `job`; an error names the slice. @note Collective.
Outcome run_stack(Context& context, const Job& job, Operation operation);

}  // namespace tilewise::worker
