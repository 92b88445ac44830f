// IEEE 754 half precision, which files hold and nothing here computes in.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace tilewise {

/// The bits of a float16, for which C++20 has no type.
struct Half {
    std::uint16_t bits;
};

// From and to double: straight, because by way of float would round twice, and without branches, so that loops become
// vectors.

inline double half_to_double(std::uint16_t half) {
    constexpr std::uint64_t one_exponent = std::uint64_t{1} << 52;
    const std::uint64_t magnitude = half & 0x7FFFU;
    const std::uint64_t normal = (magnitude << 42) + (1023 - 15) * one_exponent;
    const double subnormal = std::bit_cast<double>(normal + one_exponent) - 0x1p-14;  // 2^-14 · (1 + m) − 2^-14
    std::uint64_t bits = magnitude < 0x400U ? std::bit_cast<std::uint64_t>(subnormal) : normal;
    bits += magnitude >= 0x7C00U ? (2047 - 31 - (1023 - 15)) * one_exponent : 0;  // infinite, or not a number
    return std::bit_cast<double>(bits | static_cast<std::uint64_t>(half & 0x8000U) << 48);
}

/// Rounds to nearest, ties to even; too large becomes infinity.
inline std::uint16_t double_to_half(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
    const std::uint64_t rounded = magnitude + ((std::uint64_t{1} << 41) - 1) + ((magnitude >> 42) & 1U);
    const std::uint64_t normal = (rounded >> 42) - ((1023 - 15) << 10);
    // The addition of a power of two rounds to multiples of 2^-24, the distance of subnormals, and leaves their count
    // in the last bits.
    const double shifted = std::bit_cast<double>(magnitude) + 0x1p28;
    const std::uint64_t subnormal = std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(0x1p28);
    std::uint64_t half = magnitude < std::bit_cast<std::uint64_t>(0x1p-14) ? subnormal : normal;
    half = magnitude >= std::bit_cast<std::uint64_t>(65520.0) ? 0x7C00U : half;
    half = magnitude > std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity()) ? 0x7E00U : half;
    return static_cast<std::uint16_t>(half | (bits >> 48 & 0x8000U));
}

}  // namespace tilewise
