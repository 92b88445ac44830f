// A pointer to the function that is asked.
#include "tilewise/base/clock.hpp"

#include <chrono>

namespace tilewise {
namespace {

double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double (*asked)() = steady_seconds;

}  // namespace

double clock_seconds() { return asked(); }

void set_clock(double (*clock)()) { asked = clock; }

}  // namespace tilewise
