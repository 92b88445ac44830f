// One pass over arrays in memory – copy, triad, read, write – in every way in which this processor might do it fastest.
//
//      copy    to[i] = a[i]                stores:  plain      vector registers, through the caches
//      triad   to[i] = a[i] + 3·b[i]                library    the C library's memcpy or memset
//      read    the sum of a[i]                      streaming  past the caches, a line at a time
//      write   to[i] = 1.5
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tilewise::measure {

/// A thread's part of each array: float64, beginning at a cache line, apart from each other. What an operation does not
/// use may be null.
struct Arrays {
    double* to = nullptr;
    const double* a = nullptr;
    const double* b = nullptr;
    std::int64_t count = 0;
};

inline constexpr double triad_factor = 3.0, written_value = 1.5;

/// Goes over the arrays so many times. Returns the sum of all bit patterns that were read as 64-bit integers (its order
/// does not matter, so registers can share it), of an operation that writes 0.
using Pass = std::uint64_t (*)(const Arrays&, std::int64_t times);

struct PassVariant {
    std::string_view stores;  ///< plain, library or streaming
    Pass pass;
};

/// All ways to do `operation` that can be fastest here, the plain one first; empty where there is no such operation.
std::vector<PassVariant> pass_variants(std::string_view operation);

/// Arrays that `operation` goes over: 1, 2 or 3.
int arrays_of(std::string_view operation);

}  // namespace tilewise::measure
