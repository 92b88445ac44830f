// How long a sample lasts that all ranks begin together and end together, so that the meeting itself hardly counts.
//
//      rank 0   barrier ▶ work ▶▶▶▶▶▶▶ barrier │
//      rank 1   barrier ▶ work ▶▶▶▶▶▶▶▶▶▶▶ bar │   Where ranks take turns on a core, each is fast while it has it: only
//      rank 2   barrier ·················▶ work │   from the common start to the common end is it seen that they share.
#pragma once

#include "tilewise/mpi/communicator.hpp"

namespace tilewise::measure {

/// Seconds that a sample should last: 300 µs, or a hundred barriers where that is more, up to 20 ms. @note Collective.
double sample_seconds(const mpi::Communicator& comm);

/// Waits until all ranks are here; returns the seconds that took on this one, and 0 on a rank that is alone. @note
/// Collective.
double meet_all(const mpi::Communicator& comm);

}  // namespace tilewise::measure
