// What a fuzzed program promises: where a promise does not hold, it says which, and aborts, so that the input is kept.
#pragma once

#include <cstdio>
#include <cstdlib>

inline void require(bool holds, const char* promise) {
    if (!holds) {
        std::fprintf(stderr, "broken promise: %s\n", promise);
        std::abort();
    }
}
