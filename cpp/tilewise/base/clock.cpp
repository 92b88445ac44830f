// Asks the system's steady clock.
#include "tilewise/base/clock.hpp"

#include <chrono>

namespace tilewise {

double clock_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tilewise
