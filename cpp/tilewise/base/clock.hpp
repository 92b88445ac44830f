// The one clock of all times that are reported, and of all that depends on how long something took.
#pragma once

#include <utility>

namespace tilewise {

/// Seconds since some moment; never goes back. The system's steady clock, until a simulation brings its own.
double clock_seconds();

/// From now on that is the clock. For the start of a program, before anybody has asked for the time.
void set_clock(double (*clock)());

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
