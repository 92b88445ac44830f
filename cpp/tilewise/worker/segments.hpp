// The shared memory that MPI keeps under a name while ranks run: told at the start, so that it can be removed when they are killed.
#pragma once

#include <string>
#include <vector>

namespace tilewise::worker {

/// Paths of what this process has mapped below /dev/shm. Empty where the system does not tell.
std::vector<std::string> mapped_segments();

}  // namespace tilewise::worker
