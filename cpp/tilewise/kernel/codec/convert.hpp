// Turns numbers as a file has them into numbers to compute with, or as another file wants them: byte order, then type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "tilewise/base/dtype.hpp"

namespace tilewise::kernel {

/// Copies `count` items of `width` bytes (1, 2, 4 or 8), each with its bytes in reverse. Neither side need be aligned;
/// `to` may be `from`, else they must not overlap. Runs at the speed of memory.
void swap_bytes(const std::byte* from, std::byte* to, std::int64_t count, std::size_t width);

/// Where the raw bytes of `count` numbers must lie in a buffer of `count` wider ones, so that `widen` needs no second
/// buffer:
///
///     buffer  [ . . . . . . . . | r0 r1 r2 r3 r4 r5 r6 r7 ]   before: raw numbers at the end
///             [ w0  w1  w2  w3  w4  w5  w6  w7            ]   after: converted front to back, never overtaking
std::size_t raw_offset(std::int64_t count, Dtype from, Dtype to);

/// Converts in place, see `raw_offset`. `to` is a type that is computed in and not narrower than `from`. Returns how
/// many numbers `to` cannot hold (unsigned ones over 2⁶³ as int64). Throws UsageError for a conversion that would lose
/// the imaginary part.
std::int64_t widen(std::byte* buffer, std::int64_t count, Dtype from, bool swap_bytes, Dtype to);

/// Converts `count` numbers from bytes as a file has them to bytes as a file wants them, out of place: byte order,
/// type, byte order. For every pair of dtypes; neither side need be aligned, and they must not overlap. What integers
/// cannot hold becomes the nearest number that they can, after its fraction is cut off, and NaN becomes 0; what floats
/// cannot hold becomes ±inf; all else is rounded once, to nearest. Imaginary parts are dropped. Returns how many
/// numbers were changed in more than rounding: held to the range of an integer, NaN become 0, finite become infinite,
/// or with an imaginary part dropped that was not 0. With `scale` each is first multiplied, as float64, or complex128
/// part by part.
std::int64_t convert(const std::byte* from, Dtype from_dtype, bool swap_from, std::byte* to, Dtype to_dtype,
                     bool swap_to, std::int64_t count, std::optional<double> scale = {});

/// Largest magnitude of `count` 64-bit integers, as a double rounded up.
double largest_magnitude(const std::byte* data, std::int64_t count, Dtype dtype);

/// How many of `count` numbers are NaN or infinite, of complex ones in either part; of a type that is computed in.
std::int64_t count_not_finite(const std::byte* data, std::int64_t count, Dtype dtype, int threads = 1);

}  // namespace tilewise::kernel
