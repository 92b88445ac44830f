// The one clock of all times that are reported, and of all that depends on how long something took.
#pragma once

#include <utility>

namespace tilewise {

/// Seconds since some moment, by the system's steady clock, which never goes back.
double clock_seconds();

/// Seconds since the last call, or since it was made.
class Stopwatch {
public:
    double operator()() {
        const double now = clock_seconds();
        return now - std::exchange(last_, now);
    }

private:
    double last_ = clock_seconds();
};

}  // namespace tilewise
