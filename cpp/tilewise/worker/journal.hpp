// What the record says of a job that went on after a death.
#pragma once

#include <optional>

#include "tilewise/io/journal.hpp"
#include "tilewise/worker/outcome.hpp"

namespace tilewise::worker {

/// What was found where the job went on from pieces of its result.
void add_resumed(Outcome& outcome, const std::optional<io::Resumed>& resumed);
/// The same of states, which are numbered by sweeps.
void add_resumed(Outcome& outcome, const std::optional<io::Restored>& restored);

}  // namespace tilewise::worker
