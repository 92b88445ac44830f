// Powers of ten in 128 bits: what a decimal is multiplied by to become a binary number, and the other way.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tilewise::kernel {

__extension__ using Wide = unsigned __int128;

/// 10^q = (high·2⁶⁴ + low − x) · 2^(log2_of_ten(q) − 127), with 0 ≤ x < 1, and x = 0 where 128 bits hold the power.
struct PowerOfTen {
    std::uint64_t high, low;
};

constexpr int least_power = -342, largest_power = 324;

/// The whole part of log₂(10^q), for every q of the table and some beyond.
constexpr int log2_of_ten(int q) { return (q * 217706) >> 16; }

extern const std::array<PowerOfTen, largest_power - least_power + 1> powers_of_ten;

/// 10^q, q in [least_power, largest_power].
inline const PowerOfTen& power_of_ten(int q) { return powers_of_ten[static_cast<std::size_t>(q - least_power)]; }

}  // namespace tilewise::kernel
