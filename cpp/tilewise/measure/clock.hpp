// The clock that measurements read, what reading it costs, and samples that ranks and threads begin together.
//
// How long a sample lasts that all ranks begin together and end together, so that the meeting itself hardly counts.
//
//      rank 0   barrier ▶ work ▶▶▶▶▶▶▶ barrier │
//      rank 1   barrier ▶ work ▶▶▶▶▶▶▶▶▶▶▶ bar │   Where ranks take turns on a core, each is fast while it has it: only
//      rank 2   barrier ·················▶ work │   from the common start to the common end is it seen that they share.
//
// Threads of a rank begin together, too:
//
//      thread 0   summon ── ready() ── go ▶ work(0) ▶ │ greatest of all ends
//      thread 1   ···· wakes, spins ·· go ▶ work(1) ▶ │ less the moment of "go"
//
// Waking a thread takes up to 20 µs; a first-level cache is copied in a fiftieth of a microsecond.
#pragma once

#include <functional>

#include "tilewise/base/clock.hpp"
#include "tilewise/mpi/communicator.hpp"

namespace tilewise::measure {

/// Seconds since some moment; never goes back.
inline double now() { return clock_seconds(); }

struct Clock {
    double resolution = 0;  ///< seconds: the least step between two readings that differ
    double overhead = 0;    ///< seconds that a reading adds to what lies between two of them
};

/// Reads the clock some thousand times. Not collective; under a millisecond.
Clock look_at_clock();

/// Seconds of a fixed chain of dependent multiplications, the least of three, together some 3 ms: it grows as the
/// core's frequency falls, and as others keep the core. Not collective.
double yardstick();

/// Seconds that a sample should last: 300 µs, or a hundred barriers where that is more, up to 20 ms. @note Collective.
double sample_seconds(const mpi::Communicator& comm);

/// Waits until all ranks are here; returns the seconds that took on this one, and 0 on a rank that is alone. @note
/// Collective.
double meet_all(const mpi::Communicator& comm);

/// Calls `work(thread)` on `threads` threads, after `ready` on the caller's, thread 0, which may wait there for other
/// ranks; `work` may not throw. Returns seconds from the common start until the last thread was done.
double run_together(int threads, const std::function<void(int)>& work, const std::function<void()>& ready = {});

}  // namespace tilewise::measure
