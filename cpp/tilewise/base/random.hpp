// Numbers that depend on (seed, row, column) alone, so that every rank can make its own block of the same matrix.
//
// The mixing function is the finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom
// number generators", 2014), applied to the row's and then to the column's contribution.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace tilewise {

constexpr std::uint64_t mix(std::uint64_t value) {
    value += 0x9E3779B97F4A7C15U;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
    return value ^ (value >> 31);
}

/// 64 random bits; `row_key` is `mix(seed ^ mix(row))`, which a row's loop computes once.
constexpr std::uint64_t row_key(std::uint64_t seed, std::uint64_t row) {
    return mix(mix(seed) + mix(row ^ 0xA5A5A5A5A5A5A5A5U));
}
constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t column) {
    return mix(key + 0x632BE59BD9B4E019U * column);
}

/// Uniform in [0, 1): a multiple of 2^-digits, which a type of so many digits holds as it is. A number with more would
/// be rounded, the largest up to 1.
constexpr double uniform(std::uint64_t bits, int digits = 53) {
    return static_cast<double>(bits >> (64 - digits)) / static_cast<double>(std::uint64_t{1} << digits);
}

/// Box and Muller's transformation of two numbers made from the same bits: two standard normal ones, independent of
/// each other.
inline std::array<double, 2> normal_pair(std::uint64_t bits) {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform(bits))),
                 angle = 2.0 * std::numbers::pi * uniform(mix(bits));
    return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// Standard normal: the first of the pair.
inline double normal(std::uint64_t bits) { return normal_pair(bits)[0]; }

}  // namespace tilewise
