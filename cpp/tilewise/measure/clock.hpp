// The clock that measurements read, and what reading it costs.
#pragma once

#include "tilewise/base/clock.hpp"

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

}  // namespace tilewise::measure
