// Turns numbers as a file has them into numbers to compute with: byte order, then type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tilewise/base/dtype.hpp"

namespace tilewise::kernel {

/// Where the raw bytes of `count` numbers must lie in a buffer of `count` wider ones, so that `widen` needs no second buffer:
///
///     buffer  [ . . . . . . . . | r0 r1 r2 r3 r4 r5 r6 r7 ]   before: raw numbers at the end
///             [ w0  w1  w2  w3  w4  w5  w6  w7            ]   after: converted front to back, never overtaking
std::size_t raw_offset(std::int64_t count, Dtype from, Dtype to);

/// Converts in place, see `raw_offset`. `to` is a type that is computed in and not narrower than `from`. Returns how many numbers `to`
/// cannot hold (unsigned ones over 2⁶³ as int64). Throws UsageError for a conversion that would lose the imaginary part.
std::int64_t widen(std::byte* buffer, std::int64_t count, Dtype from, bool swap_bytes, Dtype to);

/// Largest magnitude of `count` 64-bit integers, as a double rounded up.
double largest_magnitude(const std::byte* data, std::int64_t count, Dtype dtype);

}  // namespace tilewise::kernel
